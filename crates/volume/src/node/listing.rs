//! What a service lists. A server may answer with anything: addresses instead of paths, folders
//! named `..`, paths of other places. What does not lie where it was asked for is an error of the
//! node. It must not count as nothing: then files that exist would be missing.

use std::panic::AssertUnwindSafe;

use futures::stream::{self, Stream, StreamExt, TryStreamExt};
use opendal::{Entry, ErrorKind, Operator, Result};

use super::contact::Contact;

/// Lists all files below a folder, which is empty or ends in `/`, one folder after the other. Many
/// folders may hold no file, so each is a sign of life.
pub(super) fn files_by_folders<'a>(
    operator: &'a Operator,
    folder: String,
    contact: &'a Contact,
) -> impl Stream<Item = Result<Entry>> + 'a {
    stream::try_unfold(vec![folder], async move |mut folders| {
        let Some(folder) = folders.pop() else { return Ok(None) };
        let entries = entries(operator, &folder, contact).await?;
        let (below, files): (Vec<Entry>, _) = entries.into_iter().partition(is_folder);
        folders.extend(below.into_iter().map(|folder| folder.path().to_owned()));
        Ok(Some((stream::iter(files.into_iter().map(Ok)), folders)))
    })
    .try_flatten()
}

/// Lists all files below a folder at a service that lists them at once.
pub(super) async fn files_at_once(
    operator: &Operator,
    folder: String,
) -> Result<impl Stream<Item = Result<Entry>>> {
    let found = operator.lister_with(&folder).recursive(true).await?;
    let is_file = |entry: &Entry| std::future::ready(!is_folder(entry));
    Ok(checked(found, folder, |_| true).try_filter(is_file))
}

/// Lists what is directly in a folder, which is empty or ends in `/`. Each entry is a sign of life.
pub(super) async fn entries(
    operator: &Operator,
    folder: &str,
    contact: &Contact,
) -> Result<Vec<Entry>> {
    let found = operator.lister(folder).await?.inspect(|_| contact.moved());
    let entries = checked(found, folder.to_owned(), is_directly_in).try_collect().await;
    contact.moved();
    entries
}

fn is_folder(entry: &Entry) -> bool {
    entry.metadata().is_dir() || entry.path().ends_with('/')
}

/// Leaves out the folder itself, and fails at an entry that is not in the folder, or whose path,
/// seen from the folder, does not belong there.
fn checked(
    found: impl Stream<Item = Result<Entry>>,
    folder: String,
    belongs: fn(&str) -> bool,
) -> impl Stream<Item = Result<Entry>> {
    // OpenDAL cuts the node's root off every path, and panics if a path is shorter than that.
    let found = AssertUnwindSafe(found).catch_unwind();
    found.filter_map(move |entry| {
        let entry =
            entry.unwrap_or_else(|_| Err(astray(&folder, "a path above the node's folder")));
        let below = |entry: &Entry| match entry.path() {
            "/" if folder.is_empty() => Some(String::new()),
            path => path.strip_prefix(&folder).map(str::to_owned),
        };
        std::future::ready(match entry {
            Ok(entry) => match below(&entry) {
                Some(path) if path.is_empty() => None,
                Some(path) if belongs(&path) => Some(Ok(entry)),
                _ => Some(Err(astray(&folder, &format!("{:?}", entry.path())))),
            },
            Err(error) => Some(Err(error)),
        })
    })
}

/// Whether a path, seen from a folder, is one of its files or folders.
fn is_directly_in(path: &str) -> bool {
    let name = path.strip_suffix('/').unwrap_or(path);
    !matches!(name, "" | "." | "..") && !name.contains('/')
}

fn astray(folder: &str, listed: &str) -> opendal::Error {
    let place = if folder.is_empty() { "the node".to_owned() } else { format!("{folder:?}") };
    let message = format!("the server was asked what is in {place}, and lists {listed}");
    opendal::Error::new(ErrorKind::Unexpected, message)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use opendal::services::Memory;
    use paritas_store::error;

    use super::*;
    use crate::node::NodeCall;

    /// A server may take a minute to list folders that hold no file.
    #[tokio::test(start_paused = true)]
    async fn empty_folders_are_signs_of_life() {
        let operator = Operator::new(Memory::default()).unwrap();
        operator.create_dir("a/b/").await.unwrap();
        let limit = Duration::from_secs(10);
        let contact = Contact::new("n", limit);
        let mut silent =
            Box::pin(contact.hold(NodeCall::List, std::future::pending::<error::Result<()>>()));
        for _ in 0..4 {
            let files = files_by_folders(&operator, String::new(), &contact);
            assert_eq!(files.count().await, 0);
            let waited = tokio::time::timeout(limit * 3 / 4, &mut silent).await;
            assert!(waited.is_err(), "the node is given up: {waited:?}");
        }
        tokio::time::timeout(limit, silent).await.unwrap().unwrap_err();
    }

    #[test]
    fn only_names_are_directly_in_a_folder() {
        for name in ["file", "folder/", "...", "ä b", "a@/"] {
            assert!(is_directly_in(name), "{name}");
        }
        for other in ["", "/", ".", "..", "../", "./", "a/b", "a/../", "/a", "//host/a"] {
            assert!(!is_directly_in(other), "{other}");
        }
    }
}
