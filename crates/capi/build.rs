//! Gives the shared library its name for the dynamic linker, which `cargo build` does not, and
//! keeps it loaded: its threads go on when a program that opened it closes it. The library exports
//! the functions of the header alone.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
        // A crate below exports C functions of its own; the names of archives stay inside.
        println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
        // cargo-c names the library itself.
        if std::env::var_os("CARGO_FEATURE_CAPI").is_none() {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libparitas.so.0.1");
        }
    }
}
