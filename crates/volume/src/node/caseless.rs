//! A node that does not distinguish upper and lower case in file names, like most file systems of
//! cameras, of Windows and of macOS.
//!
//! On such a node the manifests of `Photo.JPG` and `photo.jpg` would be in one folder, and a put of
//! one name would remove the other object. So the folders of manifests are stored under names in
//! lower case, which say which letters are capitals: each hexadecimal digit after `=` stands for
//! four letters, the first one being its highest bit.
//!
//! | path | stored as |
//! | --- | --- |
//! | `manifests/Photo.JPG@/…` | `manifests/photo.jpg=87@/…` |
//! | `manifests/%C3%89t%C3%A9@/…` | `manifests/%c3%89t%c3%a9@/…` |
//!
//! The letters of escapes are always capitals. Other paths of a volume never differ in case alone.
//! A component grows by at most a quarter, from 201 bytes to 252.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use paritas_store::error::Result;

use super::{Abilities, Entry, Mode, Node, Stat, Writer};
use crate::names::MANIFESTS;

/// Begins the digits that say which letters are capitals. No name contains it in paths.
const CAPITALS: char = '=';

/// A node that distinguishes names which differ only in case, over a node that does not.
#[derive(Debug)]
pub struct Caseless(Arc<dyn Node>);

impl Caseless {
    /// Wraps a node that does not distinguish case.
    pub fn new(inner: Arc<dyn Node>) -> Self {
        Self(inner)
    }
}

/// Returns the path under which a file is stored.
fn stored(path: &str) -> Cow<'_, str> {
    match path.strip_prefix(MANIFESTS) {
        Some(below) if below.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            format!("{MANIFESTS}{}", each_component(below, lowered)).into()
        }
        _ => path.into(),
    }
}

/// Returns the path of a file that is stored under a path.
fn shown(stored: String) -> String {
    match stored.strip_prefix(MANIFESTS) {
        Some(below) if below.contains(['%', CAPITALS]) => {
            format!("{MANIFESTS}{}", each_component(below, raised))
        }
        _ => stored,
    }
}

/// Changes each component of a path, except for the `@` that may end it.
fn each_component(path: &str, change: impl Fn(&str) -> String) -> String {
    let change = |component: &str| match component.strip_suffix('@') {
        Some(name) => change(name) + "@",
        None => change(component),
    };
    path.split('/').map(change).collect::<Vec<_>>().join("/")
}

/// Returns the places of the letters that are not part of an escape.
fn letters(name: &str) -> impl Iterator<Item = usize> + '_ {
    let mut escaped = 0;
    name.bytes().enumerate().filter_map(move |(at, byte)| {
        if byte == b'%' {
            escaped = at + 3;
        }
        (byte.is_ascii_alphabetic() && at >= escaped).then_some(at)
    })
}

fn lowered(name: &str) -> String {
    let capitals: Vec<bool> =
        letters(name).map(|at| name.as_bytes()[at].is_ascii_uppercase()).collect();
    let digit = |four: &[bool]| {
        let bits = four.iter().zip([8, 4, 2, 1]).filter(|(is_capital, _)| **is_capital);
        char::from_digit(bits.map(|(_, bit)| bit).sum(), 16).unwrap_or_default()
    };
    let digits: String = capitals.chunks(4).map(digit).collect();
    let lower = name.to_ascii_lowercase();
    match digits.trim_end_matches('0') {
        "" => lower,
        digits => format!("{lower}{CAPITALS}{digits}"),
    }
}

fn raised(stored: &str) -> String {
    let (lower, digits) = stored.split_once(CAPITALS).unwrap_or((stored, ""));
    let digits: Vec<u32> = digits.chars().map(|digit| digit.to_digit(16).unwrap_or(0)).collect();
    let mut name = lower.as_bytes().to_vec();
    for (number, at) in letters(lower).enumerate() {
        let digit = digits.get(number / 4).copied().unwrap_or(0);
        if digit & (8 >> (number % 4)) != 0 {
            name[at].make_ascii_uppercase();
        }
    }
    for (at, _) in lower.match_indices('%') {
        name.iter_mut().skip(at).take(3).for_each(u8::make_ascii_uppercase);
    }
    String::from_utf8(name).unwrap_or_else(|_| stored.to_owned())
}

#[async_trait]
impl Node for Caseless {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn abilities(&self) -> Abilities {
        Abilities { cases: false, ..self.0.abilities() }
    }

    fn is_local(&self) -> bool {
        self.0.is_local()
    }

    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<Bytes> {
        self.0.read(&stored(path), range).await
    }

    async fn read_here(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        self.0.read_here(&stored(path), range).await
    }

    async fn stat(&self, path: &str) -> Result<Option<Stat>> {
        self.0.stat(&stored(path)).await
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxStream<'a, Result<Entry>> {
        let show = |entry: Result<Entry>| entry.map(|it| Entry { path: shown(it.path), ..it });
        match stored(prefix) {
            Cow::Borrowed(prefix) => self.0.list(prefix).map(show).boxed(),
            Cow::Owned(prefix) => {
                let all = async move { self.0.list(&prefix).map(show).collect::<Vec<_>>().await };
                stream::once(all).flat_map(stream::iter).boxed()
            }
        }
    }

    async fn folders(&self, prefix: &str) -> Result<Vec<String>> {
        let below = stored(prefix);
        let show = |folder: String| shown(format!("{below}{folder}"));
        let folders = self.0.folders(&below).await?.into_iter().map(show);
        Ok(folders.filter_map(|path| Some(path.strip_prefix(prefix)?.to_owned())).collect())
    }

    async fn write(&self, path: &str, content: Bytes, mode: Mode) -> Result<()> {
        self.0.write(&stored(path), content, mode).await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn Writer>> {
        self.0.writer(&stored(path)).await
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.0.delete(&stored(path)).await
    }

    async fn delete_folder(&self, prefix: &str) -> Result<()> {
        self.0.delete_folder(&stored(prefix)).await
    }

    async fn free_bytes(&self) -> Option<u64> {
        self.0.free_bytes().await
    }

    async fn forget_cached(&self, path: &str) {
        self.0.forget_cached(&stored(path)).await;
    }

    async fn sweep(&self, age: Duration) -> Result<u64> {
        self.0.sweep(age).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::ObjectName;
    use proptest::prelude::*;

    #[test]
    fn capitals_are_told_by_digits() {
        let cases = [
            ("manifests/photo.jpg@/1-2-3.put", "manifests/photo.jpg@/1-2-3.put"),
            ("manifests/Photo.JPG@/1-2-3.put", "manifests/photo.jpg=87@/1-2-3.put"),
            ("manifests/%C3%89T/B%2E@/", "manifests/%c3%89t=8/b%2e=8@/"),
            ("objects/ab/Photo.JPG", "objects/ab/Photo.JPG"),
        ];
        for (path, expected) in cases {
            assert_eq!(stored(path), expected);
            assert_eq!(shown(expected.to_owned()), path);
        }
    }

    proptest! {
        #[test]
        fn names_that_differ_in_case_are_kept_apart(text in "[a-cA-C%@é./=]{1,9}|[xX]{190,200}") {
            let Ok(name) = ObjectName::new(text) else { return Ok(()) };
            let path = name.folder();
            let lower = stored(&path).into_owned();
            prop_assert_eq!(&lower, &lower.to_ascii_lowercase());
            prop_assert!(lower.split('/').all(|component| component.len() <= 255));
            prop_assert_eq!(shown(lower), path);
        }

        #[test]
        fn any_path_is_shown_without_panic(text in "manifests/[\\PC%=@/a-zA-Z]{0,20}") {
            let _ = shown(text);
        }
    }
}
