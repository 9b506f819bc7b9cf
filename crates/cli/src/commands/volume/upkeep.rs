//! `paritas volume verify`, `repair`, `keep`, `replace`, `promote` and `reencode`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures::StreamExt;
use futures::future::{Either, select};
use paritas_report::parts::ObjectStateWord;
use paritas_report::volumes::{
    VolumeCollectLine, VolumePromoteLine, VolumeReencodeLine, VolumeRepairLine, VolumeReplaceLine,
    VolumeVerifyLine, WrittenFields,
};
use paritas_volume::{
    Error, ErrorKind, GetOptions, Listed, ObjectName, Overview, Reencoded, Repaired, Upkeep,
    Verdict, Volume,
};

use super::{AT_ONCE, each, listing, object, report};
use crate::args::volume::{Keep, Objects, Promote, Reencode, Repair, Replace, Verify};
use crate::commands::Outcome;
use crate::commands::many::{ObjectTally, exit_of, word_of};
use crate::exit::{Exit, Failure};
use crate::output::{self, Output, Progress, counted, shown};

/// Number of objects that are repaired side by side. Each may take the memory of a put.
const REPAIRS_AT_ONCE: usize = 4;

/// An object that a command works on.
#[derive(Clone)]
struct Item {
    name: ObjectName,
    /// The length, or 0 if the object was not found.
    length: u64,
    /// Whether the user gave this name, not a prefix or nothing.
    is_named: bool,
}

impl Item {
    /// An object whose name was found, not given.
    fn listed(name: ObjectName, length: u64) -> Self {
        Self { name, length, is_named: false }
    }
}

/// The progress over the bytes of objects. The bytes reported for an object count up to its length;
/// the rest counts when the object is done.
#[derive(Clone)]
struct Shares {
    progress: Arc<Progress>,
    left: Arc<Mutex<BTreeMap<ObjectName, u64>>>,
}

impl Shares {
    /// Begins to follow the work on `items`.
    fn of(volume: &mut Volume, items: &[Item], output: &Output) -> Self {
        let left = items.iter().map(|item| (item.name.clone(), item.length)).collect();
        // The lengths come from nodes, so their sum may overflow.
        let total = items.iter().map(|item| item.length).fold(0, u64::saturating_add);
        let left = Arc::new(Mutex::new(left));
        let shares = Self { progress: Arc::new(output.progress(Some(total))), left };
        let told = shares.clone();
        volume.watch(move |name, bytes| told.advance(name, bytes));
        shares
    }

    fn advance(&self, name: &ObjectName, bytes: u64) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(left) = left.get_mut(name) else { return };
        let bytes = bytes.min(*left);
        *left -= bytes;
        self.progress.advance(bytes);
    }

    /// Notes that the work on an object is done.
    fn finish(&self, name: &ObjectName) {
        self.advance(name, u64::MAX);
    }
}

/// The objects of the names and prefixes that the user gave.
#[derive(Default)]
struct Given {
    /// The objects, each once.
    items: Vec<Item>,
    /// Why some names and prefixes have no object, and objects whose names cannot be told.
    failures: Vec<Failure>,
}

impl From<Vec<Item>> for Given {
    fn from(items: Vec<Item>) -> Self {
        Self { items, failures: Vec::new() }
    }
}

/// Returns the objects of the given names and prefixes. `below` returns those of a prefix.
async fn given(
    volume: &Volume,
    names: &[String],
    below: impl AsyncFn(&str) -> Result<Given, Failure>,
) -> Given {
    let mut given = Given::default();
    let mut places: BTreeMap<ObjectName, usize> = BTreeMap::new();
    for name in names {
        let found = match name.ends_with('/') {
            true => below(name).await,
            false => named(volume, name).await.map(|item| vec![item].into()),
        };
        let found =
            found.unwrap_or_else(|failure| Given { failures: vec![failure], ..Given::default() });
        given.failures.extend(found.failures);
        for item in found.items {
            match places.entry(item.name.clone()) {
                Entry::Occupied(place) => given.items[*place.get()].is_named |= item.is_named,
                Entry::Vacant(place) => {
                    place.insert(given.items.len());
                    given.items.push(item);
                }
            }
        }
    }
    given
}

/// Returns the objects whose names begin with a prefix.
async fn listed(volume: &Volume, prefix: &str, output: &Output) -> Result<Given, Failure> {
    let overview = volume.overview(prefix).await?;
    let items = all_items(&overview, false, output);
    let failures: Vec<Failure> = overview.nameless().map(Failure::from).collect();
    match items.is_empty() && failures.is_empty() && !prefix.is_empty() {
        true => Err(listing::nothing_below(prefix)),
        false => Ok(Given { items, failures }),
    }
}

/// Returns all objects of an overview and, if `is_deep`, the names that were removed, because their
/// marks are looked at. Warns of nodes that did not answer.
fn all_items(overview: &Overview, is_deep: bool, output: &Output) -> Vec<Item> {
    overview.flaws().iter().for_each(|flaw| output.warn(&flaw.to_string()));
    let item = |(name, listed): (&ObjectName, Listed)| Item::listed(name.clone(), listed.length);
    let mark = |name: &ObjectName| Item::listed(name.clone(), 0);
    let marks = overview.removed().filter(|_| is_deep).map(mark);
    overview.objects().map(item).chain(marks).collect()
}

/// Returns the item for a name. Its length is 0 if the object is not found.
async fn named(volume: &Volume, name: &str) -> Result<Item, Failure> {
    let name = ObjectName::new(name)?;
    let found = volume.find(&name, GetOptions::default()).await;
    Ok(Item { name, length: found.map_or(0, |object| object.length()), is_named: true })
}

/// Turns the result of work on an object into that of the command. If the user gave the name of a
/// folder of names, the failure says so. Returns `None` for a listed object that was removed before
/// its turn.
async fn explained<T>(
    volume: &Volume,
    item: &Item,
    result: paritas_volume::Result<T>,
) -> Result<Option<T>, Failure> {
    match result {
        Err(error) if item.is_named && error.kind() == ErrorKind::NotFound => {
            Err(object::absent(volume, &item.name).await)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        result => Ok(Some(result?)),
    }
}

impl ObjectTally<'_> {
    /// Counts an object of a volume. A name without an object does not count as an object.
    fn count_present(&mut self, length: u64, outcome: Result<ObjectStateWord, Failure>) {
        match outcome {
            Err(failure) if failure.exit == Exit::NotRecognised => self.note(Err(failure)),
            outcome => self.count(Some(length), outcome),
        }
    }

    /// Counts the objects of a volume whose names cannot be told.
    fn count_nameless(&mut self, overview: &Overview) {
        overview.nameless().for_each(|error| self.count(None, Err(error.into())));
    }

    /// Notes the result of a repair that took `seconds`, and reports it. A removed object does
    /// not count as an object. People are told of it only if they named it or if something is left
    /// to do.
    fn note_repair(
        &mut self,
        item: &Item,
        repaired: Result<Option<Repaired>, Failure>,
        seconds: f64,
    ) {
        let repaired = match repaired {
            Ok(Some(repaired)) => repaired,
            Ok(None) => return,
            Err(failure) => return self.count_present(item.length, Err(failure)),
        };
        let line = repaired_line(&repaired, seconds);
        let state = after(&repaired);
        match repaired.is_removed && !repaired.is_owed && !item.is_named {
            true => self.output.result_if_json(line),
            false => self.output.result(line, || repaired_text(&repaired)),
        }
        match repaired.is_removed {
            true => self.note(Ok(exit_of(state))),
            false => self.count_present(item.length, Ok(state)),
        }
    }
}

/// Checks objects. Returns the worst exit code.
pub async fn verify(volume: &mut Volume, args: &Verify, output: &Output) -> Outcome {
    let overview = match args.names.is_empty() {
        true => Some(volume.overview("").await?),
        false => None,
    };
    let Given { items, failures } = match &overview {
        Some(overview) => {
            let items = all_items(overview, args.deep, output);
            Given::from(items)
        }
        None => given(volume, &args.names, async |it| listed(volume, it, output).await).await,
    };
    let (shares, mut tally) =
        (Shares::of(volume, &items, output), ObjectTally::new(args.only_bad, args.deep, output));
    failures.into_iter().for_each(|failure| tally.note(Err(failure)));
    let volume = &*volume;
    let check = async |item: Item| {
        let start = Instant::now();
        let verdict = match &overview {
            Some(overview) => volume.verify_by(overview, &item.name, args.deep).await,
            None => volume.verify(&item.name, args.deep).await,
        };
        let verdict = explained(volume, &item, verdict).await.transpose();
        shares.finish(&item.name);
        (item.length, verdict, start.elapsed().as_secs_f64())
    };
    let most = if args.deep { 1 } else { AT_ONCE };
    let mut checked = futures::stream::iter(items).map(check).buffered(most);
    overview.iter().for_each(|overview| tally.count_nameless(overview));
    while let Some((listed, verdict, seconds)) = checked.next().await {
        let Some(verdict) = verdict else { continue };
        let length = verdict.as_ref().map_or(listed, |verdict| verdict.listed.length);
        let tell =
            |verdict: Verdict| tell_verdict(&verdict, seconds, args.only_bad, &shares, output);
        tally.count_present(length, verdict.map(tell));
    }
    shares.progress.finish();
    tally.end()
}

/// Prints the verdict on an object, unless it is intact and only others are wanted. Returns the
/// state.
fn tell_verdict(
    verdict: &Verdict,
    seconds: f64,
    only_bad: bool,
    shares: &Shares,
    output: &Output,
) -> ObjectStateWord {
    let state = word_of(verdict.state);
    if !only_bad || state != ObjectStateWord::Intact {
        let line = verdict_line(verdict, state, seconds);
        shares.progress.aside(|| output.result(line, || verdict_text(verdict, state)));
    }
    state
}

fn verdict_line(verdict: &Verdict, state: ObjectStateWord, seconds: f64) -> VolumeVerifyLine {
    VolumeVerifyLine {
        version: report::version_fields(&verdict.name, &verdict.listed),
        status: state,
        stage: verdict.stage,
        stages: verdict.stages,
        missing: verdict.missing.clone(),
        spare: verdict.spare,
        read_bytes: verdict.read_bytes,
        flaws: report::flaw_entries(&verdict.flaws),
        seconds,
    }
}

fn verdict_text(verdict: &Verdict, state: ObjectStateWord) -> String {
    // A shard with a flaw is not called missing: its flaw says what is wrong.
    let is_told = |shard: &&usize| verdict.flaws.iter().any(|flaw| flaw.shard == Some(**shard));
    let missing = verdict.missing.iter().filter(|shard| !is_told(shard));
    let missing: String = missing.map(|shard| format!("\n  shard {shard} is missing")).collect();
    let stage = match verdict.stages {
        0 | 1 => String::new(),
        stages => format!(", stage {} of {stages}", verdict.stage),
    };
    let more = match state {
        ObjectStateWord::Lost | ObjectStateWord::Unknown => String::new(),
        _ => format!(", {}", report::more_may_be_lost(verdict.spare)),
    };
    format!(
        "{}: {}, {}{stage}{more}{missing}{}",
        shown(verdict.name.as_str()),
        state.name(),
        output::bytes(verdict.listed.length),
        report::flaw_lines(&verdict.flaws)
    )
}

/// Repairs the named objects, or all, the most urgent first. Returns the worst exit code.
pub async fn repair(args: &Repair, output: &Output) -> Outcome {
    let mut volume = super::open_background(&args.volume, args.background)?;
    let mut tally = ObjectTally::new(false, args.deep || args.scrub, output);
    match args.scrub {
        true => scrub(&mut volume, &mut tally).await?,
        false => {
            let is_all = args.names.is_empty();
            let items = match is_all {
                true => most_urgent_first(&volume, &mut tally).await?,
                false => {
                    let below = async |prefix: &str| listed(&volume, prefix, output).await;
                    let Given { items, failures } = given(&volume, &args.names, below).await;
                    failures.into_iter().for_each(|failure| tally.note(Err(failure)));
                    items
                }
            };
            repair_items(&mut volume, items, (is_all, args.deep), &mut tally).await;
        }
    }
    if args.names.is_empty() || args.collect {
        let collected = collect(&volume, output).await;
        tally.note(collected);
    }
    let outcome = tally.end();
    // When the nodes are back, another repair can do the rest.
    super::advise_nodes(&volume, &args.volume, output);
    let is_left = volume.troubles().is_empty() && matches!(outcome, Ok(Exit::Repairable));
    if is_left && !args.deep && !args.scrub {
        output.next(&report::repair_command(&args.volume, true));
    }
    outcome
}

/// Repairs all objects, the most urgent first, and removes what interrupted commands left. Returns
/// the worst exit code.
pub async fn repair_all(volume: &mut Volume, output: &Output) -> Outcome {
    let mut tally = ObjectTally::new(false, false, output);
    let items = most_urgent_first(volume, &mut tally).await?;
    repair_items(volume, items, (true, false), &mut tally).await;
    let collected = collect(volume, output).await;
    tally.note(collected);
    tally.end()
}

/// Repairs objects. If they are all names, pieces are among them.
async fn repair_items(
    volume: &mut Volume,
    items: Vec<Item>,
    (is_all, deep): (bool, bool),
    tally: &mut ObjectTally<'_>,
) {
    let shares = Shares::of(volume, &items, tally.output);
    let volume = &*volume;
    let repair = async |item: Item| {
        let start = Instant::now();
        let repaired = match is_all {
            true => volume.repair_one_of_all(&item.name, deep).await,
            false => volume.repair(&item.name, deep).await,
        };
        let repaired = explained(volume, &item, repaired).await;
        shares.finish(&item.name);
        (item, repaired, start.elapsed().as_secs_f64())
    };
    let mut repaired = futures::stream::iter(items).map(repair).buffered(REPAIRS_AT_ONCE);
    while let Some((item, repaired, seconds)) = repaired.next().await {
        shares.progress.aside(|| tally.note_repair(&item, repaired, seconds));
    }
    shares.progress.finish();
}

/// Reads every block of all objects and repairs damage, unless another process does. Continues the
/// last scrub if it was interrupted.
async fn scrub(volume: &mut Volume, tally: &mut ObjectTally<'_>) -> Result<(), Failure> {
    let Given { items, .. } = listed(volume, "", tally.output).await?;
    let lengths: BTreeMap<_, _> =
        items.iter().map(|item| (item.name.clone(), item.length)).collect();
    let shares = Shares::of(volume, &items, tally.output);
    let volume = &*volume;
    volume.reading_all_blocks(scrub_claimed(volume, &lengths, &shares, tally)).await?
}

async fn scrub_claimed(
    volume: &Volume,
    lengths: &BTreeMap<ObjectName, u64>,
    shares: &Shares,
    tally: &mut ObjectTally<'_>,
) -> Result<(), Failure> {
    let mut scrub = volume.scrub().await?;
    let left: BTreeSet<&ObjectName> = scrub.names().collect();
    lengths.keys().filter(|name| !left.contains(name)).for_each(|name| shares.finish(name));
    let mut start = Instant::now();
    while let Some((name, repaired)) = scrub.next().await {
        shares.finish(&name);
        let length = lengths.get(&name).copied().unwrap_or(0);
        let item = Item::listed(name, length);
        let repaired = explained(volume, &item, repaired).await;
        let seconds = start.elapsed().as_secs_f64();
        shares.progress.aside(|| tally.note_repair(&item, repaired, seconds));
        start = Instant::now();
    }
    shares.progress.finish();
    for error in scrub.nameless() {
        tally.count(None, Err(Error::new(error.kind(), error.message()).into()));
    }
    Ok(())
}

/// Looks after a volume until the user ends the command. If the volume file lists other nodes, the
/// volume is opened again.
pub async fn keep(args: &Keep, output: &Output) -> Outcome {
    let mut volume = super::open_background(&args.volume, args.background)?;
    let told = |doing: &str, error: &Error| output.warn_again(&format!("{doing}: {error}"));
    loop {
        let opened = {
            let keep = pin!(paritas_volume::keep(&volume, Upkeep::default(), &told));
            match select(keep, pin!(opened_again(&volume, args, output))).await {
                Either::Left(_) => return Ok(Exit::Done),
                Either::Right((opened, _)) => opened,
            }
        };
        let path = shown(&args.volume);
        output.warn_again(&format!("{path} lists other nodes: they are used now"));
        volume = opened;
    }
}

/// Waits until the volume file lists other nodes and can be opened, and opens it.
async fn opened_again(volume: &Volume, args: &Keep, output: &Output) -> Volume {
    loop {
        volume.until_other_nodes().await;
        match super::open_background(&args.volume, args.background) {
            Ok(opened) => return opened,
            Err(failure) => output.warn(&failure.message),
        }
    }
}

/// Fills a node that replaces a lost one, and repairs all objects. Returns the worst exit code.
pub async fn replace(args: &Replace, output: &Output) -> Outcome {
    let mut volume = super::open_background(&args.volume, args.background)?;
    let filled = volume.fill(&args.node).await?;
    let (node, manifests) = (&args.node, filled.manifests);
    output.result(VolumeReplaceLine { node: node.clone(), manifests }, || {
        format!("{}: {} copied", shown(node), counted(manifests, "manifest"))
    });
    repair_all(&mut volume, output).await
}

/// Returns all objects, the most urgent first. Counts those whose names cannot be told.
async fn most_urgent_first(
    volume: &Volume,
    tally: &mut ObjectTally<'_>,
) -> Result<Vec<Item>, Failure> {
    let overview = volume.overview("").await?;
    let names = volume.most_urgent_first(&overview).await;
    tally.count_nameless(&overview);
    let lengths: BTreeMap<&ObjectName, u64> =
        overview.objects().map(|(name, listed)| (name, listed.length)).collect();
    let item = |name: ObjectName| {
        let length = lengths.get(&name).copied().unwrap_or(0);
        Item::listed(name, length)
    };
    Ok(names.into_iter().map(item).collect())
}

async fn collect(volume: &Volume, output: &Output) -> Outcome {
    let objects = volume.collect().await?;
    let line = VolumeCollectLine { objects };
    match objects {
        0 => output.result_if_json(line),
        _ => output.result(line, || format!("remains of {} removed", counted(objects, "object"))),
    }
    Ok(Exit::Done)
}

/// Returns the state of an object after a repair.
fn after(repaired: &Repaired) -> ObjectStateWord {
    match (repaired.is_owed, repaired.stored + repaired.manifests) {
        (true, _) => ObjectStateWord::Repairable,
        (false, 0) => ObjectStateWord::Intact,
        (false, _) => ObjectStateWord::Repaired,
    }
}

fn repaired_line(repaired: &Repaired, seconds: f64) -> VolumeRepairLine {
    VolumeRepairLine {
        written: written_fields(repaired, seconds),
        manifests: repaired.manifests,
        removed: repaired.is_removed,
    }
}

/// Returns the fields of every line about what was written of an object.
fn written_fields(repaired: &Repaired, seconds: f64) -> WrittenFields {
    WrittenFields {
        name: repaired.name.to_string(),
        stored: repaired.stored,
        owed: repaired.is_owed,
        read_bytes: repaired.read_bytes,
        flaws: report::flaw_entries(&repaired.flaws),
        seconds,
    }
}

fn repaired_text(repaired: &Repaired) -> String {
    let (shards, manifests) =
        (counted(repaired.stored, "shard"), counted(repaired.manifests, "manifest"));
    let did = match (repaired.is_removed, repaired.stored, repaired.manifests) {
        (true, ..) => "removed".to_owned(),
        (false, 0, 0) => "nothing to write".to_owned(),
        (false, _, 0) => format!("{shards} written"),
        (false, 0, _) => format!("{manifests} written"),
        (false, ..) => format!("{shards} and {manifests} written"),
    };
    written_text(repaired, &did)
}

fn written_text(repaired: &Repaired, did: &str) -> String {
    let owed = if repaired.is_owed { "; something is left to repair" } else { "" };
    let (name, flaws) = (shown(repaired.name.as_str()), report::flaw_lines(&repaired.flaws));
    format!("{name}: {did}{owed}{flaws}")
}

/// Adds the parity of the next stage. Objects that have waited longest come first. Returns the
/// worst exit code.
pub async fn promote(args: &Promote, output: &Output) -> Outcome {
    let mut volume = super::open_background(&args.volume, args.background)?;
    let below = async |prefix: &str| waiting(&volume, prefix, output).await;
    let Given { items, failures } = chosen(&volume, &args.objects, below).await?;
    let shares = Shares::of(&mut volume, &items, output);
    let promote = async |item: Item| {
        let start = Instant::now();
        let promoted = volume.promote(&item.name).await;
        shares.finish(&item.name);
        let promoted = match promoted {
            // Another process is promoting it, or a newer version waits now.
            Err(error) if !item.is_named && error.kind() == ErrorKind::Busy => {
                output.warn(&error.to_string());
                return Ok(Exit::Done);
            }
            promoted => explained(&volume, &item, promoted).await?,
        };
        let Some(promoted) = promoted else { return Ok(Exit::Done) };
        let written = written_fields(&promoted, start.elapsed().as_secs_f64());
        let line = VolumePromoteLine { written };
        let did = format!("{} added", counted(promoted.stored, "shard"));
        shares.progress.aside(|| output.result(line, || written_text(&promoted, &did)));
        Ok(if promoted.is_owed { Exit::Repairable } else { Exit::Done })
    };
    let mut worst = each(items, 1, output, promote).await;
    failures.into_iter().for_each(|failure| worst.note(Err(failure), output));
    worst.end(output)
}

/// Returns the objects that a command with `--all` works on. `below` returns those of a prefix.
async fn chosen(
    volume: &Volume,
    objects: &Objects,
    below: impl AsyncFn(&str) -> Result<Given, Failure>,
) -> Result<Given, Failure> {
    match objects.all {
        true => below("").await,
        false => Ok(given(volume, &objects.names, below).await),
    }
}

/// Returns the objects to promote whose names begin with a prefix. Those that have waited longest
/// come first.
async fn waiting(volume: &Volume, prefix: &str, output: &Output) -> Result<Given, Failure> {
    let waiting = volume.backlog(prefix).await;
    if waiting.is_empty() && prefix.is_empty() {
        return Ok(Given::default());
    }
    // Fails if no object has a name with this prefix.
    let objects = listing::list(volume, prefix, GetOptions::default(), output).await?.objects;
    let item = |name: ObjectName| {
        let length = objects.get(&name).map_or(0, |listed| listed.length);
        Item::listed(name, length)
    };
    Ok(waiting.into_iter().map(item).collect::<Vec<_>>().into())
}

/// Converts objects of other codes to the volume's code. Returns the worst exit code.
pub async fn reencode(args: &Reencode, output: &Output) -> Outcome {
    let mut volume = super::open_background(&args.volume, args.background)?;
    let below = async |prefix: &str| listed(&volume, prefix, output).await;
    let Given { items, failures } = chosen(&volume, &args.objects, below).await?;
    let shares = Shares::of(&mut volume, &items, output);
    let reencode = async |item: Item| {
        let start = Instant::now();
        let reencoded = reencode_present(&volume, &item).await;
        shares.finish(&item.name);
        let reencoded = explained(&volume, &item, reencoded).await?;
        let Some(reencoded) = reencoded else { return Ok(Exit::Done) };
        let (is_changed, is_owed, flaws) = match reencoded {
            Reencoded::Changed(report) => (true, report.is_owed, report.flaws),
            _ => (false, false, Vec::new()),
        };
        let (name, code) = (item.name.as_str(), volume.code().spec().to_string());
        let line = VolumeReencodeLine {
            name: name.to_owned(),
            code: code.clone(),
            changed: is_changed,
            owed: is_owed,
            flaws: report::flaw_entries(&flaws),
            seconds: start.elapsed().as_secs_f64(),
        };
        let text = || {
            let did = match is_changed {
                true => format!("stored anew by {code}"),
                false => "left as it is".to_owned(),
            };
            let owed = if is_owed { "; something is left to repair" } else { "" };
            format!("{}: {did}{owed}{}", shown(name), report::flaw_lines(&flaws))
        };
        shares.progress.aside(|| output.result(line, text));
        Ok(if is_owed { Exit::Repairable } else { Exit::Done })
    };
    let mut worst = each(items, 1, output, reencode).await;
    failures.into_iter().for_each(|failure| worst.note(Err(failure), output));
    worst.end(output)
}

/// Converts an object to the volume's code. If it is replaced meanwhile, tries once more, unless
/// the user named it.
async fn reencode_present(volume: &Volume, item: &Item) -> paritas_volume::Result<Reencoded> {
    match volume.reencode(&item.name).await {
        // The new version may have the old code, too.
        Err(error) if !item.is_named && error.kind() == ErrorKind::Busy => {
            volume.reencode(&item.name).await
        }
        reencoded => reencoded,
    }
}

#[cfg(test)]
mod tests {
    use paritas_volume::node::{FolderNode, Node};
    use paritas_volume::{Member, Setup};

    use super::*;

    #[test]
    fn what_was_removed_before_its_turn_is_no_failure_unless_it_was_named() {
        let root = tempfile::tempdir().unwrap();
        let node = |name: &str| {
            let folder: Arc<dyn Node> =
                Arc::new(FolderNode::new(name, root.path().join(name), false));
            let (name, domain) = (name.to_owned(), name.to_owned());
            (Member { name, domain, is_drained: false }, folder)
        };
        let code = paritas::Code::new(&"1+1".parse().unwrap()).unwrap();
        let nodes = ["a", "b"].map(node).into_iter().collect();
        let volume = Volume::new(Setup::new("0".repeat(32), code, nodes)).unwrap();
        let absent = |kind| Err::<(), _>(Error::new(kind, "it is gone"));
        let check = async {
            for is_named in [false, true] {
                let item = Item { name: ObjectName::new("object")?, length: 1, is_named };
                let gone = explained(&volume, &item, absent(ErrorKind::NotFound)).await;
                assert_eq!(gone.is_ok_and(|gone| gone.is_none()), !is_named);
                let lost = explained(&volume, &item, absent(ErrorKind::TooFewShards)).await;
                assert!(lost.is_err_and(|failure| failure.exit == Exit::Lost));
                assert!(explained(&volume, &item, Ok(())).await.is_ok_and(|done| done.is_some()));
            }
            Ok(())
        };
        paritas_volume::run(check).unwrap();
    }
}
