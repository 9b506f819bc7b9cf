//! `paritas protect --dry-run`: what would be written, and how much it takes.

use paritas_protect::{DiskNeed, ParityCost, ProtectPlan, StreamGeometry};
use paritas_report::protections::{ChangesFields, ProtectLine};

use super::line;
use crate::args::protect::Protect;
use crate::commands::protections::{
    add_disks, add_lines, below, disk_entries, layer_entry, share, skipped_entries,
};
use crate::commands::shards::file_entries;
use crate::exit::{Exit, Failure};
use crate::output::{self, Output, counted, shown};

/// Reports a plan for files that are not protected yet. Returns what it takes.
pub fn report(
    plan: &ProtectPlan,
    args: &Protect,
    seconds: f64,
    output: &Output,
) -> Result<ParityCost, Failure> {
    let cost = plan.cost()?;
    let files: Vec<_> = plan.protected_files().collect();
    let line = ProtectLine {
        dry_run: true,
        changes: ChangesFields { added_files: file_entries(&files), ..ChangesFields::default() },
        unmatched_excludes: plan.unmatched_excludes.clone(),
        skipped: skipped_entries(&plan.skipped),
        ..line(None, (&plan.root, &plan.label), None, seconds)
    };
    output.result(foretold(line, plan, &cost), || {
        let (count, bytes) = (counted(plan.files, "file"), output::bytes(plan.geometry.length));
        let mut text = format!("{}: {count}, {bytes} would be protected", shown(&plan.label));
        let lines: Vec<String> =
            files.iter().map(|path| format!("file     {}", below(&plan.root, path))).collect();
        add_lines(&mut text, &lines, args.verbose);
        add(&mut text, plan, &cost, args.verbose);
        let skipped = plan.skipped.iter();
        let skipped: Vec<String> = skipped
            .map(|one| format!("skipped  {}: {}", below(&plan.root, &one.path), one.reason))
            .collect();
        add_lines(&mut text, &skipped, args.verbose);
        text
    });
    Ok(cost)
}

/// Fails as the command would without `--dry-run`, if a disk has too little room.
pub fn expect_room(cost: &ParityCost) -> Result<(), Failure> {
    let is_full = |disk: &&DiskNeed| disk.free.is_some_and(|free| free < disk.bytes);
    let Some(DiskNeed { folder, bytes, free, .. }) = cost.disks.iter().find(is_full) else {
        return Ok(());
    };
    let message = format!(
        "the parity in {} takes {}, and its disk has room for {}",
        shown(folder),
        output::bytes(*bytes),
        output::bytes(free.unwrap_or(0))
    );
    Err(Failure { exit: Exit::Io, message })
}

/// Adds to a line what a plan would read and write.
pub fn foretold(line: ProtectLine, plan: &ProtectPlan, cost: &ParityCost) -> ProtectLine {
    ProtectLine {
        files: plan.files,
        bytes: plan.geometry.length,
        blocks: layer_entry(&plan.geometry),
        parity_bytes: plan.parity_bytes,
        catalogue_bytes: cost.catalogue_bytes,
        stored_bytes: cost.stored_bytes,
        read_bytes: plan.bytes_to_read,
        passes: plan.passes,
        parity_files: file_entries(&plan.parity_files),
        disks: disk_entries(&cost.disks),
        ..line
    }
}

/// Adds to a text what a plan would read and write.
pub fn add(text: &mut String, plan: &ProtectPlan, cost: &ParityCost, verbose: bool) {
    let StreamGeometry { length, block, data, parity, .. } = plan.geometry;
    text.push_str(&format!(
        "\n  reads    {} in {}",
        output::bytes(plan.bytes_to_read),
        match plan.passes {
            1 => "1 pass".to_owned(),
            passes => format!("{passes} passes"),
        }
    ));
    if data > 0 {
        text.push_str(&format!(
            "\n  repairs  any {parity} lost or damaged of {} blocks, about {}, wherever they are",
            data + parity,
            output::bytes(parity * block)
        ));
    }
    let of_files = match cost.stored_bytes > 10 * length {
        true => String::new(),
        false => format!(", {} of the files", share(cost.stored_bytes, length)),
    };
    text.push_str(&format!(
        "\n  parity   {}{of_files}, in {}",
        output::bytes(cost.stored_bytes),
        counted(plan.parity_files.len(), "file")
    ));
    add_disks(text, &cost.disks);
    if verbose {
        let paths = plan.parity_files.iter();
        paths.for_each(|path| text.push_str(&format!("\n           {}", shown(path))));
    }
    text.push_str("\n  nothing was written (--dry-run)");
}
