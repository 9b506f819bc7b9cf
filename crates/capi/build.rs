//! Gives the shared library its name for the dynamic linker, which `cargo build` does not.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    let by_cargo_c = std::env::var_os("CARGO_FEATURE_CAPI").is_some();
    if is_linux && !by_cargo_c {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libparitas.so.0.1");
    }
}
