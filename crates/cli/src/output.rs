//! The output of a run: results for people or as JSON lines, progress, and failures.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::str::Utf8Chunk;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use paritas_report::Line;
use paritas_report::parts::TimestampEntry;
use paritas_report::status::{ErrorLine, ProgressLine, WarningLine};
use paritas_shards::Timestamp;
#[cfg(unix)]
use rustix::fs::{OFlags, fcntl_getfl};
use serde_json::Value;

pub use paritas_shards::{counted, shown};

use crate::args::{Args, help};
use crate::exit::{Exit, Failure};

/// The shortest time between two progress lines in JSON.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// The destination and the form of results. Clones share it.
#[derive(Debug, Clone)]
pub struct Output {
    json: bool,
    quiet: bool,
    /// Whether standard output carries an object's bytes, so that everything else goes to standard
    /// error.
    stdout_is_taken: bool,
    /// The first failure to print anything.
    failure: Arc<Mutex<Option<Failure>>>,
    /// The warnings printed so far; each is printed once.
    warned: Arc<Mutex<HashSet<String>>>,
    /// What to do next, for people.
    next_steps: Arc<Mutex<Vec<String>>>,
}

impl Output {
    /// Creates the output that the arguments ask for.
    pub fn new(args: &Args) -> Self {
        let stdout_is_taken = args.command.takes_stdout();
        Self {
            json: args.json,
            quiet: args.quiet,
            stdout_is_taken,
            failure: Arc::default(),
            warned: Arc::default(),
            next_steps: Arc::default(),
        }
    }

    /// Prints a result: `line` in JSON, or the text for people, which is made only if it is
    /// printed.
    pub fn result(&self, line: impl Into<Line>, text: impl FnOnce() -> String) {
        match self.json {
            true => self.print(line, Self::line),
            false => self.text(text),
        }
    }

    /// Whether results are printed in JSON.
    #[cfg(feature = "gateway")]
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether people want errors alone.
    #[cfg(feature = "gateway")]
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Prints a document that is not a line of results: `value` in JSON, or the text for people.
    pub fn document(&self, value: &Value, text: impl FnOnce() -> String) {
        match self.json {
            true => self.line(&value.to_string()),
            false => self.text(text),
        }
    }

    /// Prints a text that ends with a name, unescaped and followed by `end`; in JSON, `line`.
    #[cfg(feature = "volume")]
    pub fn name(&self, line: impl Into<Line>, end: char, text: impl FnOnce() -> String) {
        if self.json {
            self.print(line, Self::line);
        } else if !self.quiet {
            self.note("standard output", write!(io::stdout(), "{}{end}", text()));
        }
    }

    /// Prints a result in JSON only, because it does not interest people.
    pub fn result_if_json(&self, line: impl Into<Line>) {
        if self.json {
            self.print(line, Self::line);
        }
    }

    /// Notes what to do next. People are told of it at the end of the run, after the failure if
    /// there is one.
    #[cfg(feature = "volume")]
    pub fn next(&self, step: &str) {
        let mut steps = self.next_steps.lock().unwrap_or_else(PoisonError::into_inner);
        if !steps.iter().any(|known| known == step) {
            steps.push(step.to_owned());
        }
    }

    /// Prints what to do next, for people. It goes to standard error, so that readers of standard
    /// output get results alone.
    pub fn print_next_steps(&self) {
        let steps = self.next_steps.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.json && !self.quiet {
            steps.iter().for_each(|step| self.error_line(&format!("next: {}", printable(step))));
        }
    }

    /// Prints a warning on standard error, unless it has been printed before.
    pub fn warn(&self, message: &str) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.insert(message.to_owned()) {
            drop(warned);
            self.warn_again(message);
        }
    }

    /// Prints a warning on standard error, as services do: what fails in January and in March is
    /// told twice.
    pub fn warn_again(&self, message: &str) {
        if self.json {
            self.print(WarningLine { message: message.to_owned() }, Self::error_line);
        } else if !self.quiet {
            self.error_line(&format!("paritas: warning: {}", printable(message)));
        }
    }

    fn text(&self, text: impl FnOnce() -> String) {
        if !self.quiet {
            self.line(&printable(text().trim_end()));
        }
    }

    /// Prints a line in JSON with `to`, which chooses the stream.
    fn print(&self, line: impl Into<Line>, to: fn(&Self, &str)) {
        match line.into().to_json() {
            Ok(text) => to(self, &text),
            Err(error) => self.keep(Failure::internal(format!("a line cannot be made: {error}"))),
        }
    }

    fn line(&self, line: &str) {
        match self.stdout_is_taken {
            true => self.error_line(line),
            false => self.note("standard output", writeln!(io::stdout(), "{line}")),
        }
    }

    fn error_line(&self, line: &str) {
        self.note("standard error", writeln!(io::stderr(), "{line}"));
    }

    /// Keeps the first failure to print anything.
    fn note(&self, stream: &'static str, printed: io::Result<()>) {
        if let Err(failure) = expect_printed(stream, printed) {
            self.keep(failure);
        }
    }

    fn keep(&self, failure: Failure) {
        let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(failure);
    }

    /// Returns the exit code of the run, unless something could not be printed.
    ///
    /// # Errors
    /// If something could not be printed ([`Exit::Io`]).
    pub fn finish(&self, exit: Exit) -> Result<Exit, Failure> {
        self.note("standard output", io::stdout().flush());
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(exit), Err)
    }

    /// Creates a bar for a search of `evaluations` schedules. It is shown on a terminal only, so
    /// the JSON of a search is the same every time.
    pub fn search_bar(&self, evaluations: Option<u64>) -> ProgressBar {
        self.bar(evaluations, |is_known| match is_known {
            true => "{bar:30} {pos}/{len} schedules  {per_sec}  ETA {eta}",
            false => "{spinner} {pos} schedules  {per_sec}  {elapsed}",
        })
    }

    /// Creates a bar, which is hidden unless people watch a terminal. `template` is told whether
    /// the total is known.
    fn bar(&self, total: Option<u64>, template: fn(bool) -> &'static str) -> ProgressBar {
        if self.json || self.quiet || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template(template(total.is_some()));
        ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr())
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }

    /// Creates the progress of a job over `total` bytes, if that number is known.
    pub fn progress(&self, total: Option<u64>) -> Progress {
        Progress::new(self.clone(), total)
    }
}

/// The progress of a running job: a bar on a terminal, lines in JSON, nothing elsewhere.
#[derive(Debug)]
pub struct Progress {
    output: Output,
    bar: ProgressBar,
    total: Option<u64>,
    done: AtomicU64,
    start: Instant,
    last_line: Mutex<Instant>,
}

impl Progress {
    fn new(output: Output, total: Option<u64>) -> Self {
        let bar = output.bar(total, |is_known| match is_known {
            true => "{bar:30} {bytes}/{total_bytes}  {bytes_per_sec}  ETA {eta}",
            false => "{spinner} {bytes}  {bytes_per_sec}  {elapsed}",
        });
        let now = Instant::now();
        Self { output, bar, total, done: AtomicU64::new(0), start: now, last_line: Mutex::new(now) }
    }

    /// Notes that `bytes` more bytes are done.
    pub fn advance(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        self.bar.set_position(done);
        if self.output.json
            && let Ok(mut last) = self.last_line.try_lock()
            && last.elapsed() >= PROGRESS_INTERVAL
        {
            *last = Instant::now();
            self.print_line(done);
        }
    }

    /// Calls `print` while the bar is hidden.
    #[cfg(feature = "volume")]
    pub fn aside(&self, print: impl FnOnce()) {
        match self.bar.is_hidden() {
            true => print(),
            false => self.bar.suspend(print),
        }
    }

    /// Removes the bar, and returns the seconds that the job took.
    pub fn finish(&self) -> f64 {
        self.bar.finish_and_clear();
        self.seconds()
    }

    fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    fn print_line(&self, done: u64) {
        let rate = done as f64 / self.seconds();
        let eta = self.total.map(|total| total.saturating_sub(done) as f64 / rate.max(1.0));
        let line = ProgressLine { bytes: done, total: self.total, rate, eta_s: eta };
        self.output.print(line, Output::line);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Prints a failure on standard error.
pub fn print_failure(json: bool, failure: &Failure) {
    let (code, kind) = (failure.exit as u8, failure.exit.word());
    let line = Line::from(ErrorLine { code, kind, message: failure.message.clone() });
    let _ = match line.to_json() {
        Ok(line) if json => writeln!(io::stderr(), "{line}"),
        _ => writeln!(io::stderr(), "paritas: {}", printable(&failure.message)),
    };
}

/// Prints the parser's error. If arguments contain characters that control a terminal, they are
/// escaped and parsed again, so that the error shows them escaped.
pub fn print_usage(error: clap::Error, arguments: &[OsString]) {
    let escaped: Vec<String> = arguments.iter().map(|arg| shown(arg).to_string()).collect();
    let is_harmless =
        arguments.iter().zip(&escaped).all(|(given, escaped)| given == escaped.as_str());
    let error = if is_harmless { Some(error) } else { help::parse(&escaped).err() };
    let is_text = arguments.iter().all(|argument| argument.to_str().is_some());
    let _ = match error {
        Some(error) => error.print(),
        None if !is_text => {
            let given = escaped.iter().zip(arguments).find(|(_, given)| given.to_str().is_none());
            let given = given.map(|(escaped, _)| escaped.as_str()).unwrap_or_default();
            writeln!(io::stderr(), "error: a name or value must be UTF-8; got {given}")
        }
        None => writeln!(io::stderr(), "error: the arguments cannot be understood"),
    };
}

/// Prints `words` on standard error, for a call without arguments.
pub fn print_words(words: &str) {
    let _ = writeln!(io::stderr(), "{words}");
}

/// Turns an error of printing into a failure, unless the reader has gone away, as in
/// `paritas codes | head`.
///
/// # Errors
/// If printing failed for any other reason ([`Exit::Io`]).
pub fn expect_printed(stream: &str, printed: io::Result<()>) -> Result<(), Failure> {
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::io(format!("writing to {stream}"), &error))
        }
        _ => Ok(()),
    }
}

/// Whether a standard stream was closed when the process began. Rust opens /dev/null in its place,
/// for reading and writing.
#[cfg(unix)]
pub fn was_closed(stream: &impl std::os::fd::AsFd) -> bool {
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;
    let copy = stream.as_fd().try_clone_to_owned();
    let opened = copy.and_then(|stream| File::from(stream).metadata());
    let is_null = match (std::fs::metadata("/dev/null"), opened) {
        (Ok(null), Ok(stream)) => (null.rdev(), null.ino()) == (stream.rdev(), stream.ino()),
        _ => false,
    };
    is_null && fcntl_getfl(stream).is_ok_and(|flags| flags.contains(OFlags::RDWR))
}

/// Refuses standard output that was closed when the process began (`>&-`), or is open for reading
/// alone: an object's bytes would be lost there, because Rust hides the error of such a write.
///
/// # Errors
/// If it cannot be written ([`Exit::Io`]).
pub fn expect_open_stdout() -> Result<(), Failure> {
    #[cfg(unix)]
    {
        let refuse =
            |why: &str| Err(Failure::io("writing to standard output", &io::Error::other(why)));
        if was_closed(&io::stdout()) {
            return refuse("it is closed, or is /dev/null opened for reading as well");
        }
        if is_opened_for(&io::stdout(), OFlags::RDONLY) {
            return refuse("it is open for reading alone");
        }
    }
    Ok(())
}

/// Whether a standard stream was opened with an access mode.
#[cfg(unix)]
pub fn is_opened_for(stream: &impl std::os::fd::AsFd, mode: OFlags) -> bool {
    fcntl_getfl(stream).is_ok_and(|flags| flags.intersection(OFlags::RWMODE) == mode)
}

/// Escapes everything in a text that controls a terminal, except for line breaks. Names are already
/// escaped where messages are made, line breaks included; this catches what was forgotten there.
fn printable(text: &str) -> String {
    text.split('\n').map(|line| shown(line).to_string()).collect::<Vec<_>>().join("\n")
}

/// Returns a name in one line whose characters are all visible on a terminal. A name that is empty,
/// has blanks at either end or characters that control a terminal, or begins like a quoted one, is
/// quoted for shells.
pub fn quoted(name: &str) -> String {
    let is_shown = shown(name).to_string() == name;
    let is_quoted = name.starts_with('\'') || name.starts_with("$'");
    if !name.is_empty() && name.trim() == name && !is_quoted && is_shown {
        return name.to_owned();
    }
    escaped(name.as_bytes())
}

/// Returns a word in the form `$'…'` of shells, in which every character is visible.
fn escaped(word: &[u8]) -> String {
    let is_harmful = |c: char| shown(c.encode_utf8(&mut [0; 4])).to_string() != c.to_string();
    let escape = |c: char| match c {
        '\'' | '\\' => format!("\\{c}"),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '\r' => "\\r".to_owned(),
        '\0'..='\x7f' if is_harmful(c) => format!("\\x{:02x}", u32::from(c)),
        // All others that are harmful have four digits.
        c if is_harmful(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    let byte = |byte: &u8| format!("\\x{byte:02x}");
    let of_chunk = |chunk: Utf8Chunk<'_>| -> String {
        chunk.valid().chars().map(escape).chain(chunk.invalid().iter().map(byte)).collect()
    };
    format!("$'{}'", word.utf8_chunks().map(of_chunk).collect::<String>())
}

/// Returns a word of a command, quoted for shells if it must be.
fn shell_word(word: &OsStr) -> String {
    let bytes = word.as_encoded_bytes();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:@%".contains(c);
    match word.to_str().filter(|text| shown(text).to_string() == *text) {
        None => escaped(bytes),
        Some(text) if !text.is_empty() && text.chars().all(is_plain) => text.to_owned(),
        Some(text) => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Returns a path as a word of a command for shells.
pub fn shell_path(path: &Path) -> String {
    let is_option = path.as_os_str().as_encoded_bytes().starts_with(b"-");
    match path.as_os_str().is_empty() {
        true => ".".to_owned(),
        // Without `./`, a command would take the path for an option.
        false if is_option => shell_word(Path::new(".").join(path).as_os_str()),
        false => shell_word(path.as_os_str()),
    }
}

/// Returns a name as a word of a command for shells, which must stand behind all options.
pub fn shell_name(name: &str) -> String {
    let behind = if name.starts_with('-') { "-- " } else { "" };
    format!("{behind}{}", shell_word(name.as_ref()))
}

/// Returns permissions as `chmod` takes them.
pub fn mode_text(mode: u32) -> String {
    format!("{mode:04o}")
}

/// Returns a time as an entry of a JSON line.
pub fn time_entry(Timestamp { seconds, nanoseconds }: Timestamp) -> TimestampEntry {
    TimestampEntry { seconds, nanoseconds }
}

/// Returns a time as text in UTC. If it is beyond the calendar, returns the stored seconds.
pub fn time_text(Timestamp { seconds, nanoseconds }: Timestamp) -> String {
    let after = jiff::SignedDuration::from_nanos(nanoseconds.into());
    let time = jiff::Timestamp::from_second(seconds).and_then(|time| time.checked_add(after));
    time.map_or_else(|_| format!("{seconds} s after 1970"), |time| time.to_string())
}

/// Returns a number of bytes as text for people.
pub fn bytes(count: u64) -> String {
    indicatif::BinaryBytes(count).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever a path or name holds, a shell reads it back as it was.
    #[cfg(unix)]
    #[test]
    fn shells_read_words_as_they_were() {
        use std::os::unix::ffi::OsStrExt;

        for (path, expected) in [
            (&b"plain/path"[..], "plain/path"),
            (b"", "."),
            (b"-r", "./-r"),
            (b"it's", r"'it'\''s'"),
            (b"nl\ndir", r"$'nl\ndir'"),
            (b"bad\xff\x0a", r"$'bad\xff\n'"),
        ] {
            let path = Path::new(OsStr::from_bytes(path));
            assert_eq!(shell_path(path), expected);
            let echo = format!("printf %s {expected}");
            let said = std::process::Command::new("bash").args(["-c", &echo]).output().unwrap();
            let meant = if path.as_os_str() == "-r" { Path::new("./-r") } else { path };
            assert!(path.as_os_str().is_empty() || said.stdout == meant.as_os_str().as_bytes());
        }
        assert_eq!(shell_name("-dash it"), "-- '-dash it'");
    }

    #[test]
    fn names_are_quoted_where_a_terminal_would_hide_something() {
        for (name, expected) in [
            ("plain name", "plain name"),
            ("", "$''"),
            ("файл", "файл"),
            ("blank ", "$'blank '"),
            ("\u{a0}x", "$'\u{a0}x'"),
            ("new\nline", "$'new\\nline'"),
            ("it's\t\\\u{1b}[K", "$'it\\'s\\t\\\\\\x1b[K'"),
            ("\u{202e}gpj", "$'\\u202egpj'"),
            ("'x'", "$'\\'x\\''"),
            ("it's", "it's"),
        ] {
            assert_eq!(quoted(name), expected);
        }
    }
}
