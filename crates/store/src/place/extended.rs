//! Access control lists and extended attributes.
//!
//! Linux keeps a POSIX access control list as the extended attribute `system.posix_acl_access`:
//! 4 bytes of version, then 8 bytes an entry: tag (2), permissions (2), id (4), little-endian
//! (`linux/posix_acl_xattr.h`). A folder may have a second list, which new files in it inherit.
//!
//! If a file has such a list, the group bits of its mode are not the rights of its group, but the
//! *mask*: the most that any entry gives to anybody but the owner. So a file that is made with the
//! same mode, and without the list, would be open to the whole group.
//!
//! A file on an NFSv4 server has another kind of list, `system.nfs4_acl`, in the form of RFC 7530,
//! section 6.2.1: the number of entries, and for each its type, flags and mask (32 bits each,
//! big-endian) and whom it is for, a string with its length before it, padded to four bytes. If
//! such a list has an entry for anybody but `OWNER@`, `GROUP@` and `EVERYONE@`, the group bits of
//! the mode may be a mask there as well. Then the file counts as one whose POSIX list gives its
//! group nothing.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;

use minicbor::bytes::{ByteSlice, ByteVec};
use minicbor::{Decode, Encode};

use crate::place::refused::Refused;
use crate::place::system::xattr::{self, FileExt};
use crate::place::system::{is_bad_place, name_bytes, name_of};

/// The attribute that has a file's access control list.
const ACCESS: &[u8] = b"system.posix_acl_access";
/// The attribute that has the list for new files in a folder.
const INHERITED: &[u8] = b"system.posix_acl_default";
/// The attribute that has the list of a file on an NFSv4 server.
const NFS4: &[u8] = b"system.nfs4_acl";
/// The type of an entry of an NFSv4 list that allows something.
const ALLOWS: u32 = 0;
/// Those whose rights in an NFSv4 list are the bits of the mode.
const IN_MODE: [&[u8]; 3] = [b"OWNER@", b"GROUP@", b"EVERYONE@"];
/// The POSIX list of a file whose group has no rights, apart from what the mode says of its owner
/// and of others: version 2, and entries for the owner, the group, the mask and others.
const GROUP_HAS_NOTHING: [u8; HEAD + 4 * ENTRY] = [
    2, 0, 0, 0, //
    1, 0, 6, 0, 255, 255, 255, 255, //
    4, 0, 0, 0, 255, 255, 255, 255, //
    16, 0, 7, 0, 255, 255, 255, 255, //
    32, 0, 0, 0, 255, 255, 255, 255,
];
/// As above, with a named user who has no rights: then others have none either.
const ALL_BUT_OWNER_HAVE_NOTHING: [u8; HEAD + 5 * ENTRY] = [
    2, 0, 0, 0, //
    1, 0, 6, 0, 255, 255, 255, 255, //
    2, 0, 0, 0, 254, 255, 0, 0, //
    4, 0, 0, 0, 255, 255, 255, 255, //
    16, 0, 7, 0, 255, 255, 255, 255, //
    32, 0, 0, 0, 255, 255, 255, 255,
];
/// The beginning of the names of attributes that users set.
const USER: &[u8] = b"user.";
/// Largest number of bytes of the names and values that a catalogue records of one file. Linux
/// allows 64 KiB for one value.
const MOST_BYTES: usize = 64 << 10;
/// Number of bytes of a list before its entries.
const HEAD: usize = 4;
/// Number of bytes of an entry.
const ENTRY: usize = 8;
/// The tags of entries: for a named user, for the owning group, for a named group, and the mask.
const NAMED_USER: u16 = 2;
const OWNING_GROUP: u16 = 4;
const NAMED_GROUP: u16 = 8;
const MASK: u16 = 16;
/// All permissions of an entry.
const ALL: u32 = 7;

/// The access control lists and the users' attributes of a file or folder, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Extended(#[n(0)] BTreeMap<ByteVec, ByteVec>);

impl Extended {
    /// Reads the attributes of what is at a path. Links have none. What cannot be read counts as
    /// absent; but if a disk or a mount fails to answer, there may be a list, so one that gives
    /// nobody but the owner anything stands for it.
    pub fn of(path: &Path) -> Self {
        Self::collect(xattr::list(path), |name| xattr::get(path, name))
    }

    /// Reads the attributes of an open file or folder.
    pub fn of_open(file: &File) -> Self {
        Self::collect(file.list_xattr(), |name| file.get_xattr(name))
    }

    fn collect(
        names: io::Result<impl Iterator<Item = std::ffi::OsString>>,
        get: impl Fn(&OsStr) -> io::Result<Option<Vec<u8>>>,
    ) -> Self {
        let mut kept = BTreeMap::<ByteVec, ByteVec>::new();
        let closed: Option<&[u8]> = Some(&ALL_BUT_OWNER_HAVE_NOTHING);
        let mut standing = names.as_ref().err().filter(|error| is_failure(error)).and(closed);
        for name in names.into_iter().flatten() {
            let bytes = name_bytes(&name);
            if bytes == NFS4 {
                let list = get(&name).ok().flatten().unwrap_or_default();
                standing = standing_for(&list);
            } else if is_kept(bytes) {
                match get(&name) {
                    Ok(value) => kept.extend(value.map(|it| (bytes.to_vec().into(), it.into()))),
                    Err(error) if bytes == ACCESS && is_failure(&error) => standing = closed,
                    Err(_) => {}
                }
            }
        }
        if let Some(list) = standing {
            kept.entry(ACCESS.to_vec().into()).or_insert(list.to_vec().into());
        }
        Self(kept)
    }

    /// Returns the attributes that a catalogue records, and whether it has no room for others: at
    /// most 64 KiB are recorded of one file, lists first.
    pub fn recorded(self) -> (Self, bool) {
        let (lists, others): (Vec<_>, Vec<_>) =
            self.0.into_iter().partition(|(name, _)| is_list(name));
        let (mut left, mut is_cut) = (MOST_BYTES, false);
        let fits = |(name, value): &(ByteVec, ByteVec)| {
            let rest = left.checked_sub(name.len() + value.len());
            is_cut |= rest.is_none();
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        let kept = lists.into_iter().chain(others).filter(fits).collect();
        (Self(kept), is_cut)
    }

    /// Whether the file has neither lists nor attributes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of lists and attributes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether every name and size is one that [`Extended::recorded`] returns.
    pub fn is_possible(&self) -> bool {
        let bytes = self.0.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        bytes <= MOST_BYTES && self.0.keys().all(|name| is_kept(name))
    }

    /// Gives a file or folder these attributes, and takes away the lists that these lack: it may
    /// have inherited them from its folder. Set the mode after that. Returns what the file system
    /// refused.
    pub fn apply(&self, file: &File) -> Refused {
        let mut refused = Refused::default();
        let has = |list: &&[u8]| self.0.contains_key(<&ByteSlice>::from(*list));
        for list in [ACCESS, INHERITED].iter().filter(|list| !has(list)) {
            // An error is expected: most files have no list, and some file systems do not support
            // lists.
            let _ = file.remove_xattr(name_of(list));
        }
        for (name, value) in &self.0 {
            if file.set_xattr(name_of(name), value).is_err() {
                match is_list(name) {
                    true => refused.lists = true,
                    false => refused.extended = true,
                }
            }
        }
        refused
    }

    /// Returns a mode that gives nobody more than `mode` and the access control list do together.
    /// A file with that mode and without the list is as closed as this one. Named users and groups
    /// may lose their rights.
    pub fn narrowed(&self, mode: u32) -> u32 {
        match self.0.get(<&ByteSlice>::from(ACCESS)).map(|list| Rights::of(list)) {
            Some(rights) => rights.narrow(mode),
            None => mode,
        }
    }
}

/// The permissions that an access control list gives to anybody but the owner, as bits 4, 2, 1.
#[derive(Debug, Clone, Copy)]
struct Rights {
    /// Permissions of the owning group.
    group: u32,
    /// Permissions that every named user has.
    users: u32,
    /// Permissions that every named group has.
    groups: u32,
}

impl Rights {
    fn of(list: &[u8]) -> Self {
        let entries = list.get(HEAD..).unwrap_or_default().chunks_exact(ENTRY);
        let entries = entries.map(|entry| {
            let short = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
            (short(0), u32::from(short(2)))
        });
        let common = |wanted: u16| {
            let allowed = entries.clone().filter(|(tag, _)| *tag == wanted);
            allowed.map(|(_, allowed)| allowed).reduce(|all, allowed| all & allowed)
        };
        let mask = common(MASK).unwrap_or(ALL);
        let masked = |tag| common(tag).map_or(ALL, |allowed| allowed & mask);
        Self { group: masked(OWNING_GROUP), users: masked(NAMED_USER), groups: masked(NAMED_GROUP) }
    }

    /// Removes from a mode the permissions that the list does not give. Without the list, a named
    /// user counts as a member of the owning group or as one of the others. So the owning group
    /// keeps only what the list gives to it and to every named user: a user whom the list gives
    /// nothing may be its member. Others keep only what the list gives to every named user and to
    /// every named group.
    fn narrow(self, mode: u32) -> u32 {
        let group = (mode >> 3) & self.group & self.users;
        let other = mode & self.users & self.groups & ALL;
        mode & !0o077 | group << 3 | other
    }
}

/// Returns the POSIX list that stands for an NFSv4 list, if that has an entry for anybody whose
/// rights are not bits of the mode. If such an entry denies something, or the list cannot be read,
/// somebody may have fewer rights than others have by the mode.
fn standing_for(list: &[u8]) -> Option<&'static [u8]> {
    let read = || {
        let (count, mut rest) = take_number(list)?;
        let mut others = Vec::new();
        for _ in 0..count {
            // Its type, flags and mask.
            let (kind, _) = take_number(rest)?;
            let (length, after) = take_number(rest.get(12..)?)?;
            let whom = after.get(..length as usize)?;
            others.extend((!IN_MODE.contains(&whom)).then_some(kind));
            rest = after.get(whom.len().next_multiple_of(4)..)?;
        }
        rest.is_empty().then_some(others)
    };
    match read() {
        Some(others) if others.is_empty() => None,
        Some(others) if others.iter().all(|&kind| kind == ALLOWS) => Some(&GROUP_HAS_NOTHING),
        _ => Some(&ALL_BUT_OWNER_HAVE_NOTHING),
    }
}

/// Whether a disk or a mount failed to answer, so that there may be something to tell.
fn is_failure(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkDown, StaleNetworkFileHandle, TimedOut};
    let kinds = [HostUnreachable, NetworkDown, StaleNetworkFileHandle, TimedOut];
    is_bad_place(error) || kinds.contains(&error.kind())
}

fn take_number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), rest))
}

fn is_list(name: &[u8]) -> bool {
    name == ACCESS || name == INHERITED
}

/// Whether an attribute of this name belongs to the file's owner. Others grant rights to programs,
/// or belong to the system.
fn is_kept(name: &[u8]) -> bool {
    cfg!(target_os = "macos") || is_list(name) || name.starts_with(USER)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Says that a test does nothing here. `scripts/test` repeats the line at its end.
    fn not_run(why: &str) {
        // The harness hides what macros print.
        let _ = writeln!(io::stderr(), "NOT RUN: {why}");
    }

    fn list(entries: &[(u16, u16)]) -> Extended {
        let mut bytes = vec![2, 0, 0, 0];
        for (tag, allowed) in entries {
            bytes.extend([tag.to_le_bytes(), allowed.to_le_bytes()].concat());
            bytes.extend([0; 4]);
        }
        Extended(BTreeMap::from([(ACCESS.to_vec().into(), bytes.into())]))
    }

    #[test]
    fn a_list_takes_from_the_mode_what_it_does_not_give() {
        // 1: the owner, 32: others.
        let colleague = [(1, 6), (NAMED_USER, 6), (OWNING_GROUP, 0), (MASK, 6), (32, 0)];
        assert_eq!(list(&colleague).narrowed(0o660), 0o600);
        let group = [(1, 6), (NAMED_USER, 7), (OWNING_GROUP, 7), (MASK, 4), (32, 4)];
        assert_eq!(list(&group).narrowed(0o4644), 0o4644);
        let shut_out = [(1, 6), (NAMED_USER, 0), (OWNING_GROUP, 4), (MASK, 4), (32, 4)];
        assert_eq!(list(&shut_out).narrowed(0o644), 0o600);
        let groups = [(1, 6), (OWNING_GROUP, 4), (NAMED_GROUP, 0), (MASK, 4), (32, 4)];
        assert_eq!(list(&groups).narrowed(0o644), 0o640);
        assert_eq!(list(&[]).narrowed(0o644), 0o644);
        assert_eq!(Extended::default().narrowed(0o664), 0o664);
    }

    /// Returns an NFSv4 list that allows reading to everybody who is named.
    fn nfs4(whom: &[&str]) -> Vec<u8> {
        let mut bytes = (whom.len() as u32).to_be_bytes().to_vec();
        for whom in whom {
            bytes.extend([0, 0, 1, whom.len() as u32].map(u32::to_be_bytes).concat());
            bytes.extend(whom.bytes());
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn a_list_of_nfs_for_others_takes_all_from_the_group() {
        let of = |attributes: &[(&[u8], Vec<u8>)]| {
            let names = attributes.iter().map(|(name, _)| name_of(name).to_owned());
            Extended::collect(Ok(names), |name| {
                let found = attributes.iter().find(|(it, _)| *it == name_bytes(name));
                Ok(found.map(|(_, value)| value.clone()))
            })
        };
        let own = nfs4(&["OWNER@", "GROUP@", "EVERYONE@", "OWNER@"]);
        assert_eq!(own[..28], *b"\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x06OWNER@\0\0");
        assert!(of(&[(NFS4, own.clone())]).is_empty() && of(&[(NFS4, nfs4(&[]))]).is_empty());
        for other in ["alice@example.org", "1000", "group@", "", "OWNER@\0"] {
            let found = of(&[(NFS4, nfs4(&["OWNER@", other, "GROUP@"]))]);
            assert_eq!([0o660, 0o644].map(|mode| found.narrowed(mode)), [0o600, 0o604], "{other}");
            assert!(found.is_possible());
        }
        for length in 0..own.len() {
            assert_eq!(of(&[(NFS4, own[..length].to_vec())]).narrowed(0o664), 0o600);
        }
        assert_eq!(of(&[(NFS4, [&own[..], b"x"].concat())]).narrowed(0o664), 0o600);
        assert_eq!(of(&[(NFS4, vec![255; 100])]).narrowed(0o664), 0o600);
        // Bob, who is denied, may not read as one of the others.
        let mut denied = nfs4(&["bob@example.org", "EVERYONE@"]);
        denied[7] = 1;
        assert_eq!(of(&[(NFS4, denied)]).narrowed(0o644), 0o600);
        // A POSIX list says it exactly.
        let exact = list(&[(1, 6), (OWNING_GROUP, 4), (MASK, 6)]);
        let value = exact.0.values().next().unwrap().to_vec();
        for order in [[0, 1], [1, 0]] {
            let both = [(ACCESS, value.clone()), (NFS4, nfs4(&["x"]))];
            assert_eq!(of(&order.map(|at: usize| both[at].clone())), exact);
        }
    }

    /// The kernel takes the list that stands for one of NFS, and the group gets nothing.
    #[cfg(target_os = "linux")]
    /// A file whose lists cannot be told gives nobody but its owner anything.
    #[cfg(unix)]
    #[test]
    fn lists_that_cannot_be_read_count_as_closed() {
        use rustix::io::Errno;
        let error = |code: Errno| Err(io::Error::from(code));
        let read = |names: io::Result<Vec<&str>>, code| {
            let names = names.map(|names| names.into_iter().map(Into::into));
            Extended::collect(names, |_| error(code)).narrowed(0o664)
        };
        let access = || Ok(vec!["system.posix_acl_access"]);
        for code in [Errno::IO, Errno::STALE] {
            assert_eq!(read(Err(code.into()), code), 0o600, "{code}");
            assert_eq!(read(access(), code), 0o600, "{code}");
        }
        for code in [Errno::OPNOTSUPP, Errno::NOENT] {
            assert_eq!(read(Err(code.into()), code), 0o664, "{code}");
            assert_eq!(read(access(), code), 0o664, "{code}");
        }
    }

    #[test]
    fn a_file_whose_group_has_nothing_can_be_made() {
        for (list, left) in
            [(&GROUP_HAS_NOTHING[..], 0o604), (&ALL_BUT_OWNER_HAVE_NOTHING[..], 0o600)]
        {
            let file = tempfile::NamedTempFile::new().unwrap();
            let given = Extended([(ACCESS.to_vec().into(), list.to_vec().into())].into());
            if given.apply(file.as_file()).lists {
                return not_run("no access control lists here");
            }
            crate::place::system::set_mode(file.as_file(), 0o664).unwrap();
            assert_eq!(Extended::of(file.path()).narrowed(0o664), left);
        }
    }

    #[test]
    fn damaged_lists_are_read() {
        for length in 0..14 {
            let list =
                Extended(BTreeMap::from([(ACCESS.to_vec().into(), vec![255; length].into())]));
            assert!(list.is_possible() && list.narrowed(0o777) & !0o777 == 0);
        }
        let foreign = BTreeMap::from([(b"security.capability".to_vec().into(), vec![0].into())]);
        assert_eq!(Extended(foreign).is_possible(), cfg!(target_os = "macos"));
    }

    /// Large attributes of users do not push out a list, wherever the system lists it.
    #[test]
    fn lists_are_recorded_first() {
        let bytes = list(&[(1, 6), (OWNING_GROUP, 0), (MASK, 6), (32, 0)]).0.into_values().next();
        let value = |name: &[u8]| match name {
            ACCESS => bytes.as_deref().unwrap().clone(),
            b"user.small" => vec![1; 100],
            _ => vec![2; MOST_BYTES - 50],
        };
        let names: [&[u8]; 5] = [b"user.a", b"user.b", b"security.x", b"user.small", ACCESS];
        let names = Ok(names.iter().map(|name| name_of(name).to_owned()));
        let found = Extended::collect(names, |name| Ok(Some(value(name_bytes(name)))));
        assert_eq!(found.0.len(), if cfg!(target_os = "macos") { 5 } else { 4 });
        assert_eq!((found.narrowed(0o660), found.is_possible()), (0o600, false));
        let (recorded, is_cut) = found.recorded();
        assert!(is_cut && recorded.is_possible());
        assert_eq!(recorded.narrowed(0o660), 0o600);
        assert!(recorded.0.contains_key(<&ByteSlice>::from(&b"user.small"[..])));
        assert_eq!(recorded.clone().recorded(), (recorded, false));
    }

    /// A folder without lists gets none from the folder that it is in, and so do files in it.
    #[cfg(target_os = "linux")]
    #[test]
    fn inherited_lists_are_taken_away() {
        let outer = tempfile::tempdir().unwrap();
        let entries = [(1, 7), (NAMED_USER, 7), (OWNING_GROUP, 5), (MASK, 7), (32, 0)];
        let mut bytes = list(&entries).0.into_values().next().unwrap().to_vec();
        for (at, id) in [u32::MAX, 1, u32::MAX, u32::MAX, u32::MAX].into_iter().enumerate() {
            bytes[HEAD + ENTRY * at + 4..][..4].copy_from_slice(&id.to_le_bytes());
        }
        if xattr::set(outer.path(), name_of(INHERITED), &bytes).is_err() {
            return not_run("no access control lists here");
        }
        let folder = outer.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        let opened = File::open(&folder).unwrap();
        assert_eq!(Extended::of_open(&opened).0.len(), 2);
        assert!(Extended::default().apply(&opened).is_nothing());
        assert!(Extended::of_open(&opened).is_empty());
        let file = folder.join("file");
        std::fs::write(&file, "").unwrap();
        assert!(Extended::of(&file).is_empty());
        // The lists that a folder has are kept.
        let both = Extended::of(outer.path());
        assert!(both.apply(&opened).is_nothing());
        assert_eq!((both.0.len(), Extended::of_open(&opened)), (1, both));
    }

    /// Attributes of users are kept where the file system has them.
    #[test]
    fn attributes_are_given_and_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let given = BTreeMap::from([(b"user.note".to_vec().into(), b"x".to_vec().into())]);
        let given = Extended(given);
        match given.apply(file.as_file()) {
            Refused { extended: true, .. } => not_run("no extended attributes here"),
            _ => {
                assert_eq!(Extended::of_open(file.as_file()), given);
                assert_eq!(Extended::of(file.path()), given);
            }
        }
    }
}
