//! Names of objects, and their form in paths.
//!
//! Paths must mean the same on all nodes: in buckets, where a key has at most 1,024 bytes, and in
//! folders, where a name has at most 255. Some of them change letters with accents, refuse blanks
//! and dots at the end of a name, or give some characters a meaning. So a component of a name is
//! *escaped*: bytes other than ASCII letters, digits, `.`, `_` and `-` become `%XX`, and so do a
//! `.` at either end. No component contains the `@` that ends the folder of a name's manifests, or
//! begins with the `.` of temporary files, and a name can be the folder of others.
//!
//! If an escaped text is too long, it is *shortened*. `!` marks shortened texts:
//!
//! | in a path | stands for |
//! | --- | --- |
//! | `!<64 hex>` | a component, by its BLAKE3 |
//! | `!!<64 hex>` | all components from here on, joined by `/`, by their BLAKE3 |
//!
//! A path with `!` does not state the name ([`PathName`]). The manifests at that path state it, and
//! [`Texts`] remembers these names.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::str::FromStr;

use paritas_store::error::{Error, Result};

/// The most bytes of a name.
const MOST_NAME: usize = 1024;
/// The most bytes of a component of a name.
const MOST_COMPONENT: usize = 255;

/// The most bytes of an escaped component; a longer one is shortened. The file of a shard is named
/// after the last component and needs some more bytes. File systems allow 255 in all.
const MOST_ESCAPED: usize = 200;
/// The most bytes of a name in a path. Buckets allow keys of 1,024 bytes. A manifest needs some of
/// these for its version, and the bucket's prefix needs others.
const MOST_IN_PATH: usize = 900;

/// Beginning of the form that stands for one component.
const SHORT: &str = "!";
/// Beginning of the form that stands for several components.
const SHORT_REST: &str = "!!";
/// Number of bytes of the form that stands for several components: [`SHORT_REST`] and a BLAKE3 in
/// hexadecimal digits.
const REST_BYTES: usize = 2 + 64;

/// The name of an object: components separated by `/`. It has at most 1,024 bytes, and each
/// component at most 255.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName(String);

impl ObjectName {
    /// Creates a name.
    ///
    /// # Errors
    /// If a component is empty, `.` or `..`, contains NUL or is too long, or if the name is too
    /// long ([`crate::ErrorKind::Parameters`]).
    pub fn new(name: impl Into<String>) -> Result<Self> {
        let name = Self(name.into());
        (1..)
            .zip(name.0.split('/'))
            .try_for_each(|(at, part)| check_component(&name.0, at, part))?;
        match name.0.len() {
            bytes if bytes > MOST_NAME => Err(Error::parameters(format!(
                "the name {:?} has {bytes} bytes; at most {MOST_NAME} are allowed",
                beginning(&name.0)
            ))),
            _ => Ok(name),
        }
    }

    /// Returns the name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the last component.
    pub fn base(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Whether older programs, too, can read the name in paths.
    pub(crate) fn is_readable_by_all(&self) -> bool {
        // An escape has three bytes.
        let is_short = self.0.len() * 3 <= MOST_ESCAPED || !self.in_path().contains(SHORT);
        is_short && !self.0.contains(char::is_control)
    }

    /// Returns the form of the name in paths.
    pub(crate) fn in_path(&self) -> String {
        let components: Vec<&str> = self.0.split('/').collect();
        let forms: Vec<String> = components.iter().copied().map(component_in_path).collect();
        let whole = forms.join("/");
        if whole.len() <= MOST_IN_PATH {
            return whole;
        }
        let kept = &forms[..leading(&forms)];
        let rest = components[kept.len()..].join("/");
        format!("{}/{}", kept.join("/"), digest(SHORT_REST, &rest))
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ObjectName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::new(name)
    }
}

/// The texts of shortened components, as far as manifests have stated them.
#[derive(Debug, Default)]
pub(crate) struct Texts(BTreeMap<String, String>);

impl Texts {
    /// Remembers the components of a name that a manifest stated.
    pub fn learn(&mut self, name: &ObjectName) {
        let path = name.in_path();
        let mut text = name.0.as_str();
        for form in path.split('/') {
            let (component, rest) = text.split_once('/').unwrap_or((text, ""));
            if is_short(form) {
                let whole = if form.starts_with(SHORT_REST) { text } else { component };
                self.0.insert(form.to_owned(), whole.to_owned());
            }
            text = rest;
        }
    }

    /// Parses the form of a name in paths. Returns `None` if no name has this form, or if a
    /// shortened component is unknown.
    pub fn name(&self, path: &str) -> Option<ObjectName> {
        let text = |form: &str| match is_short(form) {
            true => self.0.get(form).cloned(),
            false => unescape(form),
        };
        let texts: Option<Vec<String>> = path.split('/').map(text).collect();
        let name = ObjectName::new(texts?.join("/")).ok()?;
        (name.in_path() == path).then_some(name)
    }

    /// Returns the first component in the path of a name that is shortened and unknown.
    pub fn unknown<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.split('/').find(|form| is_short(form) && !self.0.contains_key(*form))
    }
}

/// A name as a path shows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathName {
    /// The path states the name.
    Whole(ObjectName),
    /// The name is shortened to this form. The manifests at that path state it.
    Shortened(String),
}

impl PathName {
    /// Parses the form of a name in paths. Returns `None` if no name has this form.
    pub fn parse(path: &str) -> Option<Self> {
        let whole = |path| Texts::default().name(path);
        if !path.contains(SHORT) {
            return whole(path).map(Self::Whole);
        }
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        let is_name = path.len() <= MOST_IN_PATH
            && path.split('/').all(|form| is_short(form) || whole(form).is_some())
            && !above.contains(SHORT_REST);
        is_name.then(|| Self::Shortened(path.to_owned()))
    }
}

/// Returns the path below which all names that begin with `prefix` are. It ends in `/`, or is empty
/// if the names may be anywhere.
pub(crate) fn path_above(prefix: &str) -> String {
    let folder = prefix.rsplit_once('/').and_then(|(folder, _)| ObjectName::new(folder).ok());
    let Some(folder) = folder else { return String::new() };
    let forms: Vec<String> = folder.0.split('/').map(component_in_path).collect();
    forms[..leading(&forms)].iter().map(|form| format!("{form}/")).collect()
}

/// Whether the name at a shortened path may begin with `prefix`, judging by the components before
/// the first short one.
pub(crate) fn may_begin_with(path: &str, prefix: &str) -> bool {
    let known = path.split('/').take_while(|form| !is_short(form)).map_while(unescape);
    let known: String = known.map(|component| component + "/").collect();
    known.starts_with(prefix) || prefix.starts_with(&known)
}

/// Returns how many leading components leave room for the short form of the others.
fn leading(forms: &[String]) -> usize {
    let mut bytes = REST_BYTES;
    let fits = |form: &&String| {
        bytes += form.len() + 1;
        bytes <= MOST_IN_PATH
    };
    forms.iter().take_while(fits).count()
}

/// Returns the form of a component in paths.
pub(crate) fn component_in_path(component: &str) -> String {
    match escaped(component) {
        escaped if escaped.len() > MOST_ESCAPED => digest(SHORT, component),
        escaped => escaped,
    }
}

/// Returns the short form of a text.
fn digest(sign: &str, text: &str) -> String {
    format!("{sign}{}", blake3::hash(text.as_bytes()))
}

/// Whether a form in a path is a short form.
fn is_short(form: &str) -> bool {
    let digits = form.strip_prefix(SHORT_REST).or_else(|| form.strip_prefix(SHORT));
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digits.is_some_and(|digits| digits.len() == 64 && digits.bytes().all(is_digit))
}

fn check_component(name: &str, at: usize, component: &str) -> Result<()> {
    let flaw = match component {
        "" => "is empty".to_owned(),
        "." | ".." => format!("is {component:?}"),
        _ if component.contains('\0') => "has a NUL character".to_owned(),
        _ => match component.len() {
            bytes if bytes > MOST_COMPONENT => {
                format!("has {bytes} bytes; at most {MOST_COMPONENT} are allowed")
            }
            _ => return Ok(()),
        },
    };
    Err(Error::parameters(format!("component {at} of the name {:?} {flaw}", beginning(name))))
}

/// Returns the beginning of a name, for messages.
fn beginning(name: &str) -> String {
    const SHOWN: usize = 60;
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

fn escaped(component: &str) -> String {
    let mut escaped = String::with_capacity(component.len());
    let last = component.len().saturating_sub(1);
    for (at, byte) in component.bytes().enumerate() {
        let is_plain = match byte {
            b'.' => at != 0 && at != last,
            _ => byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-',
        };
        match is_plain {
            true => escaped.push(char::from(byte)),
            // Writing to a string does not fail.
            false => _ = write!(escaped, "%{byte:02X}"),
        }
    }
    escaped
}

fn unescape(escaped: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        let (byte, others) = match first {
            b'%' => {
                let (digits, others) = others.split_at_checked(2)?;
                let digits = std::str::from_utf8(digits).ok()?;
                let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                (u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?, others)
            }
            _ => (first, others),
        };
        bytes.push(byte);
        rest = others;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refusal(name: &str) -> String {
        ObjectName::new(name).unwrap_err().to_string()
    }

    fn in_path(name: &str) -> String {
        ObjectName::new(name).unwrap().in_path()
    }

    #[test]
    fn names_are_escaped_by_component() {
        assert_eq!(in_path("photos/2026/a-b_c.tar.gz"), "photos/2026/a-b_c.tar.gz");
        assert_eq!(in_path("@home/.rc/a b./100%"), "%40home/%2Erc/a%20b%2E/100%25");
        assert_eq!(in_path("é:*?\\"), "%C3%A9%3A%2A%3F%5C");
        assert_eq!(in_path("new\nline"), "new%0Aline");
    }

    #[test]
    fn what_cannot_be_a_name_is_refused_with_its_component() {
        assert_eq!(refusal(""), "component 1 of the name \"\" is empty");
        assert_eq!(refusal("a//b"), "component 2 of the name \"a//b\" is empty");
        assert_eq!(refusal("/a"), "component 1 of the name \"/a\" is empty");
        assert_eq!(refusal("a/../b"), "component 2 of the name \"a/../b\" is \"..\"");
        assert!(refusal("a/b\0").contains("component 2 of the name \"a/b\\0\" has a NUL"));
        let long = format!("a/{}", "x".repeat(256));
        assert!(refusal(&long).ends_with("has 256 bytes; at most 255 are allowed"));
        let deep = vec!["x".repeat(204); 5].join("/") + "/";
        assert!(refusal(&format!("{deep}x")).contains("has 1026 bytes; at most 1024"));
    }

    #[test]
    fn long_components_are_shortened_and_so_is_the_rest_of_a_long_name() {
        let russian = "Протокол заседания комиссии по закупкам 2025.docx";
        let short = digest(SHORT, russian);
        assert_eq!(in_path(&format!("p/{russian}")), format!("p/{short}"));
        assert_eq!(in_path(&"x".repeat(200)), "x".repeat(200));
        assert!(in_path(&"x".repeat(201)).starts_with(SHORT));
        let components = vec!["y".repeat(99); 10];
        let path = in_path(&components.join("/"));
        let (kept, rest) = (components[..8].join("/"), components[8..].join("/"));
        assert_eq!(path, format!("{kept}/{}", digest(SHORT_REST, &rest)));
        assert!(path.len() <= MOST_IN_PATH);
    }

    #[test]
    fn a_shortened_name_is_read_once_its_text_is_known() {
        let folder = "длинная-папка-".repeat(9);
        let [first, second] =
            ["a", "b"].map(|base| ObjectName::new(format!("{folder}/{base}")).unwrap());
        let mut texts = Texts::default();
        assert_eq!((texts.name(&first.in_path()), texts.unknown("a/b")), (None, None));
        assert_eq!(texts.unknown(&second.in_path()), Some(&*component_in_path(&folder)));
        texts.learn(&first);
        assert_eq!(texts.name(&second.in_path()), Some(second));
    }

    #[test]
    fn only_exact_forms_are_names() {
        let (one, rest) = (digest(SHORT, "x"), digest(SHORT_REST, "x"));
        let forms = [one.clone(), rest.clone(), format!("a/{one}/b"), format!("{one}/{rest}")];
        assert!(forms.iter().all(|form| PathName::parse(form).is_some()));
        for other in [
            format!("{rest}/a"),
            one.to_uppercase(),
            format!("{one}0"),
            format!("{SHORT}a"),
            format!("a!{one}"),
            "a%2fb".to_owned(),
            "a//b".to_owned(),
            "a/../b".to_owned(),
            "%61".to_owned(),
            String::new(),
        ] {
            assert_eq!(PathName::parse(&other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn names_survive_their_paths(text in "(\\PC|[@./ %\n!]){1,40}|([é ./]{1,90}/){1,6}x{1,255}") {
            let Ok(name) = ObjectName::new(text) else { return Ok(()) };
            let path = name.in_path();
            let is_safe = |b: u8| b.is_ascii_alphanumeric() || b"._-/%!".contains(&b);
            prop_assert!(path.bytes().all(is_safe) && path.len() <= MOST_IN_PATH);
            prop_assert!(path.split('/').all(|form| form.len() <= MOST_ESCAPED));
            prop_assert!(PathName::parse(&path).is_some());
            let mut texts = Texts::default();
            texts.learn(&name);
            prop_assert_eq!(texts.unknown(&path), None);
            prop_assert_eq!(texts.name(&path), Some(name));
        }

        #[test]
        fn the_path_above_a_prefix_is_that_of_all_names_below(
            text in "([xé]{1,80}/){1,12}x{1,99}", cut in 0..1024_usize,
        ) {
            let Ok(name) = ObjectName::new(text) else { return Ok(()) };
            let cut = (0..=cut.min(name.0.len())).rev().find(|&at| name.0.is_char_boundary(at));
            let prefix = &name.0[..cut.unwrap_or(0)];
            let above = path_above(prefix);
            prop_assert!(name.in_path().starts_with(&above), "{} {above}", name.in_path());
            prop_assert!(may_begin_with(&name.in_path(), prefix), "{} {prefix}", name.in_path());
            let elsewhere = ["y/", &name.in_path()].concat();
            prop_assert!(!may_begin_with(&elsewhere, "x"));
        }

        #[test]
        fn names_that_differ_stand_at_paths_that_differ(one in "[aAé/]{1,5}", other in "[aAé/]{1,5}") {
            let [Ok(one), Ok(other)] = [one, other].map(ObjectName::new) else { return Ok(()) };
            prop_assert_eq!(one == other, one.in_path() == other.in_path());
        }
    }
}
