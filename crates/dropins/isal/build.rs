//! Gives the library the name that programs look for, keeps it loaded, and exports only our
//! functions. Keeping it loaded helps programs that open and close the library for every instance:
//! after an unload, they could find the original library the next time, and all compiled programs
//! would be lost.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libisal.so.2");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
        // A dependency defines C functions of its own. This option keeps them out of the exports.
        println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
    }
}
