//! Names the library as programs look for it. It is never unloaded: a program that opens it anew
//! for every instance would else find the real one the next time, and compile everything again.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libisal.so.2");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
