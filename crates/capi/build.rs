//! Gives the shared library its name for the dynamic linker, which `cargo build` does not, and
//! keeps it loaded: its threads go on when a program that opened it closes it. The library exports
//! the functions of the header alone.

use std::path::Path;

/// The name that programs look for. It stays the same through all versions 0.x
/// (`docs/embedding.md` says what may change).
const SONAME: &str = "libparitas.so.0";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
        // A crate below exports C functions of its own; the names of archives stay inside.
        println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
        // cargo-c names the library itself.
        if std::env::var_os("CARGO_FEATURE_CAPI").is_none() {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
            link_beside_library();
        }
    }
}

/// Puts a link of the library's name beside it, so that programs run from the build folder: cargo
/// names the file `libparitas.so`. A folder that takes no link has none.
fn link_beside_library() {
    // `OUT_DIR` is `build/paritas-capi-…/out` in the folder of the library.
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    if let Some(folder) = Path::new(&out).ancestors().nth(3) {
        let link = folder.join(SONAME);
        let _ = std::fs::remove_file(&link);
        #[cfg(unix)]
        let _ = std::os::unix::fs::symlink("libparitas.so", link);
    }
}
