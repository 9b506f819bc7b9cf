//! Help on two pages, and hints for users of other tools.
//!
//! `-h` fills one screen; `--help` prints the whole page. Both come from the definitions of the
//! flags. `-h` shows the first paragraph of a flag's text, and leaves out flags with
//! `hide_short_help`. Of the text about a command, it shows the first examples.

use std::error::Error;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches};

use crate::args::Args;

/// Commands grouped by purpose, in the order of the first screen.
const GROUPS: &[(&str, &[&str])] = &[
    ("Your files", &["protect", "verify", "repair", "info"]),
    ("Shards", &["encode", "decode", "promote", "import", "export"]),
    #[cfg(feature = "gateway")]
    ("Volumes", &["volume", "serve"]),
    #[cfg(all(feature = "volume", not(feature = "gateway")))]
    ("Volumes", &["volume"]),
    ("Codes and this machine", &["codes", "schedule", "bench", "tune", "doctor", "schema"]),
    ("Your shell", &["completions", "man"]),
];

/// Largest number of examples that `-h` shows.
const EXAMPLES: usize = 2;

/// Words of par2, snapraid, rsync and other tools, each with the command for it here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("add", "protect"),
    ("backup", "protect"),
    ("check", "verify"),
    ("create", "protect"),
    ("diff", "protect --update --dry-run"),
    ("fix", "repair"),
    ("list", "info"),
    ("ls", "info"),
    ("recover", "repair"),
    ("restore", "repair"),
    ("scrub", "verify"),
    ("status", "verify --quick"),
    ("sync", "protect --update"),
    ("update", "protect --update"),
];

/// What tools for objects call a command of `paritas volume`, and what it is called here.
const ELSEWHERE_IN_VOLUMES: &[(&str, &str)] = &[
    ("check", "verify"),
    ("cp", "put"),
    ("create", "init"),
    ("delete", "rm"),
    ("download", "get"),
    ("fsck", "verify"),
    ("info", "stat"),
    ("list", "ls"),
    ("remove", "rm"),
    ("restore", "get"),
    ("scrub", "repair --scrub"),
    ("upload", "put"),
];

/// Commands that take a flag instead of a required argument, and what the flag does.
const ALTERNATIVES: &[(&[&str], &str)] = &[
    (&["volume", "promote"], "`--all` takes all objects"),
    (&["volume", "reencode"], "`--all` takes all objects"),
    (&["serve"], "`--anonymous` accepts every request without a key"),
];

/// What other tools call the flag by which they take all that is in a folder.
const RECURSIVE: [&str; 3] = ["-r", "-R", "--recursive"];

/// Commands that a build may lack: the command, its subject, the feature that includes it, and
/// whether this build has the feature.
const OPTIONAL: &[(&str, &str, &str, bool)] = &[
    ("volume", "volumes", "volume", cfg!(feature = "volume")),
    ("serve", "S3 gateway", "gateway", cfg!(feature = "gateway")),
];

/// Parses `arguments`; the first is the name of the program.
///
/// # Errors
/// If the arguments cannot be parsed, or if they ask for help or the version. For a word of another
/// tool, the error names the command to use here; for a command that this build lacks, it names the
/// builds that have it.
pub fn parse(
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> clap::error::Result<Args> {
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let answered = |mut error: clap::Error| {
        if let Some(why) = left_out(&error) {
            return command().error(ErrorKind::InvalidSubcommand, why);
        }
        if let Some(error) = no_number(&error) {
            return error;
        }
        if let Some(answer) = answer(&error, &arguments) {
            error.remove(ContextKind::SuggestedSubcommand);
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![answer]));
        }
        error
    };
    // The pages of help take longer to write than the arguments to parse.
    let matches = Args::command()
        .try_get_matches_from(&arguments)
        .or_else(|_| command().try_get_matches_from(&arguments).map_err(answered))?;
    Args::from_arg_matches(&matches)
}

/// Returns the definition of the program, with its help on two pages.
pub fn command() -> Command {
    let command = Args::command();
    let groups = grouped(&command);
    let commands = command.mut_subcommands(paged);
    let whole = commands.get_after_help().map(StyledStr::to_string).unwrap_or_default();
    let short =
        format!("{}\n\n`paritas COMMAND -h` has the options of a command.", examples(&whole));
    commands
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\nOptions:\n{{options}}{{after-help}}"
        ))
        .after_help(short)
        .after_long_help(whole)
}

/// Gives a command and its subcommands a short page beside the whole one.
fn paged(command: Command) -> Command {
    let whole = command.get_after_help().map(StyledStr::to_string).unwrap_or_default();
    let short = if command.has_subcommands() { String::new() } else { examples(&whole) };
    let command = command.mut_subcommands(paged);
    let command = match command.has_subcommands() {
        // The list of commands fills the screen, so the options are left out.
        true => command.help_template(
            "{about-with-newline}\n{usage-heading} {usage}\n\nCommands:\n{subcommands}{after-help}",
        ),
        false => command,
    };
    command.after_help(short).after_long_help(whole)
}

/// Returns the heading of the examples in `whole`, and the first [`EXAMPLES`] of them.
fn examples(whole: &str) -> String {
    let lines = whole.lines().skip_while(|line| !line.starts_with("Example"));
    lines.take_while(|line| !line.is_empty()).take(1 + EXAMPLES).collect::<Vec<_>>().join("\n")
}

/// Returns the list of the commands in their groups.
fn grouped(command: &Command) -> String {
    let line = |name: &&str| {
        let about = command.find_subcommand(name).and_then(Command::get_about);
        format!("  {name:<13}{}\n", about.map(StyledStr::to_string).unwrap_or_default())
    };
    let group = |(title, names): &(&str, &[&str])| {
        format!("{title}:\n{}", names.iter().map(line).collect::<String>())
    };
    GROUPS.iter().map(group).collect()
}

/// Returns what the program prints when it is called without arguments: about a dozen lines.
pub fn first_words() -> String {
    let group = |(title, names): &(&str, &[&str])| format!("  {title:<24}{}\n", names.join(", "));
    let groups: String = GROUPS.iter().map(group).collect();
    let command = Args::command();
    let whole = command.get_after_help().map(StyledStr::to_string).unwrap_or_default();
    format!("{}\n\nCommands:\n{groups}\n`paritas -h` says what they do.", examples(&whole))
}

/// Returns the text that an error has as context of this kind.
fn text(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// Returns the message about a command that this build lacks.
fn left_out(error: &clap::Error) -> Option<String> {
    let word = text(error, ContextKind::InvalidSubcommand)?;
    let (_, what, feature, _) = OPTIONAL.iter().find(|(name, .., here)| *name == word && !here)?;
    Some(format!(
        "this build of `paritas` has no {what}: it was made without the feature `{feature}`; the \
         packages of a release have it, and so does a build from source with default features"
    ))
}

/// Returns the error for a value that should be a whole number and is none, in the words of a user.
fn no_number(error: &clap::Error) -> Option<clap::Error> {
    let why = error.source()?.downcast_ref::<ParseIntError>()?;
    let why = match why.kind() {
        IntErrorKind::PosOverflow => "it is too large",
        IntErrorKind::Zero => "it must be at least 1",
        _ => "it must be a whole number, without a sign",
    };
    let option = text(error, ContextKind::InvalidArg)?;
    let value = text(error, ContextKind::InvalidValue)?;
    let message = format!("invalid value '{value}' for '{option}': {why}");
    let more = "For more information, try '--help'.";
    Some(clap::Error::raw(error.kind(), format!("{message}\n\n{more}\n")))
}

/// Whether clap advises to write a word after `--`.
fn is_after_dashes(tip: &ContextValue) -> bool {
    tip.to_string().contains("as a value, use '-- ")
}

/// Returns a hint for a word of another tool, or for a frequent mistake.
fn answer(error: &clap::Error, arguments: &[OsString]) -> Option<StyledStr> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = text(error, ContextKind::InvalidSubcommand)?;
            let (words, inner) = match is_command(arguments, &["volume"]) {
                true => (ELSEWHERE_IN_VOLUMES, "volume "),
                false => (ELSEWHERE, ""),
            };
            let (_, here) = words.iter().find(|(there, _)| *there == word)?;
            Some(format!("what other tools call `{word}` is `paritas {inner}{here}`").into())
        }
        ErrorKind::UnknownArgument | ErrorKind::ArgumentConflict
            if is_command(arguments, &["protect"]) =>
        {
            answer_about_protect(error, arguments).or_else(|| answer_about_value(error))
        }
        // clap names only the first of the two ways.
        ErrorKind::MissingRequiredArgument => {
            let (_, flag) = ALTERNATIVES.iter().find(|(words, _)| is_command(arguments, words))?;
            let missing = error.get(ContextKind::InvalidArg)?.to_string();
            (!missing.contains("<VOLUME>")).then(|| (*flag).into())
        }
        ErrorKind::UnknownArgument
            if error.get(ContextKind::Suggested).is_some_and(is_after_dashes) =>
        {
            answer_about_value(error)
        }
        // A folder that follows the volume file is meant as a node.
        ErrorKind::UnknownArgument if is_command(arguments, &["volume", "init"]) => {
            let folder = text(error, ContextKind::InvalidArg)?;
            let is_folder = !folder.starts_with('-');
            is_folder.then(|| format!("a node is given by `--node {folder}`").into())
        }
        _ => None,
    }
}

/// Returns a hint for a flag that `protect` does not take, or not with `--update`.
fn answer_about_protect(error: &clap::Error, arguments: &[OsString]) -> Option<StyledStr> {
    let names = [ContextKind::InvalidArg, ContextKind::PriorArg];
    let names = names.map(|kind| error.get(kind).map_or(String::new(), ToString::to_string));
    if names.iter().any(|name| name == "--update") {
        let settings = "an update keeps the settings; --force, with the new ones and without \
                        --update, makes all parity anew";
        return Some(settings.into());
    }
    let is_recursive = RECURSIVE.contains(&text(error, ContextKind::InvalidArg)?);
    is_recursive.then(|| match percent_of_par2(arguments) {
        // par2 takes -r10 for ten per cent.
        Some(percent) => {
            format!("what par2 calls `-r{percent}` is `--redundancy {percent}%`").into()
        }
        None => "`protect` takes folders with all that is in them".into(),
    })
}

/// Returns a hint for a word that clap would put after `--`, where it is no value of an option.
fn answer_about_value(error: &clap::Error) -> Option<StyledStr> {
    error.get(ContextKind::Suggested).filter(|tip| is_after_dashes(tip))?;
    let word = text(error, ContextKind::InvalidArg)?;
    let tip = format!("a value is written --OPTION={word}, and a file of this name ./{word}");
    (!word.starts_with("--")).then(|| tip.into())
}

/// Returns the percentage after `-r`, if there is one.
fn percent_of_par2(arguments: &[OsString]) -> Option<u16> {
    let at = arguments.iter().position(|it| it.to_str().is_some_and(|it| it.starts_with("-r")))?;
    let joined = arguments[at].to_str()?.strip_prefix("-r")?;
    let text = if joined.is_empty() { arguments.get(at + 1)?.to_str()? } else { joined };
    text.trim_end_matches('%').parse().ok()
}

/// Whether the arguments, after the program's name, begin with these words.
fn is_command(arguments: &[OsString], words: &[&str]) -> bool {
    let mut given = words.iter().zip(arguments.iter().skip(1));
    arguments.len() > words.len() && given.all(|(word, given)| given.to_str() == Some(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of lines of a screen.
    const SCREEN: usize = 24;

    /// Calls `test` with the name and the definition of every command.
    fn each(command: &Command, name: &str, test: &mut impl FnMut(&str, &Command)) {
        test(name, command);
        for inner in command.get_subcommands() {
            each(inner, &format!("{name} {}", inner.get_name()), test);
        }
    }

    #[test]
    fn short_help_fits_a_screen() {
        let mut long = Vec::new();
        let mut command = command();
        command.build();
        each(&command, "paritas", &mut |name, command| {
            let help = command.clone().render_help().to_string();
            let lines = help.trim_end().lines().count();
            // `paritas -h` and `paritas help -h` may be longer: they have a line for each command.
            if lines > SCREEN && !["paritas", "paritas help"].contains(&name) {
                long.push(format!("{name}: {lines}"));
            }
        });
        assert!(long.is_empty(), "{long:?}");
    }

    #[test]
    fn each_command_is_in_one_group() {
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        listed.sort_unstable();
        let command = Args::command();
        let mut all: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        all.sort_unstable();
        assert_eq!(listed, all);
    }

    #[test]
    fn a_command_that_was_left_out_is_known() {
        for (name, what, _, is_here) in OPTIONAL {
            assert_eq!(Args::command().find_subcommand(name).is_some(), *is_here);
            let error = parse(["paritas", name, "--no-such-flag"]).unwrap_err().to_string();
            assert_eq!(error.contains(&format!("this build of `paritas` has no {what}")), !is_here);
            assert!(!error.contains("unrecognized subcommand"), "{error}");
        }
    }

    #[test]
    fn words_of_other_tools_are_answered() {
        for (word, here) in ELSEWHERE {
            let error = parse(["paritas", word, "photos"]).unwrap_err().to_string();
            assert!(error.contains(&format!("`paritas {here}`")), "{error}");
            let name = here.split(' ').next().unwrap();
            assert!(Args::command().find_subcommand(name).is_some());
        }
        if let Some(volume) = Args::command().find_subcommand("volume") {
            for (word, here) in ELSEWHERE_IN_VOLUMES {
                let error = parse(["paritas", "volume", word, "x"]).unwrap_err().to_string();
                assert!(error.contains(&format!("`paritas volume {here}`")), "{error}");
                let (name, flag) = here.split_once(" --").unwrap_or((here, ""));
                let command = volume.find_subcommand(name).unwrap();
                let mut flags = command.get_arguments().filter_map(|one| one.get_long());
                assert!(flag.is_empty() || flags.any(|long| long == flag), "{here}");
            }
        }
        let error = parse(["paritas", "protect", "-r10", "photos"]).unwrap_err().to_string();
        assert!(error.contains("`--redundancy 10%`"), "{error}");
        let error = parse(["paritas", "protect", "photos", "-r", "10"]).unwrap_err().to_string();
        assert!(error.contains("`--redundancy 10%`"), "{error}");
        for flag in ["-r", "-R", "--recursive"] {
            let error = parse(["paritas", "protect", flag, "photos"]).unwrap_err().to_string();
            assert!(error.contains("`protect` takes folders with all"), "{error}");
        }
        // For `verify`, -r means --recursive.
        let error = parse(["paritas", "verify", "-r10", "photos"]).unwrap_err().to_string();
        assert!(!error.contains("--redundancy"), "{error}");
        let update = ["paritas", "protect", "--update", "photos", "--redundancy", "20%"];
        let error = parse(update).unwrap_err().to_string();
        assert!(error.contains("--force, with the new ones"), "{error}");
        let init = ["paritas", "volume", "init", "tank.toml", "--code", "2+1", "/disk1"];
        let error = parse(init).unwrap_err().to_string();
        assert!(error.contains("`--node /disk1`"), "{error}");
        for (words, flag) in ALTERNATIVES {
            let is_here = Args::command().find_subcommand(words[0]).is_some();
            let error = parse([&["paritas"], *words, &["tank.toml"]].concat()).unwrap_err();
            assert_eq!(error.to_string().contains(flag), is_here, "{error}");
            // Without a volume file, that is missing as well.
            let error = parse([&["paritas"], *words].concat()).unwrap_err();
            assert!(!error.to_string().contains(flag), "{error}");
        }
        assert!(parse(["paritas", "protect", "photos"]).is_ok());
    }
}
