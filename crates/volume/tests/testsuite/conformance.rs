//! What every node must do, checked one promise after the other.
//!
//! The checks need nothing but a [`Node`]. They write only below a folder `conformance-…` and
//! remove what they have written.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use futures::future::join_all;
use paritas_volume::node::{Entry, MOST_WHOLE, Mode, Node, Writer, check_path};
use paritas_volume::{Error, ErrorKind, Result};

/// Number of files in a listing that takes more than one page: services send 1,000 at most.
const MANY: usize = 1100;

/// Number of files that are written or deleted at a time where there are many.
const AT_A_TIME: usize = 16;

/// Number of those who create a file at once.
const RACERS: u8 = 8;

/// Bytes of a file that a service may take in several parts.
const LARGE: usize = (5 << 20) + 1;

/// What was checked, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The checks in their order.
    pub outcomes: Vec<Outcome>,
}

/// What came of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The promise that was checked.
    pub promise: &'static str,
    /// What was wrong, if something was.
    pub failure: Option<String>,
}

impl Report {
    /// Whether nothing was wrong.
    pub fn passed(&self) -> bool {
        self.failures().next().is_none()
    }

    /// Returns the checks that failed.
    pub fn failures(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(|outcome| outcome.failure.is_some())
    }

    async fn add(&mut self, promise: &'static str, check: impl Future<Output = Result<()>>) {
        let failure = check.await.err().map(|error| error.to_string());
        self.outcomes.push(Outcome { promise, failure });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed = self.failures().count();
        write!(f, "{} of {} checks passed", self.outcomes.len() - failed, self.outcomes.len())?;
        for Outcome { promise, failure } in self.failures() {
            write!(f, "\n  {promise}: {}", failure.as_deref().unwrap_or_default())?;
        }
        Ok(())
    }
}

/// Checks a node that can be written and listed.
pub async fn check(node: &dyn Node) -> Report {
    let suite = Suite::new(node, node);
    let mut report = Report { outcomes: Vec::new() };
    suite.check_reading(&mut report).await;
    suite.check_writing(&mut report).await;
    suite.check_writers(&mut report).await;
    suite.check_listing(&mut report).await;
    report.add("everything that was written can be removed", suite.clean_up()).await;
    report
}

/// Checks a node that can only be read. The files that it reads are written by `writer`, a node at
/// the same place.
pub async fn check_reader(node: &dyn Node, writer: &dyn Node) -> Report {
    let suite = Suite::new(node, writer);
    let mut report = Report { outcomes: Vec::new() };
    suite.check_reading(&mut report).await;
    report.add("writing is refused", suite.writing_is_refused()).await;
    report.add("everything that was written can be removed", suite.clean_up()).await;
    report
}

struct Suite<'a> {
    node: &'a dyn Node,
    writer: &'a dyn Node,
    folder: String,
}

/// Fails with a message unless something holds.
fn expect(holds: bool, message: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::new(ErrorKind::Io, message())) }
}

fn expect_equal<T: PartialEq + fmt::Debug>(got: T, wanted: T, what: &str) -> Result<()> {
    expect(got == wanted, || format!("{what} is {got:?} instead of {wanted:?}"))
}

fn expect_kind<T: fmt::Debug>(result: Result<T>, kind: ErrorKind, what: &str) -> Result<()> {
    match result {
        Err(error) if error.kind() == kind => Ok(()),
        Err(error) => expect(false, || {
            format!("{what} failed with {:?} instead of {kind:?}: {error}", error.kind())
        }),
        Ok(_) => expect(false, || format!("{what} succeeded instead of failing with {kind:?}")),
    }
}

/// Returns bytes that differ from place to place and from seed to seed.
fn bytes(length: usize, seed: u8) -> Bytes {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[seed]);
    let mut content = vec![0; length];
    hasher.finalize_xof().fill(&mut content);
    content.into()
}

impl<'a> Suite<'a> {
    fn new(node: &'a dyn Node, writer: &'a dyn Node) -> Self {
        let number = getrandom::u64().unwrap_or_else(|_| u64::from(std::process::id()));
        Self { node, writer, folder: format!("conformance-{number:016x}") }
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    async fn put(&self, path: &str, content: Bytes) -> Result<()> {
        self.writer.write(path, content, Mode::Replace).await
    }

    async fn holds(&self, path: &str, content: &Bytes) -> Result<()> {
        let wanted = content.len();
        // What is too long to be read whole is read as a range of the length that the node states.
        let range = match wanted as u64 <= MOST_WHOLE {
            true => None,
            false => self.node.stat(path).await?.map(|found| 0..found.length),
        };
        let read = self.node.read(path, range).await?;
        let got = read.len();
        expect(read == *content, || {
            format!("{path} has {got} bytes, not the {wanted} that were written")
        })
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        let mut entries: Vec<_> = self.writer.list(prefix).try_collect().await?;
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    async fn check_reading(&self, report: &mut Report) {
        report.add("files of 0 bytes, 1 byte and 5 MiB + 1 come back", self.round_trips()).await;
        report.add("a replaced file has its new content", self.replacing()).await;
        report.add("ranges are read to the byte", self.ranges()).await;
        report.add("a range beyond the end is an error", self.ranges_beyond_the_end()).await;
        report.add("an absent file is not found", self.absence()).await;
        report.add("names may contain spaces, signs and letters of any script", self.names()).await;
        report.add("paths that lead elsewhere are refused", self.paths()).await;
    }

    async fn check_writing(&self, report: &mut Report) {
        report.add("a file is created only once", self.creating()).await;
        if self.node.abilities().create {
            report.add("of eight creators one succeeds", self.racing()).await;
        }
        report.add("a deleted file is gone, and may be deleted again", self.deleting()).await;
    }

    async fn check_writers(&self, report: &mut Report) {
        report.add("a writer's file appears when it is finished", self.writing()).await;
        report.add("a writer replaces a file, or leaves it as it was", self.rewriting()).await;
        report.add("an aborted writer leaves nothing", self.aborting()).await;
        report.add("a dropped writer leaves nothing", self.dropping()).await;
        report.add("of two writers of a path, one wins whole", self.writing_twice()).await;
        report.add("many writers can be open at a time", self.writing_many()).await;
        report.add("a sweep keeps what is being written", self.sweeping()).await;
    }

    async fn check_listing(&self, report: &mut Report) {
        report.add("listings show the files below a prefix, at any depth", self.listing()).await;
        report.add("a listing may be long", self.listing_many()).await;
    }

    async fn round_trips(&self) -> Result<()> {
        for length in [0, 1, LARGE] {
            let path = self.path(&format!("length-{length}"));
            let content = bytes(length, 1);
            self.put(&path, content.clone()).await?;
            self.holds(&path, &content).await?;
            let found = self.node.stat(&path).await?;
            expect_equal(found.map(|found| found.length), Some(length as u64), "the length")?;
        }
        Ok(())
    }

    async fn replacing(&self) -> Result<()> {
        let path = self.path("replaced");
        for (length, seed) in [(1000, 1), (10, 2), (2000, 3)] {
            let content = bytes(length, seed);
            self.put(&path, content.clone()).await?;
            self.holds(&path, &content).await?;
        }
        Ok(())
    }

    async fn ranges(&self) -> Result<()> {
        let path = self.path("ranges");
        let content = bytes(10_000, 4);
        self.put(&path, content.clone()).await?;
        let ranges: [Range<u64>; 7] =
            [0..1, 0..10_000, 9_999..10_000, 1..9_999, 4_096..8_192, 0..0, 10_000..10_000];
        for range in ranges {
            let read = self.node.read(&path, Some(range.clone())).await?;
            let wanted = content.slice(range.start as usize..range.end as usize);
            expect(read == wanted, || format!("bytes {range:?} are not those of the file"))?;
        }
        Ok(())
    }

    async fn ranges_beyond_the_end(&self) -> Result<()> {
        let path = self.path("short");
        self.put(&path, bytes(100, 5)).await?;
        for range in [0..101, 99..101, 100..101, 1_000..1_001, 101..101] {
            let read = self.node.read(&path, Some(range.clone())).await;
            expect_kind(read, ErrorKind::Io, &format!("reading bytes {range:?} of 100"))?;
        }
        Ok(())
    }

    async fn absence(&self) -> Result<()> {
        for path in [self.path("absent"), self.path("absent/deeper")] {
            for range in [None, Some(0..1), Some(0..0)] {
                let read = self.node.read(&path, range).await;
                expect_kind(read, ErrorKind::NotFound, "reading an absent file")?;
            }
            expect_equal(self.node.stat(&path).await?, None, "what is known of an absent file")?;
        }
        Ok(())
    }

    async fn names(&self) -> Result<()> {
        let names = [
            "with space",
            "100%",
            "%41",
            "a#b",
            "a?b=c&d",
            "a+b",
            "äöüß",
            "東京",
            "a'b\"c",
            "~x",
            "-",
        ];
        for (seed, name) in (0..).zip(names) {
            let path = self.path(&format!("names/{name}/{name}"));
            self.put(&path, bytes(20, seed)).await?;
        }
        for (seed, name) in (0..).zip(names) {
            self.holds(&self.path(&format!("names/{name}/{name}")), &bytes(20, seed)).await?;
        }
        if !self.node.abilities().list {
            return Ok(());
        }
        let mut wanted: Vec<_> =
            names.iter().map(|name| self.path(&format!("names/{name}/{name}"))).collect();
        wanted.sort();
        let listed = self.list(&self.path("names/")).await?;
        let listed: Vec<_> = listed.into_iter().map(|entry| entry.path).collect();
        expect_equal(listed, wanted, "the listing of names")
    }

    async fn paths(&self) -> Result<()> {
        for path in ["..", "../x", "a/../../x", "/x", "", "a//b", "a/", "./a", " a", "a\n"] {
            expect(check_path(path).is_err(), || format!("{path:?} is a path"))?;
            let read = self.node.read(path, None).await;
            expect_kind(read, ErrorKind::Parameters, &format!("reading {path:?}"))?;
            let found = self.node.stat(path).await;
            expect_kind(found, ErrorKind::Parameters, &format!("looking at {path:?}"))?;
            let written = self.writer.write(path, Bytes::new(), Mode::Replace).await;
            expect_kind(written, ErrorKind::Parameters, &format!("writing {path:?}"))?;
        }
        Ok(())
    }

    async fn creating(&self) -> Result<()> {
        let path = self.path("created/once");
        let (first, second) = (bytes(30, 6), bytes(40, 7));
        self.node.write(&path, first.clone(), Mode::Create).await?;
        let again = self.node.write(&path, second, Mode::Create).await;
        expect_kind(again, ErrorKind::Exists, "creating an existing file")?;
        self.holds(&path, &first).await
    }

    async fn racing(&self) -> Result<()> {
        for round in 0..4 {
            let path = self.path(&format!("race-{round}/file"));
            let create = |racer| self.node.write(&path, bytes(1000, racer), Mode::Create);
            let results = join_all((0..RACERS).map(create)).await;
            let winners: Vec<_> =
                (0..RACERS).filter(|racer| results[usize::from(*racer)].is_ok()).collect();
            for error in results.into_iter().filter_map(Result::err) {
                expect_kind(Err::<(), _>(error), ErrorKind::Exists, "creating an existing file")?;
            }
            expect_equal(winners.len(), 1, "the number of creators who succeeded")?;
            self.holds(&path, &bytes(1000, winners[0])).await?;
        }
        Ok(())
    }

    async fn deleting(&self) -> Result<()> {
        let path = self.path("deleted/file");
        self.put(&path, bytes(10, 8)).await?;
        for _ in 0..2 {
            self.node.delete(&path).await?;
            expect_equal(self.node.stat(&path).await?, None, "what is known of a deleted file")?;
            self.node.delete_folder(&self.path("deleted/")).await?;
        }
        self.put(&path, bytes(10, 9)).await?;
        self.holds(&path, &bytes(10, 9)).await
    }

    /// Writes half of a content in pieces of several lengths.
    async fn begin(&self, path: &str, content: &Bytes) -> Result<Box<dyn Writer>> {
        let mut writer = self.node.writer(path).await?;
        let half = content.len() / 2;
        let (first, second) = (content.slice(..half / 3), content.slice(half / 3..half));
        writer.write(vec![first, Bytes::new(), second]).await?;
        Ok(writer)
    }

    async fn end(&self, mut writer: Box<dyn Writer>, content: &Bytes) -> Result<()> {
        writer.write(vec![content.slice(content.len() / 2..)]).await?;
        writer.finish().await
    }

    async fn writing(&self) -> Result<()> {
        for (name, length) in
            [("written/none", 0), ("written/little", 7), ("written/much", 2 * LARGE)]
        {
            let (path, content) = (self.path(name), bytes(length, 10));
            let writer = self.begin(&path, &content).await?;
            expect_equal(
                self.node.stat(&path).await?,
                None,
                "what is known of an unfinished file",
            )?;
            self.end(writer, &content).await?;
            self.holds(&path, &content).await?;
        }
        Ok(())
    }

    async fn rewriting(&self) -> Result<()> {
        let path = self.path("rewritten");
        let (old, new) = (bytes(5000, 11), bytes(3000, 12));
        self.put(&path, old.clone()).await?;
        let writer = self.begin(&path, &new).await?;
        self.holds(&path, &old).await?;
        self.end(writer, &new).await?;
        self.holds(&path, &new).await?;
        self.begin(&path, &old).await?.abort().await;
        self.holds(&path, &new).await
    }

    async fn aborting(&self) -> Result<()> {
        for length in [0, 100, 4 * LARGE] {
            let path = self.path(&format!("aborted/{length}"));
            self.begin(&path, &bytes(length, 13)).await?.abort().await;
            expect_equal(self.node.stat(&path).await?, None, "what is known of an aborted file")?;
        }
        self.nothing_below("aborted/").await
    }

    async fn dropping(&self) -> Result<()> {
        let path = self.path("dropped/file");
        drop(self.begin(&path, &bytes(4 * LARGE, 14)).await?);
        tokio::time::sleep(Duration::from_millis(100)).await;
        expect_equal(self.node.stat(&path).await?, None, "what is known of a dropped file")?;
        self.nothing_below("dropped/").await
    }

    async fn nothing_below(&self, prefix: &str) -> Result<()> {
        let left = self.list(&self.path(prefix)).await?;
        expect(left.is_empty(), || format!("the listing shows {left:?}"))
    }

    async fn writing_twice(&self) -> Result<()> {
        let path = self.path("twice");
        let (one, other) = (bytes(LARGE, 15), bytes(LARGE + 1000, 16));
        let first = self.begin(&path, &one).await?;
        let second = self.begin(&path, &other).await?;
        let (first, second) = futures::join!(self.end(first, &one), self.end(second, &other));
        first.and(second)?;
        match self.holds(&path, &one).await {
            Err(_) => self.holds(&path, &other).await,
            held => held,
        }
    }

    async fn writing_many(&self) -> Result<()> {
        let path = |number| self.path(&format!("together/{number}"));
        let mut writers = Vec::new();
        for number in 0..24 {
            writers.push(self.begin(&path(number), &bytes(1000, number)).await?);
        }
        for (number, writer) in (0..24).zip(writers) {
            self.end(writer, &bytes(1000, number)).await?;
        }
        for number in 0..24 {
            self.holds(&path(number), &bytes(1000, number)).await?;
        }
        Ok(())
    }

    async fn sweeping(&self) -> Result<()> {
        let (path, content) = (self.path("swept"), bytes(LARGE, 18));
        let writer = self.begin(&path, &content).await?;
        self.node.sweep(Duration::from_secs(3600)).await?;
        self.end(writer, &content).await?;
        self.holds(&path, &content).await
    }

    async fn listing(&self) -> Result<()> {
        let names = ["list/a", "list/b/c", "list/b/d/e/f", "list-beside", "list/bb"];
        for name in names {
            self.put(&self.path(name), bytes(name.len(), 17)).await?;
        }
        let below = |prefix: &str| -> Vec<(String, u64)> {
            let mut found: Vec<_> = names
                .iter()
                .filter(|name| name.starts_with(prefix))
                .map(|name| (self.path(name), name.len() as u64))
                .collect();
            found.sort();
            found
        };
        for prefix in ["list/", "list/b/", "list/b/d/e/", "list/none/"] {
            let listed = self.list(&self.path(prefix)).await?;
            let wanted = below(prefix);
            let paths: Vec<_> = listed.iter().map(|entry| &entry.path).collect();
            expect_equal(paths, wanted.iter().map(|(path, _)| path).collect(), "the listing")?;
            for (entry, (_, length)) in listed.iter().zip(&wanted) {
                expect_equal(entry.length.unwrap_or(*length), *length, "the length in a listing")?;
            }
        }
        for (prefix, wanted) in [
            ("", vec!["list"]),
            ("list/", vec!["b"]),
            ("list/b/", vec!["d"]),
            ("list/none/", vec![]),
        ] {
            let folders = self.writer.folders(&(self.path("") + prefix)).await?;
            // Other checks have left folders beside these.
            let folders: Vec<&str> = folders
                .iter()
                .map(|name| &**name)
                .filter(|name| !prefix.is_empty() || *name == "list")
                .collect();
            expect_equal(folders, wanted, "the folders below a prefix")?;
        }
        Ok(())
    }

    async fn listing_many(&self) -> Result<()> {
        let mut wanted: Vec<_> =
            (0..MANY).map(|number| self.path(&format!("many/{}/{number}", number % 3))).collect();
        wanted.sort();
        for paths in wanted.chunks(AT_A_TIME) {
            join_all(paths.iter().map(|path| self.put(path, Bytes::from_static(b"x"))))
                .await
                .into_iter()
                .collect::<Result<()>>()?;
        }
        let listed = self.list(&self.path("many/")).await?;
        expect_equal(listed.len(), MANY, "the number of entries")?;
        let same = listed.iter().map(|entry| &entry.path).eq(&wanted);
        expect(same, || "the listing shows other paths".to_owned())
    }

    async fn writing_is_refused(&self) -> Result<()> {
        let path = self.path("refused");
        let content = Bytes::from_static(b"x");
        let is_refused =
            |error: &Error| matches!(error.kind(), ErrorKind::Refused | ErrorKind::Unsupported);
        let writes = [
            self.node.write(&path, content.clone(), Mode::Replace).await,
            self.node.write(&path, content, Mode::Create).await,
            self.node.delete(&path).await,
            self.node.writer(&path).await.map(drop),
        ];
        for result in writes {
            expect(result.as_ref().is_err_and(is_refused), || format!("got {result:?}"))?;
        }
        Ok(())
    }

    async fn clean_up(&self) -> Result<()> {
        let prefix = format!("{}/", self.folder);
        let left = self.list(&prefix).await?;
        for entries in left.chunks(AT_A_TIME) {
            join_all(entries.iter().map(|entry| self.writer.delete(&entry.path)))
                .await
                .into_iter()
                .collect::<Result<()>>()?;
        }
        let left = self.list(&prefix).await?;
        expect_equal(left.len(), 0, "the number of files that are left")
    }
}
