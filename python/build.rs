//! Makes the module export its entry for Python alone, where the linker can: a crate below exports
//! C functions of its own.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |part: &str| std::env::var(format!("CARGO_CFG_TARGET_{part}"));
    let is = |part, value: &str| target(part).is_ok_and(|found| found == value);
    // zig links the wheels for musl and refuses this flag. There the module exports the C functions
    // as well; Python opens modules so that no other library sees their names.
    if is("OS", "linux") && !is("ENV", "musl") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
    }
}
