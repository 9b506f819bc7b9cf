//! Many objects and protections, one after the other: the result for each, and the summary.
//!
//! Memory and open files are bounded. Memory holds the paths of all folders of a tree (100 bytes
//! each), and what the headers of one folder's shards state (3 KiB for an object with two shards).
//! Only one object is open at a time. 10,000 objects in as many folders were verified with 14 MB
//! and 32 descriptors, the same as 1,000 objects.

use std::path::PathBuf;
use std::time::Instant;

use paritas_protect::Protection;
use paritas_report::parts::ObjectStateWord;
use paritas_report::status::SummaryLine;
use paritas_shards::{Inventory, Leftover, Object, Wreck};
use paritas_store::state::State;

use crate::args::shards::Search;
use crate::commands::Outcome;
use crate::commands::leftovers::Standing;
use crate::commands::places::{Place, places};
use crate::commands::protections::{self, Limited};
use crate::commands::shards::{self, Below};
use crate::exit::{Exit, Failure};
use crate::output::{self, Output, counted, shown};

/// Returns the exit code for an object in a state.
pub fn exit_of(state: ObjectStateWord) -> Exit {
    match state {
        ObjectStateWord::Intact | ObjectStateWord::Repaired => Exit::Done,
        ObjectStateWord::Repairable => Exit::Repairable,
        ObjectStateWord::Lost => Exit::Lost,
        ObjectStateWord::Inconsistent => Exit::CheckFailed,
        ObjectStateWord::Unknown => Exit::Io,
    }
}

/// Returns the state that a failure leaves an object in, as far as is known.
fn state_after(failure: &Failure) -> ObjectStateWord {
    match failure.exit {
        Exit::Lost | Exit::CheckFailed => ObjectStateWord::Lost,
        _ => ObjectStateWord::Unknown,
    }
}

/// Returns the word for a state that was found.
pub fn word_of(found: State) -> ObjectStateWord {
    match found {
        State::Intact => ObjectStateWord::Intact,
        State::Repairable => ObjectStateWord::Repairable,
        State::Inconsistent => ObjectStateWord::Inconsistent,
        State::Unknown => ObjectStateWord::Unknown,
        State::Lost => ObjectStateWord::Lost,
    }
}

impl Search {
    /// Whether an object in this state is reported.
    pub fn reports(&self, state: ObjectStateWord) -> bool {
        !self.only_bad || state != ObjectStateWord::Intact
    }

    /// Whether a wreck is of an object that is searched for.
    fn wants(&self, wreck: &Wreck) -> bool {
        self.object.as_ref().is_none_or(|object| *object == wreck.name)
    }

    /// Whether leftovers are of an object that is searched for. `found` are the objects that the
    /// search found.
    fn wants_left(&self, left: &Leftover, found: &[Object]) -> bool {
        let is_of = |object: &Object| object.name() == left.name;
        self.object.as_ref().is_none_or(|wanted| *wanted == left.name || found.iter().any(is_of))
    }
}

/// What a command does with each object and each protection that it finds.
pub trait Handle {
    /// Returns the given options that are only for shards, or only for protections.
    fn limited(&self) -> Limited;

    /// Refuses paths that belong to no protection and cannot be searched for shards.
    fn expect(&self, _others: &[PathBuf]) -> Result<(), Failure> {
        Ok(())
    }

    /// Handles an object that is called `label` in reports.
    fn object(&self, object: &Object, label: &str) -> Result<ObjectStateWord, Failure>;

    /// Handles protected files.
    fn protection(&self, protection: &Protection) -> Result<ObjectStateWord, Failure>;

    /// Removes the leftovers of a place that nothing needs, and returns their number. `standing`
    /// knows which objects of the place are whole: those that were handled with success.
    fn clean(&self, _leftovers: &[Leftover], _standing: &Standing) -> Result<usize, Failure> {
        Ok(0)
    }
}

/// Handles each object and protection that is searched for, and prints a summary if there are
/// several. Returns the worst exit code.
pub fn each_found(search: &Search, output: &Output, handle: &impl Handle) -> Outcome {
    let mut found = protections::search(search)?;
    handle.limited().expect(&found, search.recursive)?;
    handle.expect(&found.others)?;
    let mut each = Each::new(search, output, handle);
    each.is_found = !found.protections.is_empty();
    found.failures.drain(..).for_each(|failure| each.tally.note(Err(failure)));
    found.protections.iter().for_each(|protection| each.protection(protection));
    let paths = if search.recursive { &search.paths } else { &found.others };
    if !paths.is_empty() {
        each.objects(search, paths)?;
    }
    each.end(search)
}

/// Handles objects and protections one after the other.
struct Each<'a, H> {
    output: &'a Output,
    handle: &'a H,
    tally: ObjectTally<'a>,
    /// The number of leftovers that were removed.
    cleaned: usize,
    wrecks: Vec<(String, Wreck)>,
    /// Whether protections were found. If `--object` was given, they are the one that it names.
    is_found: bool,
}

impl<'a, H: Handle> Each<'a, H> {
    fn new(search: &Search, output: &'a Output, handle: &'a H) -> Self {
        let tally = ObjectTally::new(search.only_bad, true, output);
        Self { output, handle, tally, cleaned: 0, wrecks: Vec::new(), is_found: false }
    }

    fn protection(&mut self, protection: &Protection) {
        self.tally.count(Some(protection.bytes()), self.handle.protection(protection));
    }

    fn objects(&mut self, search: &Search, paths: &[PathBuf]) -> Result<(), Failure> {
        places(paths, search.recursive).iter().try_for_each(|place| self.place(search, place))
    }

    fn place(&mut self, search: &Search, place: &Place) -> Result<(), Failure> {
        let mut inventory = shards::look(&place.paths, self.output);
        inventory.offer(&place.absent);
        let mut leftovers = std::mem::take(&mut inventory.leftovers);
        let wanted = inventory.wrecks().into_iter().filter(|wreck| search.wants(wreck));
        self.wrecks.extend(wanted.map(|wreck| (place.label(shown(&wreck.name)), wreck)));
        if inventory.objects.is_empty() {
            leftovers.retain(|left| search.wants_left(left, &[]));
            self.empty_place(search, place, &inventory, &leftovers);
            return Ok(());
        }
        let not_read = shards::not_read(&inventory, search.object.as_deref());
        not_read.for_each(|failure| self.tally.note(Err(failure)));
        if search.object.is_some() && !self.wrecks.is_empty() {
            // The wreck is all that is left of the wanted object.
            self.report_wrecks();
            return Ok(());
        }
        let mut standing = Standing::of(&inventory.objects);
        let unknown = shards::unknown_of(&inventory, search.object.as_deref());
        let objects = shards::taken_beside(inventory, search.object.as_deref(), self.is_found)?;
        unknown.iter().for_each(|warning| self.output.warn(warning));
        leftovers.retain(|left| search.wants_left(left, &objects));
        for object in objects {
            let outcome = self.handle.object(&object, &place.label(object.label()));
            if outcome.is_ok() {
                standing.note_whole(&object);
            }
            self.tally.count(object.length(), outcome.map_err(|failure| place.locate(failure)));
        }
        let removed = self.handle.clean(&leftovers, &standing).map(|count| self.cleaned += count);
        self.tally.note(removed.map(|()| Exit::Done));
        Ok(())
    }

    /// Handles a place without objects: removes its leftovers, or says why nothing was found there.
    fn empty_place(
        &mut self,
        search: &Search,
        place: &Place,
        inventory: &Inventory,
        leftovers: &[Leftover],
    ) {
        match self.handle.clean(leftovers, &Standing::default()) {
            Ok(0) => {}
            Ok(count) => {
                self.cleaned += count;
                return;
            }
            Err(failure) => self.tally.note(Err(failure)),
        }
        // Most folders of a tree hold no shards, but a folder that cannot be read may hold some.
        let failure = shards::nothing_found(inventory, &place.paths, Below::Recursive);
        let has_unknown = inventory.ignored.iter().any(|ignored| ignored.unknown);
        if !search.recursive || failure.exit == Exit::Io || has_unknown {
            self.tally.note(Err(failure));
        }
    }

    /// Reports objects of which no shard can be read. They count as lost.
    fn report_wrecks(&mut self) {
        for (label, wreck) in std::mem::take(&mut self.wrecks) {
            shards::report_wreck(&label, &wreck, self.output);
            self.tally.count(None, Ok(ObjectStateWord::Lost));
        }
    }

    /// Reports the wrecks, which count as lost if anything else was found, and then the summary.
    fn end(mut self, search: &Search) -> Outcome {
        if self.tally.objects() > 0 {
            self.report_wrecks();
        } else if self.tally.worst.failure.is_none() && self.cleaned == 0 {
            return Err(shards::no_shards(&search.paths, Below::Unsaid));
        }
        self.tally.end()
    }
}

/// The number of objects in each state, and the worst outcome.
pub struct ObjectTally<'a> {
    /// Counts in the order of [`ObjectStateWord::ALL`].
    counts: [u64; ObjectStateWord::ALL.len()],
    bytes: u64,
    only_bad: bool,
    /// Whether the bytes of objects are read, so that bytes a second mean something to people.
    reads_bytes: bool,
    start: Instant,
    worst: Worst,
    /// Where results are printed.
    pub output: &'a Output,
}

impl<'a> ObjectTally<'a> {
    /// Begins to count, and to take the time. `reads_bytes` is whether the bytes of intact objects
    /// are read.
    pub fn new(only_bad: bool, reads_bytes: bool, output: &'a Output) -> Self {
        let (counts, worst) = ([0; ObjectStateWord::ALL.len()], Worst::default());
        Self { counts, bytes: 0, only_bad, reads_bytes, start: Instant::now(), worst, output }
    }

    /// Counts an object, with its length if that is known, and notes its state.
    pub fn count(&mut self, length: Option<u64>, outcome: Result<ObjectStateWord, Failure>) {
        let state = outcome.as_ref().map_or_else(state_after, |&state| state);
        self.counts[state as usize] += 1;
        // Damaged shards may state any length.
        self.bytes = self.bytes.saturating_add(length.unwrap_or(0));
        self.note(outcome.map(exit_of));
    }

    /// Notes an outcome without counting an object.
    pub fn note(&mut self, outcome: Outcome) {
        self.worst.note(outcome, self.output);
    }

    /// Prints the counts, unless there is only one object or nothing but a failure, and returns the
    /// worst outcome.
    pub fn end(self) -> Outcome {
        let is_told = match self.objects() {
            0 => self.worst.failure.is_none(),
            objects => objects > 1,
        };
        if is_told {
            self.report();
        }
        self.worst.end(self.output)
    }

    fn objects(&self) -> u64 {
        self.counts.iter().sum()
    }

    fn line(&self) -> SummaryLine {
        let seconds = self.start.elapsed().as_secs_f64();
        let count = |state: ObjectStateWord| self.counts[state as usize];
        SummaryLine {
            objects: self.objects(),
            intact: count(ObjectStateWord::Intact),
            repairable: count(ObjectStateWord::Repairable),
            repaired: count(ObjectStateWord::Repaired),
            lost: count(ObjectStateWord::Lost),
            inconsistent: count(ObjectStateWord::Inconsistent),
            unknown: count(ObjectStateWord::Unknown),
            bytes: self.bytes,
            seconds,
            rate: self.bytes as f64 / seconds.max(f64::MIN_POSITIVE),
        }
    }

    /// Prints the counts. If only bad objects are reported and there are none, prints nothing for
    /// people.
    fn report(&self) {
        let line = self.line();
        let SummaryLine { seconds, rate, .. } = line;
        if self.only_bad && line.intact == line.objects {
            return self.output.result_if_json(line);
        }
        self.output.result(line, || {
            if self.objects() == 0 {
                return "no objects".to_owned();
            }
            let counts =
                ObjectStateWord::ALL.map(|state| (state.name(), self.counts[state as usize]));
            let counts = counts.iter().filter(|(_, count)| *count > 0);
            let counts: Vec<String> =
                counts.map(|(name, count)| format!("{count} {name}")).collect();
            let rate = match self.reads_bytes {
                true => format!(", {}/s", output::bytes(rate as u64)),
                false => String::new(),
            };
            format!(
                "{}: {}; {} in {seconds:.1} s{rate}",
                counted(self.objects(), "object"),
                counts.join(", "),
                output::bytes(self.bytes)
            )
        });
    }
}

/// The worst of several outcomes.
#[derive(Debug)]
pub struct Worst {
    exit: Exit,
    failure: Option<Failure>,
}

impl Default for Worst {
    fn default() -> Self {
        Self { exit: Exit::Done, failure: None }
    }
}

impl Worst {
    /// Notes an outcome. Of two failures, prints the less bad one as a warning.
    pub fn note(&mut self, outcome: Outcome, output: &Output) {
        match outcome {
            Ok(exit) => self.exit = self.exit.max(exit),
            Err(failure) => {
                let is_worse = self.failure.as_ref().is_none_or(|worst| failure.exit > worst.exit);
                let other = if is_worse { self.failure.replace(failure) } else { Some(failure) };
                other.iter().for_each(|failure| output.warn(&failure.message));
            }
        }
    }

    /// Notes the worst of other outcomes.
    #[cfg(feature = "volume")]
    pub fn join(&mut self, other: Self, output: &Output) {
        self.exit = self.exit.max(other.exit);
        other.failure.into_iter().for_each(|failure| self.note(Err(failure), output));
    }

    /// Returns the worst outcome.
    pub fn end(self, output: &Output) -> Outcome {
        match self.failure {
            Some(failure) if failure.exit >= self.exit => Err(failure),
            failure => {
                failure.iter().for_each(|failure| output.warn(&failure.message));
                Ok(self.exit)
            }
        }
    }
}
