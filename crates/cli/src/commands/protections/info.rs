//! Describing a protection without reading the protected files.

use std::path::{Path, PathBuf};

use paritas_protect::Protection;
use paritas_report::parts::SizedFileEntry;
use paritas_report::protections::ProtectInfoLine;

use super::{fields, layer_entry, title};
use crate::output::{self, Output, counted, shown, time_entry, time_text};

/// Reports one protection.
pub fn run(protection: &Protection, output: &Output) {
    super::warn_of_unfinished(protection, output);
    // If the tree cannot be searched, no copies are listed.
    let replaced = protection.replaced().unwrap_or_default();
    output.result(line(protection, &replaced), || text(protection, &replaced));
}

fn line(protection: &Protection, replaced: &[PathBuf]) -> ProtectInfoLine {
    ProtectInfoLine {
        protection: fields(protection),
        created: time_entry(protection.created()),
        redundancy: f64::from(protection.redundancy().millionths()) / 1e6,
        excludes: protection.excludes().to_vec(),
        others: protection.others(),
        parity_bytes: protection.parity_bytes(),
        stored_bytes: stored_bytes(protection),
        layers: protection.geometries().map(|geometry| layer_entry(&geometry)).collect(),
        parity_files: protection.parity_files().map(file_entry).collect(),
        replaced: replaced.iter().map(|path| file_entry(path)).collect(),
    }
}

fn file_entry(path: &Path) -> SizedFileEntry {
    SizedFileEntry { path: path.into(), bytes: length(path) }
}

fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

fn stored_bytes(protection: &Protection) -> u64 {
    protection.parity_files().map(length).sum()
}

/// Returns a line for each layer, which says how much of it may be lost.
fn layer_lines(protection: &Protection) -> impl Iterator<Item = String> + '_ {
    let layers = protection.geometries().zip(protection.spare_blocks());
    layers.enumerate().map(|(number, (geometry, spare))| {
        format!(
            "\n  layer {number}  any {spare} of {} blocks of {} bytes may be lost, about {}",
            geometry.data + spare,
            geometry.block,
            output::bytes(spare * geometry.block)
        )
    })
}

fn text(protection: &Protection, replaced: &[PathBuf]) -> String {
    let mut text = format!(
        "{}\n  id       {}, of {}\n  protects {}, {}",
        title(protection),
        protection.id(),
        time_text(protection.created()),
        counted(protection.files(), "file"),
        output::bytes(protection.bytes()),
    );
    if protection.others() > 0 {
        text.push_str(&match protection.others() {
            1 => ", and 1 folder, link or further name".to_owned(),
            others => format!(", and {others} folders, links and further names"),
        });
    }
    let stored = output::bytes(stored_bytes(protection));
    text.push_str(&format!("\n  parity   {} asked for, {stored} stored", protection.redundancy()));
    text.extend(layer_lines(protection));
    let excludes = protection.excludes().iter().map(|pattern| shown(pattern).to_string());
    let excludes: Vec<String> = excludes.collect();
    if !excludes.is_empty() {
        text.push_str(&format!("\n  without  {}", excludes.join(", ")));
    }
    for path in protection.parity_files() {
        let bytes = output::bytes(length(path));
        text.push_str(&format!("\n  {}, {bytes}", shown(path)));
    }
    for path in replaced {
        let bytes = output::bytes(length(path));
        text.push_str(&format!("\n  replaced {}, {bytes}", shown(path)));
    }
    text
}
