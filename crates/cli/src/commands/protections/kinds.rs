//! The kinds of findings of a verification: their words, their order, and what to do about each.

use std::collections::{BTreeMap, BTreeSet};

use paritas_protect::{FileFinding, FileState, LayerReport, Protection, VerifyReport};
use paritas_report::parts::ObjectStateWord;
use paritas_report::protections::FindingStateWord;

use super::command;
use crate::output::{counted, shell_path};

/// What can be done about a kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    /// Make it readable, and verify again.
    Read,
    /// Repair it.
    Repair,
    /// Protect it as it is now, or restore what was protected.
    Choose,
    /// Move it back, or protect it where it is.
    Place,
}

/// Returns the word for a state in lines. Worse states sort first.
pub fn finding_word(state: &FileState) -> FindingStateWord {
    match state {
        FileState::Damaged(_) => FindingStateWord::Damaged,
        FileState::Missing => FindingStateWord::Missing,
        FileState::Unreadable(_) => FindingStateWord::Unreadable,
        FileState::Changed(_) => FindingStateWord::Changed,
        FileState::Moved(_) => FindingStateWord::Moved,
        FileState::Touched => FindingStateWord::Touched,
    }
}

impl Next {
    fn after(state: &FileState) -> Option<Self> {
        match state {
            FileState::Unreadable(_) => Some(Self::Read),
            FileState::Damaged(_) | FileState::Missing => Some(Self::Repair),
            FileState::Changed(_) => Some(Self::Choose),
            FileState::Moved(_) => Some(Self::Place),
            FileState::Touched => None,
        }
    }

    /// Returns what to do, with the commands to type. `update` says when an update may be made.
    fn advice(
        self,
        protection: &Protection,
        layers: &[LayerReport],
        update: &impl Fn(String) -> Option<String>,
    ) -> Vec<String> {
        let command = |verb| command(verb, protection);
        match self {
            Self::Read => vec![for_unreadable(protection, "verify")],
            Self::Repair => {
                vec![format!("{} restores what is damaged or missing", command("repair"))]
            }
            Self::Choose => {
                let [accept, restore] = for_changed(protection, layers);
                update(accept).into_iter().chain([restore]).collect()
            }
            Self::Place => {
                let back = format!("{} moves back what was moved", command("repair --move-back"));
                let here = format!("{} protects it where it is", command("protect --update"));
                [back].into_iter().chain(update(here)).collect()
            }
        }
    }
}

/// Returns what can be done about files that cannot be read, before a command is run again.
pub fn for_unreadable(protection: &Protection, verb: &str) -> String {
    let command = command(verb, protection);
    format!("make readable what cannot be read, or mount its disk; then {command}")
}

/// Returns what can be done about files that someone has changed: protect them as they are, or
/// restore their protected content, if there is enough parity for all lost blocks.
pub fn for_changed(protection: &Protection, layers: &[LayerReport]) -> [String; 2] {
    let short = layers.iter().find(|layer| layer.lost > layer.at_hand);
    let restore = match short {
        None => format!(
            "{} restores the protected content of changed files instead",
            command("repair --restore-changed", protection)
        ),
        Some(layer) => format!(
            "the protected content of changed files is beyond repair, with {} lost and {} at hand",
            counted(layer.lost, "block"),
            counted(layer.at_hand, "parity block")
        ),
    };
    let update = command("protect --update", protection);
    [format!("{update} protects changed files as they are"), restore]
}

/// Whether files were changed and nothing else is wrong, so that nothing needs repair.
pub fn is_changed_alone(report: &VerifyReport) -> bool {
    let changed = report.count(|state| matches!(state, FileState::Changed(_)));
    let touched = report.count(|state| *state == FileState::Touched);
    let is_all = changed + touched == report.findings.len() as u64;
    changed > 0 && is_all && report.parity.is_empty()
}

/// Returns the step that removes the copies of what repairs have replaced.
pub fn for_copies(protection: &Protection) -> String {
    format!("{} removes the copies of what was replaced", command("repair --clean", protection))
}

/// Counts findings by kind, worst first, then new files. Returns `None` if there is nothing to
/// count.
pub fn counts(report: &VerifyReport) -> Option<String> {
    let mut found: BTreeMap<(FindingStateWord, &str), u64> = BTreeMap::new();
    for FileFinding { state, .. } in &report.findings {
        *found.entry((finding_word(state), state.name())).or_default() += 1;
    }
    let found = found.into_iter().map(|((word, name), count)| match word {
        FindingStateWord::Touched => format!("{count} touched (only times or modes differ)"),
        _ => format!("{count} {name}"),
    });
    let others = [
        (report.parity.len(), "of the parity files not intact"),
        (report.replaced.len(), "replaced before and kept"),
        (report.skipped.len(), "skipped"),
        (report.new.len(), "new"),
    ];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    let all: Vec<String> =
        found.chain(others.map(|(count, word)| format!("{count} {word}"))).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Returns what to do next, in a safe order: unreadable files come first, and new parity is made
/// last. A quick verification does not know how much of a changed file is lost.
pub fn next_steps(
    protection: &Protection,
    report: &VerifyReport,
    state: ObjectStateWord,
    is_quick: bool,
) -> Vec<String> {
    let read = if is_quick { &[] } else { &report.layers[..] };
    let states = report.findings.iter().map(|finding| &finding.state);
    let mut next: BTreeSet<Next> = states.filter_map(Next::after).collect();
    let unread = report.parity.iter().any(|finding| finding.unreadable);
    next.extend(unread.then_some(Next::Read));
    next.extend(report.parity.iter().any(|finding| !finding.unreadable).then_some(Next::Repair));
    let is_damaged = next.contains(&Next::Repair);
    let update = |step| at_its_time(step, state, is_damaged);
    let mut steps = Vec::new();
    if state == ObjectStateWord::Lost {
        next.remove(&Next::Repair);
        steps.extend(if_lost(protection, report, is_damaged));
    }
    steps.extend(next.into_iter().flat_map(|next| next.advice(protection, read, &update)));
    if state == ObjectStateWord::Intact && is_parity_used_up(report) {
        steps.push(format!(
            "{} makes all parity anew, because no more blocks may be lost",
            command("protect --update", protection)
        ));
    }
    if !report.new.is_empty() {
        let new = format!("{} protects new files", command("protect --update", protection));
        steps.extend(update(new));
    }
    if !report.replaced.is_empty() && state == ObjectStateWord::Intact {
        steps.push(for_copies(protection));
    }
    steps
}

/// Returns when to update, if at all: an update counts as deleted what is damaged or missing, and
/// gives up its parity.
fn at_its_time(update: String, state: ObjectStateWord, is_damaged: bool) -> Option<String> {
    match (is_damaged, state) {
        (false, _) => Some(update),
        (true, ObjectStateWord::Lost) => None,
        (true, _) => Some(format!("after that, {update}")),
    }
}

/// Returns what to do about a protection that is beyond repair.
fn if_lost(protection: &Protection, report: &VerifyReport, is_damaged: bool) -> Vec<String> {
    let mut steps = vec![beyond_repair(protection)];
    if report.restores {
        let repair = command("repair", protection);
        steps.push(format!("{repair} restores now what does not need the lost blocks"));
    }
    if report.unreadable_layers > 0 && !is_damaged {
        let update = command("protect --update", protection);
        let all = "protects all files as they are";
        steps.push(format!("if there are no more parity files, {update} {all}"));
    }
    steps
}

/// Whether lost blocks of files that are gone use up all parity of a layer. An update then computes
/// all parity anew, with the settings of the protection.
fn is_parity_used_up(report: &VerifyReport) -> bool {
    let is_used_up = |layer: &LayerReport| layer.geometry.parity > 0 && layer.left == 0;
    report.layers.iter().any(is_used_up)
}

/// Returns the step that can bring back what the parity cannot repair.
pub fn beyond_repair(protection: &Protection) -> String {
    format!(
        "put copies of the lost files, whole or in part, anywhere into {}, or find more parity \
         files; then {} uses what they have",
        shell_path(protection.root()),
        command("repair", protection)
    )
}

/// Adds what to do next to a report.
pub fn add_steps(text: &mut String, steps: impl IntoIterator<Item = String>) {
    steps.into_iter().for_each(|step| text.push_str(&format!("\n  next     {step}")));
}
