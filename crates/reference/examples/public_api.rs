//! Prints the public API of a crate, one item a line, from the JSON that rustdoc writes.
//! `scripts/api` runs it for every crate and compares the lists with the stored ones.

use std::process::ExitCode;

use public_api::{Builder, Error};

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: public_api FILE.json");
        return ExitCode::from(3);
    };
    let api = Builder::from_rustdoc_json(&file)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true);
    match api.build() {
        Ok(api) => {
            print!("{api}");
            ExitCode::SUCCESS
        }
        Err(Error::SerdeJsonError(error)) => {
            eprintln!("{file}: this toolchain's rustdoc writes another version: {error}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("{file}: {error}");
            ExitCode::FAILURE
        }
    }
}
