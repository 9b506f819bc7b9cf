//! What one page of a listing leaves for the next.
//!
//! A page has at most a thousand keys, but the nodes list a whole folder at a time. If every page
//! listed the bucket anew, all pages of n keys together would read n²/1000 names. So the keys that
//! a page leaves are kept for a while, and the page that goes on where it ended takes them.
//!
//! Such a page shows what there was when the first page was listed, with every change that this
//! gateway has made since: it asks again about the names that changed. Changes that others made
//! meanwhile may be missing.
//!
//! A client gets only the keys that its own first page left. The keys of another list may have been
//! listed before a change that the client knows of. So the text with which a client asks for the
//! next page names the list. If the client asks another gateway, or begins after a key of its own
//! choice, the bucket is listed anew.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lru::LruCache;
use paritas_volume::{Listed, ObjectName, Overview};
use tokio::time::Instant;

use crate::held::held;

/// How long the keys that a page left are kept, counted from when they were listed.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// The most listings that are kept, and the most objects that all of them showed together. A single
/// list may be longer.
const MOST_LISTINGS: usize = 8;
const MOST_KEYS: usize = 500_000;
/// Number of changed names that are remembered. If more changed, pages list the bucket anew.
const MOST_CHANGES: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// The place where a listing goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListPlace {
    pub bucket: String,
    pub prefix: String,
    pub delimiter: String,
    pub mark: PageMark,
}

/// Where a page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageMark {
    /// The last key or common prefix of the page before.
    pub after: String,
    /// The list that the page before was taken from, if it is known.
    list: Option<u64>,
}

/// Stands between a key and the list that it was taken from. It is for private use in Unicode.
const OF_LIST: char = '\u{F8FF}';

impl PageMark {
    /// Begins after a key that a client has chosen.
    pub fn after(key: String) -> Self {
        Self { after: key, list: None }
    }

    /// Reads what a page told about the next one, or a key that a client has chosen.
    pub fn parse(text: &str) -> Self {
        let told = text.rsplit_once(OF_LIST).and_then(|(after, list)| {
            let list = u64::from_str_radix(list, 16).ok().filter(|_| list.len() == 16)?;
            Some(Self { after: after.to_owned(), list: Some(list) })
        });
        told.unwrap_or_else(|| Self::after(text.to_owned()))
    }
}

impl fmt::Display for PageMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.after)?;
        self.list.map_or(Ok(()), |list| write!(f, "{OF_LIST}{list:016x}"))
    }
}

/// Keys of a bucket in order, each with what stands for it in the volume.
#[derive(Debug)]
pub(crate) struct ListedKeys {
    pub keys: BTreeMap<String, (ObjectName, Listed)>,
    /// What the nodes showed of all of them.
    pub overview: Arc<Overview>,
    /// Number of objects that were listed. The overview has all of them in memory.
    listed_objects: usize,
    listed: Instant,
    /// Tells this list from others, also from those of other gateways.
    id: u64,
    /// All changes of this gateway before this moment are in `keys`.
    pub as_of: Instant,
}

impl ListedKeys {
    /// Keeps the keys of an overview that began at `listed`.
    pub fn of(
        keys: BTreeMap<String, (ObjectName, Listed)>,
        overview: Overview,
        listed: Instant,
    ) -> Self {
        let listed_objects = overview.objects().count();
        let id = getrandom::u64().unwrap_or_default();
        Self { keys, overview: Arc::new(overview), listed_objects, listed, id, as_of: listed }
    }

    /// Returns where the page begins that goes on after a key.
    pub fn mark(&self, after: String) -> PageMark {
        PageMark { after, list: Some(self.id) }
    }

    fn is_current(&self) -> bool {
        self.listed.elapsed() < KEPT_FOR
    }
}

/// The keys that pages left, and the names that changed since.
pub(crate) struct Continuations {
    kept: Arc<Mutex<VecDeque<(ListPlace, ListedKeys)>>>,
    changes: Mutex<RecentChanges>,
}

/// Whether this number of lists, or of the keys in all of them, is too much to be kept.
fn is_too_much(lists: usize, keys: usize) -> bool {
    lists > MOST_LISTINGS || lists > 1 && keys > MOST_KEYS
}

struct RecentChanges {
    /// When each name changed last; the latest change stands first.
    times: LruCache<ObjectName, Instant>,
    /// The time of the latest change that is not remembered any more.
    forgotten: Option<Instant>,
}

impl Default for Continuations {
    fn default() -> Self {
        let changes = RecentChanges { times: LruCache::new(MOST_CHANGES), forgotten: None };
        Self { kept: Arc::default(), changes: Mutex::new(changes) }
    }
}

impl Continuations {
    /// Takes the keys that are left from this place on, if they are kept.
    pub fn take(&self, place: &ListPlace) -> Option<ListedKeys> {
        let mut kept = held(&self.kept);
        let at = kept.iter().position(|(of, _)| of == place)?;
        kept.remove(at).map(|(_, keys)| keys).filter(ListedKeys::is_current)
    }

    /// Keeps the keys that are left from this place on. If there are too many, the oldest lists go;
    /// the newest stays whatever its length, because its page has had all of it in memory.
    pub fn keep(&self, place: ListPlace, keys: ListedKeys) {
        let mut kept = held(&self.kept);
        kept.retain(|(of, _)| *of != place);
        kept.push_back((place, keys));
        let mut count: usize = kept.iter().map(|(_, keys)| keys.listed_objects).sum();
        while is_too_much(kept.len(), count) {
            let Some((_, oldest)) = kept.pop_front() else { break };
            count -= oldest.listed_objects;
        }
        let kept = Arc::downgrade(&self.kept);
        tokio::spawn(async move {
            tokio::time::sleep(KEPT_FOR).await;
            if let Some(kept) = kept.upgrade() {
                held(&kept).retain(|(_, keys)| keys.is_current());
            }
        });
    }

    /// Notes that this gateway has written or removed an object of this name.
    pub fn note_change(&self, name: &ObjectName) {
        let mut changes = held(&self.changes);
        let pushed = changes.times.push(name.clone(), Instant::now());
        if let Some((_, time)) = pushed.filter(|(gone, _)| gone != name) {
            changes.forgotten = Some(time);
        }
    }

    /// Returns the names that this gateway has changed since `as_of`, or `None` if not all of them
    /// are remembered.
    pub fn changed_since(&self, as_of: Instant) -> Option<Vec<ObjectName>> {
        let changes = held(&self.changes);
        if changes.forgotten.is_some_and(|time| time >= as_of) {
            return None;
        }
        let since = changes.times.iter().take_while(|(_, time)| **time >= as_of);
        Some(since.map(|(name, _)| name.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgotten_changes_are_told() {
        let continuations = Continuations::default();
        let begin = Instant::now();
        let name = |index: usize| ObjectName::new(format!("bucket/{index}")).unwrap();
        for index in 0..MOST_CHANGES.get() {
            continuations.note_change(&name(index));
        }
        continuations.note_change(&name(0));
        let changed = continuations.changed_since(begin).unwrap();
        assert_eq!(changed.len(), MOST_CHANGES.get());
        assert_eq!(changed[0], name(0));
        assert_eq!(continuations.changed_since(Instant::now()), Some(Vec::new()));
        continuations.note_change(&name(MOST_CHANGES.get()));
        assert_eq!(continuations.changed_since(begin), None);
    }

    #[test]
    fn marks_are_read_as_they_are_told() {
        for (after, list) in [("a/b", Some(7)), ("", Some(u64::MAX)), ("a\u{F8FF}b", None)] {
            let mark = PageMark { after: after.to_owned(), list };
            assert_eq!(PageMark::parse(&mark.to_string()), mark);
        }
        assert_eq!(PageMark::parse("a\u{F8FF}12").after, "a\u{F8FF}12");
    }

    #[tokio::test]
    async fn the_oldest_lists_go_first() {
        let continuations = Continuations::default();
        let place = |after: usize| ListPlace {
            bucket: "bucket".to_owned(),
            prefix: String::new(),
            delimiter: String::new(),
            mark: PageMark { after: String::new(), list: Some(after as u64) },
        };
        for at in 0..=MOST_LISTINGS {
            let keys = ListedKeys::of(BTreeMap::new(), Overview::default(), Instant::now());
            continuations.keep(place(at), keys);
        }
        assert!(continuations.take(&place(0)).is_none());
        assert!(continuations.take(&place(1)).is_some());
        assert!(continuations.take(&place(1)).is_none(), "a page takes its keys");
        assert!(continuations.take(&place(MOST_LISTINGS)).is_some());
        assert!(is_too_much(2, MOST_KEYS + 1) && is_too_much(MOST_LISTINGS + 1, 0));
        assert!(!is_too_much(1, MOST_KEYS + 1), "the newest stays, however long");
    }
}
