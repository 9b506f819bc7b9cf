//! The command line: flags become a job, the job runs, its outcome becomes an exit code.
//!
//! No algorithm lives here. `args` defines every flag once (parser, help, man page and completions
//! are derived from it), `commands` turns arguments into calls of the library crates, `output`
//! prints results, and `exit` is the one place that knows exit codes.
//!
//! The program `paritas` calls [`run`]. So does the Python package, whose compiled module is the
//! command as well.

mod args;
mod commands;
mod exit;
mod output;

use std::ffi::OsString;
use std::io::Write;

use crate::args::help;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Runs the command that `arguments` name, and returns the exit code. The first argument is the
/// name of the program.
///
/// The process must belong to the command: this installs handlers of signals and of panics, which
/// stay.
pub fn run(arguments: Vec<OsString>) -> u8 {
    exit_of(&arguments) as u8
}

fn exit_of(arguments: &[OsString]) -> Exit {
    if arguments.len() < 2 {
        output::print_words(&help::first_words());
        return Exit::Arguments;
    }
    let is_flag = |arg: &&OsString| *arg != "--";
    let json = arguments.iter().take_while(is_flag).any(|arg| arg == "--json");
    let args = match help::parse(arguments) {
        Ok(args) => args,
        Err(error) if !error.use_stderr() => {
            let printed = error.print().and_then(|()| std::io::stdout().flush());
            let printed = output::expect_printed("standard output", printed);
            return printed.map_or_else(|failure| report(json, &failure), |()| Exit::Done);
        }
        Err(error) if !json => {
            output::print_usage(error, arguments);
            return Exit::Arguments;
        }
        Err(error) => return report(true, &Failure::arguments(error.render().to_string().trim())),
    };
    exit::when_memory_is_out();
    exit::when_files_are_limited();
    let (output, json) = (Output::new(&args), args.json);
    let run = std::panic::catch_unwind(|| commands::run(args.command, &output));
    let exit = match run.map(|outcome| outcome.and_then(|exit| output.finish(exit))) {
        Ok(Ok(exit)) => exit,
        Ok(Err(failure)) => report(json, &failure),
        Err(_) => report(json, &Failure::internal("this is a bug in paritas; please report it")),
    };
    output.print_next_steps();
    exit
}

fn report(json: bool, failure: &Failure) -> Exit {
    output::print_failure(json, failure);
    failure.exit
}
