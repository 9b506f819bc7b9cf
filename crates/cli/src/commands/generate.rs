//! `paritas completions` and `paritas man`: generated from the same definitions as the parser.

use std::io::Write;
use std::path::Path;

use clap_complete::Shell;

use crate::args::help;
use crate::commands::Outcome;
use crate::exit::{self, Exit, Failure};
use crate::output::{self, shown};

/// Prints completions for a shell.
pub fn completions(shell: Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut help::command(), "paritas", &mut script);
    let mut stdout = std::io::stdout();
    let printed = stdout.write_all(&script).and_then(|()| stdout.flush());
    output::expect_printed("standard output", printed)?;
    Ok(Exit::Done)
}

/// Writes a man page for the program and one for each command, to a folder that is created if it
/// does not exist.
pub fn man(directory: &Path) -> Outcome {
    let _new = exit::make_folder(directory)?;
    clap_mangen::generate_to(help::command(), directory)
        .map_err(|error| Failure::io(shown(directory), &error))?;
    Ok(Exit::Done)
}
