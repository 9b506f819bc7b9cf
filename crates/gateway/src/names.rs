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
//! The command escapes nothing. If an object has a name that no key is escaped to, as `a/%b`, the
//! same text is its key, which is looked for under both names.
//!
//! The name of the empty key, which no object can have, stands for the bucket: it is there if the
//! bucket was made and not deleted.

use paritas_volume::{ErrorKind, ObjectName};
use s3s::{S3Result, s3_error};

/// Returns the name of an object.
///
/// # Errors
/// If the key, or a component of it, is too long or has a character that names cannot have.
pub fn object(bucket: &str, key: &str) -> S3Result<ObjectName> {
    if key.len() > 1024 || key.split('/').any(|component| escaped(component).len() > 255) {
        return Err(s3_error!(
            KeyTooLongError,
            "a key has at most 1024 bytes, and each part between slashes at most 255"
        ));
    }
    ObjectName::new(joined(bucket, key)).map_err(|error| match error.kind() {
        ErrorKind::Parameters if key.len() + bucket.len() >= 1024 => {
            s3_error!(KeyTooLongError, "bucket and key have at most 1023 bytes together")
        }
        _ => s3_error!(InvalidArgument, "{}", error.message()),
    })
}

/// Returns the other name that an object of this key may have: the command, which escapes nothing,
/// stores components that begin with `%` as they are.
pub fn unescaped_object(bucket: &str, key: &str) -> Option<ObjectName> {
    let is_kept = |component: &str| component.starts_with('%') && unescaped(component) == component;
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
    object(bucket, "")
}

/// Returns the common beginning of the names of all objects whose keys begin with `prefix`. Names
/// of other objects may begin with it as well.
pub fn above(bucket: &str, prefix: &str) -> String {
    match prefix.rsplit_once('/') {
        Some((folder, _)) => joined(bucket, folder) + "/",
        None => format!("{bucket}/"),
    }
}

/// Returns the key of a name in a bucket.
pub fn key_of(bucket: &str, name: &ObjectName) -> Option<String> {
    let rest = name.as_str().strip_prefix(bucket)?.strip_prefix('/')?;
    let components: Vec<String> = rest.split('/').map(unescaped).collect();
    Some(components.join("/"))
}

/// Returns the bucket of a name, if it may be one.
pub fn bucket_of(name: &ObjectName) -> Option<&str> {
    let (bucket, _) = name.as_str().split_once('/')?;
    s3s::path::check_bucket_name(bucket).then_some(bucket)
}

fn joined(bucket: &str, key: &str) -> String {
    let components: Vec<String> = key.split('/').map(escaped).collect();
    format!("{bucket}/{}", components.join("/"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_comes_back() {
        for key in
            ["a", "a/", "/a", "a//b", ".", "../x", "%", "%2E", "a/%/b", "%25", "ä b/…", "//", "..."]
        {
            let name = object("photos", key).unwrap();
            assert_eq!(key_of("photos", &name).as_deref(), Some(key), "{name}");
            assert!(name.as_str().starts_with(&above("photos", key)), "{name}");
            assert_eq!(bucket_of(&name), Some("photos"));
        }
        assert_eq!(key_of("photo", &object("photos", "a").unwrap()), None);
        assert_eq!(key_of("photos", &bucket("photos").unwrap()).as_deref(), Some(""));
    }

    #[test]
    fn what_the_command_stores_has_a_key() {
        for (name, key) in [("a/%b", "a/%b"), ("%41/%/x", "%41//x"), ("%2F", "%2F")] {
            let name = ObjectName::new(format!("photos/{name}")).unwrap();
            assert_eq!(key_of("photos", &name).as_deref(), Some(key));
            assert_eq!(unescaped_object("photos", key), Some(name));
        }
        for key in ["a", "a%b", "%", "%2E", "%25", "%25a", "//"] {
            assert_eq!(unescaped_object("photos", key), None, "{key}");
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
