//! `paritas completions` and `paritas man`: generated from the same definitions as the parser.

use std::io::{self, IoSlice, Write};
use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use paritas_store::place::attributes::Access;
use paritas_store::staging::{NewFile, Replace, StagedFile, commit};

use crate::args::help;
use crate::commands::Outcome;
use crate::exit::{self, Exit, Failure};
use crate::output;

/// Prints completions for a shell.
pub fn completions(shell: Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut help::command(), "paritas", &mut script);
    let mut stdout = io::stdout();
    let printed = stdout.write_all(&script).and_then(|()| stdout.flush());
    output::expect_printed("standard output", printed)?;
    Ok(Exit::Done)
}

/// Writes a man page for the program and one for each command, to a folder that is created if it
/// does not exist. On an error, all pages are as they were.
pub fn man(directory: &Path) -> Outcome {
    let _new = exit::make_folder(directory)?;
    let mut command = help::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    render(&command, &mut pages)
        .map_err(|error| Failure::internal(format!("rendering man pages: {error}")))?;
    let targets = pages.iter().map(|(name, _)| directory.join(name));
    let usual = Access::of_decoded(None, None);
    let files = StagedFile::create_all(NewFile::all(targets, &Replace::Always, usual), 0)?;
    for (file, (_, page)) in files.iter().zip(&pages) {
        file.write_at(&mut [IoSlice::new(page)], 0)?;
    }
    commit(files, true)?;
    Ok(Exit::Done)
}

/// Renders the man pages of a command and of those below it, with the names of their files.
fn render(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let mut shown = command.get_subcommands().filter(|below| !below.is_hide_set());
    shown.try_for_each(|below| render(below, pages))?;
    let (man, mut page) = (Man::new(command.clone()), Vec::new());
    man.render(&mut page)?;
    pages.push((man.get_filename(), page));
    Ok(())
}
