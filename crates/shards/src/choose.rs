//! The identification of objects: which object a name or an id means, and how messages name each
//! object.

use std::collections::HashMap;
use std::ffi::OsStr;

use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::shown::shown;

use crate::inventory::Inventory;
use crate::object::Object;

/// The fewest digits of an id that a user can name an object by.
const FEWEST_DIGITS: usize = 4;

/// The fewest digits of an id that messages show.
const SHOWN_DIGITS: usize = 8;

/// Number of digits of a whole id.
const ALL_DIGITS: usize = 32;

impl Inventory {
    /// Returns the object that is named `wanted` or, if there is none, the object whose id begins
    /// with these digits (at least four). Without `wanted`, returns the only object. If several
    /// have the same id, returns the only one of which enough shards are there.
    ///
    /// # Errors
    /// If no object matches ([`ErrorKind::NotRecognised`] or, if a file could not be opened,
    /// [`ErrorKind::Io`]), or if several do ([`ErrorKind::Ambiguous`]). The message lists the
    /// objects to choose from, and the files that could not be read.
    pub fn choose(&self, wanted: Option<&OsStr>) -> Result<&Object> {
        let all = || self.objects.iter().collect::<Vec<_>>();
        let found = wanted.map_or_else(all, |wanted| self.meant_by(wanted));
        match (&found[..], wanted) {
            ([object], _) => Ok(object),
            ([], Some(wanted)) if !self.objects.is_empty() => Err(self.absent(wanted)),
            ([], _) => Err(Error::not_recognised("no readable shard was found")),
            (several, _) => only_whole(several)
                .ok_or_else(|| Error::new(ErrorKind::Ambiguous, ambiguity(several, wanted))),
        }
    }

    /// Returns the error for an object that is not among those found.
    fn absent(&self, wanted: &OsStr) -> Error {
        let found = list(&self.objects.iter().collect::<Vec<_>>());
        let unread = self.list(|ignored| ignored.unreadable || ignored.unknown);
        let unread = unread.map(|unread| format!("\n{unread}")).unwrap_or_default();
        let wanted = shown(wanted);
        let message = format!("there is no object {wanted}; the objects found are:{found}{unread}");
        match self.ignored.iter().any(|ignored| ignored.unreadable) {
            true => Error::failed(message),
            false => Error::not_recognised(message),
        }
    }

    /// Returns the objects of this name or, if there are none, the objects whose ids begin with
    /// these digits.
    fn meant_by(&self, wanted: &OsStr) -> Vec<&Object> {
        let named: Vec<&Object> = self.objects.iter().filter(|o| o.name() == wanted).collect();
        match (named.is_empty(), digits(wanted)) {
            (true, Some(digits)) => {
                let objects = self.objects.iter();
                objects.filter(|object| object.id().to_string().starts_with(&digits)).collect()
            }
            _ => named,
        }
    }
}

/// Returns the only one of several objects with the same id of which enough shards are there. A
/// header that was damaged, and sealed again, makes its shard one of another object.
fn only_whole<'o>(several: &[&'o Object]) -> Option<&'o Object> {
    let is_same = several.iter().all(|object| object.id() == several[0].id());
    let is_whole = |object: &&&Object| object.missing().len() <= object.tolerance();
    let mut whole = several.iter().filter(is_whole);
    let first = whole.next().filter(|_| is_same)?;
    whole.next().is_none().then_some(*first)
}

/// Returns the beginning of an id in lower case, if the text can be one.
fn digits(text: &OsStr) -> Option<String> {
    let text = text.to_str()?;
    let is_id = text.len() >= FEWEST_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| text.to_ascii_lowercase())
}

fn ambiguity(several: &[&Object], wanted: Option<&OsStr>) -> String {
    let count = several.len();
    let what = match wanted {
        None => format!("there are {count} objects; choose one by its name or id:"),
        Some(wanted) if several[0].name() == wanted => {
            format!("{count} objects are called {}; choose one by its id:", shown(wanted))
        }
        Some(wanted) => {
            format!("the ids of {count} objects begin with {}; give more digits:", shown(wanted))
        }
    };
    what + &list(several)
}

fn list(objects: &[&Object]) -> String {
    objects.iter().map(|o| format!("\n  {} {}", o.id(), shown(o.name()))).collect()
}

/// Gives each object whose name looks like another's enough digits of its id to tell them apart.
pub(super) fn tell_apart(objects: &mut [Object]) {
    let mut names: HashMap<String, usize> = HashMap::new();
    for object in objects.iter() {
        *names.entry(shown(object.name()).to_string()).or_default() += 1;
    }
    let mut ids: Vec<String> = objects.iter().map(|object| object.id().to_string()).collect();
    ids.sort_unstable();
    for object in objects {
        let is_alone = names[&shown(object.name()).to_string()] == 1;
        object.digits = (!is_alone).then(|| unique_prefix(&ids, &object.id().to_string()));
    }
}

/// Returns the shortest beginning of an id that no other id shares, but at least [`SHOWN_DIGITS`]
/// digits. If an id occurs twice, returns all of it.
fn unique_prefix(sorted: &[String], id: &str) -> String {
    let shared = |other: &String| id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let place = sorted.partition_point(|other| other.as_str() < id);
    let before = place.checked_sub(1).and_then(|before| sorted.get(before));
    let longest = before.into_iter().chain(sorted.get(place + 1)).map(shared).max();
    id[..longest.map_or(0, |shared| shared + 1).clamp(SHOWN_DIGITS, ALL_DIGITS)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_as_long_as_it_takes() {
        let id = |start: &str| format!("{start:0<32}");
        let sorted = [id("0123456789a"), id("0123456789ab"), id("1"), id("2"), id("2")];
        let prefixes = sorted.each_ref().map(|id| unique_prefix(&sorted, id));
        assert_eq!(prefixes[..3], ["0123456789a0", "0123456789ab", "10000000"]);
        assert_eq!(prefixes[3], sorted[3], "an id that is there twice");
        assert_eq!(unique_prefix(&sorted[2..3], &sorted[2]), "10000000");
    }

    #[test]
    fn what_is_no_beginning_of_an_id_is_only_a_name() {
        for (text, expected) in
            [("0aF9", Some("0af9")), ("0af", None), ("0afg", None), ("größe", None)]
        {
            assert_eq!(digits(OsStr::new(text)).as_deref(), expected);
        }
    }
}
