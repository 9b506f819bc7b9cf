//! Names the library as programs look for it. It is never unloaded: a program that opens it anew
//! for every instance would else find the real one the next time, and compile everything again. It
//! exports our functions alone.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libisal.so.2");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
        // A crate below exports C functions of its own; the names of archives stay inside.
        println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
    }
}
