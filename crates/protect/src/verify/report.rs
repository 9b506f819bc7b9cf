//! The report of a verification: what the evidence says about each file, layer and parity file, and
//! the verdict.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{FileFinding, LayerReport, ParityFinding, Protected, VerifyReport};
use crate::evidence::{Evidence, FileState, LayerEvidence};
use crate::find::{EntryKind, Layer, Protection};
use crate::paths::path_in;
use crate::tree::{FoundKind, Skipped, Tree};
use paritas_store::state::State;

/// Puts the evidence about a protection, or of the part that was asked for, into a report.
pub(super) fn report(protection: &Protection, evidence: &Evidence) -> VerifyReport {
    let layers: Vec<LayerReport> = protection
        .layers
        .iter()
        .zip(&evidence.layers)
        .map(|(layer, evidence)| layer_report(layer, evidence))
        .collect();
    let states = evidence.states.iter().filter(|(number, _)| protection.covers(**number));
    let findings: Vec<FileFinding> = states
        .map(|(&number, state)| finding(protection, (number, state), &evidence.tree))
        .collect();
    // Parity never belongs to a part.
    let parity = match protection.is_part() {
        true => Vec::new(),
        false => parity_findings(protection, evidence),
    };
    VerifyReport {
        status: status(protection, evidence, &layers, &parity),
        restores: restores(protection, evidence, &layers),
        files: protection.files(),
        intact_files: intact_files(protection, evidence),
        findings,
        parity,
        layers,
        unreadable_layers: match protection.may_lack_entries() {
            true => protection.unreadable_layers,
            false => 0,
        },
        new: new_files(protection, evidence),
        replaced: evidence.replaced(protection).cloned().collect(),
        skipped: skipped(protection, evidence),
    }
}

/// Returns the number of protected files that have their bytes, under this name or another.
fn intact_files(protection: &Protection, evidence: &Evidence) -> u64 {
    let is_whole = |number: usize| {
        matches!(
            evidence.states.get(&number),
            None | Some(FileState::Touched | FileState::Moved(_))
        )
    };
    let files = protection.entries.iter().enumerate().filter(|(_, entry)| entry.is_file());
    let files = files.map(|(number, _)| number).filter(|&number| protection.covers(number));
    files.filter(|&number| is_whole(number)).count() as u64
}

fn status(
    protection: &Protection,
    evidence: &Evidence,
    layers: &[LayerReport],
    parity: &[ParityFinding],
) -> State {
    let is_good = |state: &FileState| matches!(state, FileState::Touched | FileState::Moved(_));
    let mut states = evidence.states.iter().filter(|(number, _)| protection.covers(**number));
    let is_unread = |state: &FileState| matches!(state, FileState::Unreadable(_));
    if states.clone().any(|(_, state)| is_unread(state)) || parity.iter().any(|it| it.unreadable) {
        return State::Unknown;
    }
    let lost = states.clone().filter(|(_, state)| is_lost(state));
    let mut short = short(layers);
    let lost: Vec<usize> = lost.map(|(&number, _)| number).collect();
    let is_beyond = |layer| {
        evidence.needs_parity(protection, layer, &lost)
            || !protection.is_part() && !evidence.broken_parity(protection, layer).is_empty()
    };
    if short.any(is_beyond) || protection.may_lack_entries() {
        return State::Lost;
    }
    match states.all(|(_, state)| is_good(state)) && parity.is_empty() {
        true => State::Intact,
        false => State::Repairable,
    }
}

/// Whether a repair would restore anything in the part that was asked for.
fn restores(protection: &Protection, evidence: &Evidence, layers: &[LayerReport]) -> bool {
    let is_possible = |number: usize| {
        let file = protection.file_of(number);
        !short(layers).any(|layer| evidence.needs_parity(protection, layer, &[file]))
    };
    let mut states = evidence.states.iter().filter(|(_, state)| is_lost(state));
    let has_parity = |layer: usize| {
        layers[layer].needed == 0 && !evidence.broken_parity(protection, layer).is_empty()
    };
    states.any(|(&number, _)| protection.covers(number) && is_possible(number))
        || !protection.is_part() && (0..layers.len()).any(has_parity)
}

fn is_lost(state: &FileState) -> bool {
    matches!(state, FileState::Damaged(_) | FileState::Missing)
}

/// Returns the numbers of the layers whose lost blocks cannot be computed.
pub(crate) fn short(layers: &[LayerReport]) -> impl Iterator<Item = usize> + '_ {
    (0..).zip(layers).filter(|(_, layer)| layer.needed > 0).map(|(number, _)| number)
}

impl Evidence {
    /// Returns the numbers of the parity files of a layer that are not intact. Files that may not
    /// be read are left out, because they could be intact.
    pub fn broken_parity(&self, protection: &Protection, layer: usize) -> Vec<u16> {
        let (layer, evidence) = (&protection.layers[layer], &self.layers[layer]);
        let is_broken = |&index: &u16| {
            let finding = parity_finding(protection, layer, evidence, index);
            finding.is_some_and(|finding| !finding.unreadable)
        };
        (0..layer.header.count).filter(is_broken).collect()
    }
}

fn layer_report(layer: &Layer, evidence: &LayerEvidence) -> LayerReport {
    let geometry = layer.header.geometry;
    let (lost, at_hand) = (evidence.lost.len() as u64, evidence.rows.len() as u64);
    LayerReport {
        generation: layer.header.generation,
        geometry,
        lost,
        at_hand,
        needed: lost.saturating_sub(at_hand),
        left: at_hand.saturating_sub(lost),
    }
}

fn finding(
    protection: &Protection,
    (number, state): (usize, &FileState),
    tree: &Tree,
) -> FileFinding {
    let entry = &protection.entries[number];
    // What has moved is named as it was; the state says where it is.
    let now = protection.renamed(number, tree);
    let now = now.filter(|_| !matches!(state, FileState::Moved(_))).unwrap_or(&entry.path);
    let kind = match entry.kind {
        EntryKind::File { .. } => Protected::File,
        EntryKind::Folder => Protected::Folder,
        EntryKind::Symlink { .. } => Protected::Symlink,
        EntryKind::HardLink { .. } => Protected::HardLink,
    };
    FileFinding {
        path: path_in(&protection.root, now),
        name: path_in(Path::new(""), now),
        kind,
        size: entry.size(),
        state: state.clone(),
        has_time: tree.of(number).is_some_and(|found| found.modified == entry.modified),
    }
}

fn parity_findings(protection: &Protection, evidence: &Evidence) -> Vec<ParityFinding> {
    let mut findings = Vec::new();
    for (layer, evidence) in protection.layers.iter().zip(&evidence.layers) {
        for index in 0..layer.header.count {
            findings.extend(parity_finding(protection, layer, evidence, index));
        }
    }
    findings
}

fn parity_finding(
    protection: &Protection,
    layer: &Layer,
    evidence: &LayerEvidence,
    index: u16,
) -> Option<ParityFinding> {
    let refused = protection.refused_place(layer, index);
    let unreadable = refused.is_some();
    let path = refused.unwrap_or_else(|| protection.place_of(layer, index));
    let blocks = layer.header.rows(index).count() as u64;
    let at = usize::from(index);
    let Some((file, checked)) = layer.files[at].as_ref().zip(evidence.checked[at].as_ref()) else {
        let damaged_pieces = layer.header.catalogue.each.into();
        // A file that was recognised, but could not be checked, may be intact.
        let file = layer.files[at].as_ref();
        let unreadable =
            unreadable || file.is_some_and(|file| file.path.symlink_metadata().is_ok());
        return Some(ParityFinding {
            path,
            missing: !unreadable,
            unreadable,
            damaged_blocks: blocks,
            damaged_pieces,
        });
    };
    let damaged_blocks = blocks - checked.rows.len() as u64;
    let damaged_pieces = checked.damaged_pieces;
    let is_intact = damaged_blocks + damaged_pieces == 0 && file.has_ends;
    (!is_intact).then_some(ParityFinding {
        path,
        missing: false,
        unreadable,
        damaged_blocks,
        damaged_pieces,
    })
}

/// Returns what cannot be protected in the part that was asked for, or above it.
fn skipped(protection: &Protection, evidence: &Evidence) -> Vec<Skipped> {
    let is_asked_for = |skipped: &&Skipped| {
        let path = protection.relative(&skipped.path);
        path.is_some_and(|path| protection.covers_path(&path) || protection.has_part_below(&path))
    };
    evidence.tree.skipped.iter().filter(is_asked_for).cloned().collect()
}

/// Returns the files that are not protected, without those to which a protected file was moved.
fn new_files(protection: &Protection, evidence: &Evidence) -> Vec<PathBuf> {
    let moved = |state: &FileState| match state {
        FileState::Moved(to) => Some(to.clone()),
        _ => None,
    };
    let moved: BTreeSet<PathBuf> = evidence.states.values().filter_map(moved).collect();
    let new = evidence.tree.others().filter(|found| found.kind != FoundKind::Folder);
    let new = new.filter(|found| protection.covers_path(&found.path));
    let new = new.map(|found| path_in(&protection.root, &found.path));
    new.filter(|path| !moved.contains(path)).collect()
}
