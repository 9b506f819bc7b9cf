//! `paritas protect --dry-run`: what would be written, and how much it takes.

use paritas_protect::{ParityCost, ProtectPlan, StreamGeometry};
use serde_json::{Value, json};

use super::value;
use crate::args::protect::Protect;
use crate::commands::protections::{
    add_disks, add_lines, below, disk_values, geometry_value, path_values, share, skipped_values,
};
use crate::exit::Failure;
use crate::output::{self, Output, counted, shown};

/// Reports a plan for files that are not protected yet.
pub fn report(
    plan: &ProtectPlan,
    args: &Protect,
    seconds: f64,
    output: &Output,
) -> Result<(), Failure> {
    let cost = plan.cost()?;
    let mut value = value("", (&plan.root, &plan.label), None, seconds);
    value["id"] = Value::Null;
    value["dry_run"] = json!(true);
    let files: Vec<_> = plan.protected_files().collect();
    value["unmatched_excludes"] = json!(plan.unmatched_excludes);
    value["added_files"] = path_values(&files);
    value["skipped"] = skipped_values(&plan.skipped);
    insert(&mut value, plan, &cost);
    output.result(value, || {
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
    Ok(())
}

/// Puts into a result in JSON what a plan would read and write.
pub fn insert(value: &mut Value, plan: &ProtectPlan, cost: &ParityCost) {
    let fields = geometry_value(&plan.geometry);
    for name in ["data_blocks", "parity_blocks", "block_bytes"] {
        value[name] = fields[name].clone();
    }
    value["files"] = json!(plan.files);
    value["bytes"] = json!(plan.geometry.length);
    value["parity_bytes"] = json!(plan.parity_bytes);
    value["catalogue_bytes"] = json!(cost.catalogue_bytes);
    value["stored_bytes"] = json!(cost.stored_bytes);
    value["read_bytes"] = json!(plan.bytes_to_read);
    value["passes"] = json!(plan.passes);
    value["parity_files"] = path_values(&plan.parity_files);
    value["disks"] = disk_values(&cost.disks);
}

/// Adds to a text what a plan would read and write.
pub fn add(text: &mut String, plan: &ProtectPlan, cost: &ParityCost, verbose: bool) {
    let StreamGeometry { length, data, parity, .. } = plan.geometry;
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
            "\n  repairs  any {parity} lost or damaged of {} blocks",
            data + parity
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
