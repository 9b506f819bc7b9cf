//! What clients of gateways did and saw, and whether every key was a regular register.
//!
//! S3 tells clients no versions. So a reader may have got any content that was not certainly
//! replaced. A content was certainly replaced if its put ended before the put of another content
//! began, and that put ended before the reader began.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// What one request did to a key, or saw of it. Times count from the beginning of the run.
#[derive(Debug, Clone)]
struct KeyDeed {
    key: usize,
    begun: Duration,
    /// When it ended. Without an answer, it may have an effect at any time.
    ended: Option<Duration>,
    what: KeyAct,
}

/// What was written or read. Contents are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAct {
    Put(u64),
    /// A copy, until it is known which content was copied.
    Copy,
    Remove,
    /// It was refused.
    Nothing,
    /// `None` means that there was no object.
    Read(Option<u64>),
}

/// All deeds of a run.
#[derive(Debug)]
pub struct KeyHistory {
    start: Instant,
    deeds: Vec<KeyDeed>,
    flaws: Vec<String>,
    /// The contents whose objects have an ETag, by this ETag.
    etags: BTreeMap<String, u64>,
}

impl KeyDeed {
    /// Whether this deed was over before another one began.
    fn is_before(&self, other: &Self) -> bool {
        self.ended.is_some_and(|ended| ended < other.begun)
    }

    /// Whether the key has something else after this deed.
    fn is_change(&self) -> bool {
        matches!(self.what, KeyAct::Put(_) | KeyAct::Copy | KeyAct::Remove)
    }

    /// Whether the key may have this after this deed.
    fn may_leave(&self, seen: Option<u64>) -> bool {
        match self.what {
            KeyAct::Put(number) => seen == Some(number),
            KeyAct::Copy => seen.is_some(),
            KeyAct::Remove => seen.is_none(),
            KeyAct::Read(_) | KeyAct::Nothing => false,
        }
    }
}

impl KeyHistory {
    pub fn new() -> Self {
        let (start, deeds) = (Instant::now(), Vec::new());
        Self { start, deeds, flaws: Vec::new(), etags: BTreeMap::new() }
    }

    /// Returns the time since the beginning of the run.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Notes that a request begins. Returns its number.
    pub fn begin(&mut self, key: usize, what: KeyAct) -> usize {
        self.deeds.push(KeyDeed { key, begun: self.now(), ended: None, what });
        self.deeds.len() - 1
    }

    /// Notes that a request was acknowledged.
    pub fn end(&mut self, deed: usize) {
        let now = self.now();
        self.deeds[deed].ended.get_or_insert(now);
    }

    /// Notes that a copy was acknowledged, and which content it has.
    pub fn copied(&mut self, deed: usize, number: u64) {
        self.end(deed);
        self.deeds[deed].what = KeyAct::Put(number);
    }

    /// Notes that a request was refused: it has no effect.
    pub fn refuse(&mut self, deed: usize) {
        self.end(deed);
        self.deeds[deed].what = KeyAct::Nothing;
    }

    /// Notes what was read in a time that has just ended.
    pub fn saw(&mut self, key: usize, begun: Duration, what: Option<u64>) {
        let ended = Some(self.now());
        self.deeds.push(KeyDeed { key, begun, ended, what: KeyAct::Read(what) });
    }

    /// Notes that objects with this ETag have this content.
    pub fn know(&mut self, etag: String, number: u64) {
        self.etags.insert(etag, number);
    }

    /// Returns the content of objects with this ETag.
    pub fn of_etag(&self, etag: &str) -> Option<u64> {
        self.etags.get(etag).copied()
    }

    /// Whether a key may get a version that was not acknowledged.
    pub fn is_open(&self, key: usize) -> bool {
        self.deeds.iter().any(|deed| deed.key == key && deed.ended.is_none())
    }

    pub fn flaw(&mut self, flaw: impl ToString) {
        self.flaws.push(flaw.to_string());
    }

    /// Returns what is wrong, if anything is.
    pub fn check(&self) -> Vec<String> {
        let wrong = self.deeds.iter().filter_map(|deed| {
            let KeyAct::Read(seen) = deed.what else { return None };
            (!self.may_see(deed, seen)).then(|| format!("{deed:?}: {}", self.told(deed)))
        });
        self.flaws.iter().cloned().chain(wrong).collect()
    }

    /// Whether a reader may have seen this.
    fn may_see(&self, read: &KeyDeed, seen: Option<u64>) -> bool {
        let of_key = self.deeds.iter().filter(|deed| deed.key == read.key);
        let written: Vec<&KeyDeed> = of_key.filter(|deed| deed.is_change()).collect();
        let replaced = |by: &dyn Fn(&KeyDeed) -> bool| {
            written.iter().any(|later| later.is_before(read) && by(later))
        };
        let of_deed = written.iter().any(|deed| {
            deed.may_leave(seen)
                && !read.is_before(deed)
                && !replaced(&|later| deed.is_before(later))
        });
        // Before the first put, there is nothing.
        of_deed || seen.is_none() && !replaced(&|_| true)
    }

    /// Tells what had been written to the key.
    fn told(&self, read: &KeyDeed) -> String {
        let of_key = self.deeds.iter().filter(|deed| deed.key == read.key);
        let written = of_key.filter(|deed| deed.is_change() && !read.is_before(deed));
        format!("after {:?}", written.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history of deeds: what, when it began, and when it ended.
    fn flaws(deeds: &[(KeyAct, u64, Option<u64>)]) -> usize {
        let mut history = KeyHistory { start: Instant::now(), ..KeyHistory::new() };
        let deed = |&(what, begun, ended): &(KeyAct, u64, Option<u64>)| KeyDeed {
            key: 0,
            begun: Duration::from_secs(begun),
            ended: ended.map(Duration::from_secs),
            what,
        };
        history.deeds = deeds.iter().map(deed).collect();
        history.check().len()
    }

    #[tokio::test(start_paused = true)]
    async fn replaced_contents_are_not_read() {
        use KeyAct::{Put, Read, Remove};
        let two = [(Put(1), 0, Some(1)), (Put(2), 2, Some(3))];
        let and_read = |seen, begun| [&two[..], &[(Read(seen), begun, Some(begun + 1))]].concat();
        assert_eq!(flaws(&and_read(Some(2), 4)), 0);
        assert_eq!(flaws(&and_read(Some(1), 4)), 1);
        assert_eq!(flaws(&and_read(Some(1), 2)), 0, "the second put was under way");
        assert_eq!(flaws(&and_read(None, 4)), 1);
        assert_eq!(flaws(&and_read(Some(7), 4)), 1, "nobody has written it");
        let never_told = [(Put(1), 0, None), (Put(2), 1, Some(2)), (Read(Some(1)), 5, Some(6))];
        assert_eq!(flaws(&never_told), 0, "a put without an answer may come late");
        let removed = [(Put(1), 0, Some(1)), (Remove, 2, None), (Read(None), 5, Some(6))];
        assert_eq!(flaws(&removed), 0);
        let early = [(Read(Some(1)), 0, Some(1)), (Put(1), 2, Some(3))];
        assert_eq!(flaws(&early), 1);
    }
}
