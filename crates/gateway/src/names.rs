//! Buckets and keys as names of a volume.
//!
//! A bucket is the first component of names. A key is the rest, and is escaped where it is not a
//! valid name:
//!
//! | component of a key | in a name |
//! | --- | --- |
//! | nothing, as after a `/` at the end | `%` |
//! | `.`, `..` | `%2E`, `%2E%2E` |
//! | one that begins with `%` | the same with `%25` for this `%` |
//! | any other | as it is |
//!
//! The command escapes nothing. If an object has a name that no key is escaped to, such as `a/%b`,
//! the same text is its key. Such a key is looked for under both names.
//!
//! The name of the empty key, which no object can have, stands for the bucket: it is there if the
//! bucket was made and not deleted.

use paritas_volume::{Error, ErrorKind, ObjectName};
use s3s::{S3Error, S3Result, s3_error};

/// Returns the name of an object.
///
/// # Errors
/// If the key is empty, or if the key, or a component of it, is too long or has a character that
/// names cannot have.
pub fn object(bucket: &str, key: &str) -> S3Result<ObjectName> {
    if key.is_empty() {
        return Err(s3_error!(InvalidArgument, "a key has at least one byte"));
    }
    if key.len() > 1024 || key.split('/').any(|component| escaped(component).len() > 255) {
        return Err(s3_error!(
            KeyTooLongError,
            "bucket and key have at most 1023 bytes together, and each part between slashes at most 255"
        ));
    }
    ObjectName::new(joined(bucket, key)).map_err(|error| match error.kind() {
        ErrorKind::Parameters if key.len() + bucket.len() >= 1024 => {
            s3_error!(KeyTooLongError, "bucket and key have at most 1023 bytes together")
        }
        _ => refused(&error),
    })
}

fn refused(error: &Error) -> S3Error {
    s3_error!(InvalidArgument, "{}", error.message())
}

/// Returns the other name that an object of this key may have: the command, which escapes nothing,
/// stores components that begin with `%` as they are.
pub fn unescaped_object(bucket: &str, key: &str) -> Option<ObjectName> {
    let kept_or_escaped = |component| match is_kept(component) {
        true => component.to_owned(),
        false => escaped(component),
    };
    key.split('/').any(is_kept).then_some(())?;
    let components: Vec<String> = key.split('/').map(kept_or_escaped).collect();
    ObjectName::new(format!("{bucket}/{}", components.join("/"))).ok()
}

/// Returns the name that stands for a bucket.
///
/// # Errors
/// If a name cannot begin with it.
pub fn bucket(bucket: &str) -> S3Result<ObjectName> {
    ObjectName::new(joined(bucket, "")).map_err(|error| refused(&error))
}

/// Returns a folder in which all objects are whose keys begin with `prefix`. Other objects may be
/// in it as well. It ends before the first component that names may have in two spellings: escaped,
/// or as the command stores it.
pub fn above(bucket: &str, prefix: &str) -> String {
    let folder = prefix.rsplit_once('/').map(|(folder, _)| folder);
    let components = folder.into_iter().flat_map(|folder| folder.split('/'));
    let certain = components.take_while(|component| !is_kept(component)).map(escaped);
    let all = std::iter::once(bucket.to_owned()).chain(certain);
    all.map(|component| component + "/").collect()
}

/// Returns the key of a name in a bucket.
pub fn key_of(bucket: &str, name: &ObjectName) -> Option<String> {
    let rest = name.as_str().strip_prefix(bucket)?.strip_prefix('/')?;
    let components: Vec<String> = rest.split('/').map(unescaped).collect();
    Some(components.join("/"))
}

/// Whether the first folder of names may be a bucket.
pub fn may_be_bucket(folder: &str) -> bool {
    s3s::path::check_bucket_name(folder)
}

fn joined(bucket: &str, key: &str) -> String {
    let components: Vec<String> = key.split('/').map(escaped).collect();
    format!("{bucket}/{}", components.join("/"))
}

/// Whether a component of a key may stand in a name as it is, although it would be escaped.
fn is_kept(component: &str) -> bool {
    component.starts_with('%') && unescaped(component) == component
}

fn escaped(component: &str) -> String {
    match component {
        "" => "%".to_owned(),
        "." | ".." => component.replace('.', "%2E"),
        _ => match component.strip_prefix('%') {
            Some(rest) => format!("%25{rest}"),
            None => component.to_owned(),
        },
    }
}

fn unescaped(component: &str) -> String {
    match component {
        "%" => String::new(),
        "%2E" | "%2E%2E" => component.replace("%2E", "."),
        _ => match component.strip_prefix("%25") {
            Some(rest) => format!("%{rest}"),
            None => component.to_owned(),
        },
    }
}

/// The greatest number of a part, as in S3.
const MOST_PARTS: u32 = 10_000;

/// Returns the number of a part.
///
/// # Errors
/// If no part may have it.
pub fn part_number(number: i32) -> S3Result<u32> {
    let number = u32::try_from(number).ok().filter(|number| (1..=MOST_PARTS).contains(number));
    number.ok_or_else(|| s3_error!(InvalidArgument, "part numbers are 1 to {MOST_PARTS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(key: &str) -> impl Iterator<Item = &str> {
        (0..=key.len()).filter_map(|end| key.get(..end))
    }

    #[test]
    fn every_key_comes_back() {
        for key in
            ["a", "a/", "/a", "a//b", ".", "../x", "%", "%2E", "a/%/b", "%25", "ä b/…", "//", "..."]
        {
            let name = object("photos", key).unwrap();
            assert_eq!(key_of("photos", &name).as_deref(), Some(key), "{name}");
            for prefix in prefixes(key) {
                assert!(name.as_str().starts_with(&above("photos", prefix)), "{name} {prefix}");
            }
        }
        assert_eq!(key_of("photo", &object("photos", "a").unwrap()), None);
        assert_eq!(key_of("photos", &bucket("photos").unwrap()).as_deref(), Some(""));
    }

    #[test]
    fn what_the_command_stores_has_a_key() {
        for (name, key) in [
            ("a/%b", "a/%b"),
            ("%41/%/x", "%41//x"),
            ("%2F", "%2F"),
            ("%a/b", "%a/b"),
            ("a/%b/c/%d/e", "a/%b/c/%d/e"),
        ] {
            let name = ObjectName::new(format!("photos/{name}")).unwrap();
            assert_eq!(key_of("photos", &name).as_deref(), Some(key));
            assert_eq!(unescaped_object("photos", key).as_ref(), Some(&name));
            let escaped = object("photos", key).unwrap();
            for prefix in prefixes(key) {
                let folder = above("photos", prefix);
                assert!(name.as_str().starts_with(&folder), "{name} {prefix}");
                assert!(escaped.as_str().starts_with(&folder), "{escaped} {prefix}");
            }
        }
        for key in ["a", "a%b", "%", "%2E", "%25", "%25a", "//"] {
            assert_eq!(unescaped_object("photos", key), None, "{key}");
        }
    }

    #[test]
    fn listed_folders_are_as_deep_as_they_can_be() {
        for (prefix, folder) in [
            ("", "photos/"),
            ("a", "photos/"),
            ("a/b/c", "photos/a/b/"),
            ("/a", "photos/%/"),
            ("%25/a/", "photos/%2525/a/"),
            ("%a", "photos/"),
            ("%a/", "photos/"),
            ("a/%b", "photos/a/"),
            ("a/%b/c/", "photos/a/"),
        ] {
            assert_eq!(above("photos", prefix), folder, "{prefix}");
        }
    }

    #[test]
    fn long_keys_are_refused_by_name() {
        let long = "a".repeat(256);
        for key in [long.clone(), format!("b/{long}"), ["a/"; 513].concat()] {
            let error = object("photos", &key).unwrap_err();
            assert_eq!(error.code().as_str(), "KeyTooLongError");
        }
        assert!(object("photos", &["a/"; 500].concat()).is_ok());
        assert_eq!(object("photos", "a\0b").unwrap_err().code().as_str(), "InvalidArgument");
    }
}
