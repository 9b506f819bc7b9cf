//! Reading the attributes of files and folders besides modes and times.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use paritas_store::place::extended::Extended;

use crate::catalogue::Details;
use crate::paths::path_in;
use crate::tree::{FoundEntry, FoundKind, map_in_threads};

/// Number of files that a thread takes at a time.
const BATCH: usize = 256;

/// Returns the details of everything that was found, in order. Details that `known` returns for an
/// index in `found` are not read again.
pub(crate) fn of_all(
    root: &Path,
    found: &[FoundEntry],
    known: impl Fn(usize) -> Option<Details> + Sync,
    threads: usize,
) -> Vec<Details> {
    let details = |(index, found)| known(index).unwrap_or_else(|| read(root, found));
    let parts = map_in_threads(threads, found.chunks(BATCH).enumerate(), |(number, batch)| {
        (number * BATCH..).zip(batch).map(details).collect::<Vec<_>>()
    });
    let mut all: Vec<Details> = parts.into_iter().flatten().collect();
    share(&mut all);
    all
}

fn read(root: &Path, found: &FoundEntry) -> Details {
    let extended = match found.kind {
        FoundKind::Symlink { .. } => Extended::default(),
        _ => Extended::of(&path_in(root, &found.path)),
    };
    let (extended, is_cut) = extended.recorded();
    let extended = (!extended.is_empty()).then(|| Arc::new(extended));
    Details { changed: found.changed, extended, owner: found.owner, is_cut }
}

/// Keeps equal sets of attributes once.
fn share(all: &mut [Details]) {
    let mut sets: HashMap<Arc<Extended>, Arc<Extended>> = HashMap::new();
    for set in all.iter_mut().filter_map(|details| details.extended.as_mut()) {
        *set = Arc::clone(sets.entry(Arc::clone(set)).or_insert_with(|| Arc::clone(set)));
    }
}
