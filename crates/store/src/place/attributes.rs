//! The attributes of a file besides its name and content: permissions, time of change, owner. An
//! object keeps the first two of its source, and a new file is never open to more people than the
//! file that it is made from.

use std::fs::{self, File, FileTimes, Metadata};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use minicbor::{Decode, Encode};

use crate::place::extended::Extended;
use crate::place::refused::{Refused, refusal};
use crate::place::system;

/// The bits of a mode that are stored: permissions, set-user-ID, set-group-ID and sticky bit.
pub const STORED_MODE: u32 = 0o7777;
/// The bits that say who may read, write and execute.
pub const PERMISSIONS: u32 = 0o777;
/// The permission bits that a shard may have: nobody executes shards.
const SHARD_MODE: u32 = 0o666;
/// The permissions that the writer of a file needs until it is complete.
const WRITER: u32 = 0o600;
/// The bits for everybody but the owner.
pub(super) const OTHERS: u32 = 0o077;
const GROUP: u32 = 0o070;
/// The distance between the bits of others and those of the group.
const GROUP_SHIFT: u32 = 3;
const NANOSECONDS: u32 = 1_000_000_000;
/// The coarsest step in which a file system counts times: that of FAT.
const COARSEST: Duration = Duration::from_secs(2);

/// What is known about a source that is a file; for a pipe, all fields are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The permission bits, with set-user-ID, set-group-ID and sticky bit.
    pub mode: Option<u32>,
    /// When the content last changed.
    pub modified: Option<Timestamp>,
    /// The user and the group that it belongs to. They are not stored; new shards get this owner if
    /// the process may give files away.
    pub owner: Option<Owner>,
}

/// The user and the group that a file belongs to, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(array)]
pub struct Owner {
    /// The user.
    #[n(0)]
    pub user: u32,
    /// The group.
    #[n(1)]
    pub group: u32,
}

/// A moment, counted from the beginning of 1970 in UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(array)]
pub struct Timestamp {
    /// Whole seconds, rounded down: below 0 before 1970.
    #[n(0)]
    pub seconds: i64,
    /// Nanoseconds after that, below 1,000,000,000.
    #[n(1)]
    pub nanoseconds: u32,
}

impl Attributes {
    /// Returns the attributes of a file.
    pub fn of(metadata: &Metadata) -> Self {
        let modified = metadata.modified().ok().and_then(Timestamp::of);
        let mode = system::mode(metadata).map(|mode| mode & STORED_MODE);
        Self { mode, modified, owner: Owner::of(metadata) }
    }

    /// Returns the attributes of the file at a path, as [`Attributes::of_open`] does.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn of_path(path: &Path) -> io::Result<Self> {
        let known = Self::of(&fs::metadata(path)?);
        Ok(known.narrowed(|| Extended::of(path)))
    }

    /// Returns the attributes of an open file. If it has an access control list, the mode is one
    /// that gives nobody more than the list does.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn of_open(file: &File) -> io::Result<Self> {
        let known = Self::of(&file.metadata()?);
        Ok(known.narrowed(|| Extended::of_open(file)))
    }

    fn narrowed(self, extended: impl Fn() -> Extended) -> Self {
        let narrowed = |mode| match mode & OTHERS {
            // If only the owner has rights, a list cannot narrow them.
            0 => mode,
            _ => extended().narrowed(mode),
        };
        Self { mode: self.mode.map(narrowed), ..self }
    }

    /// Returns the attributes of something that several files hold together: the permissions that
    /// all of them give, and the owner of the first.
    pub fn common(files: impl IntoIterator<Item = Self>) -> Self {
        let joined = files.into_iter().reduce(|all, file| {
            let mode = all.mode.zip(file.mode).map(|(all, mode)| all & mode);
            Self { mode, ..all }
        });
        Self { modified: None, ..joined.unwrap_or_default() }
    }
}

impl Owner {
    /// Returns the owner of a file, on systems that number users.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        system::owner(metadata).map(|(user, group)| Self { user, group })
    }
}

impl Timestamp {
    /// Returns a moment as the system counts.
    pub fn of(time: SystemTime) -> Option<Self> {
        let (seconds, nanoseconds) = match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => (i64::try_from(after.as_secs()).ok()?, after.subsec_nanos()),
            Err(error) => {
                let before = error.duration();
                let seconds = -i64::try_from(before.as_secs()).ok()?;
                match before.subsec_nanos() {
                    0 => (seconds, 0),
                    nanoseconds => (seconds - 1, NANOSECONDS - nanoseconds),
                }
            }
        };
        Some(Self { seconds, nanoseconds })
    }

    /// Returns when the system last changed anything about a file: its bytes, its name, its mode or
    /// its times (ctime). Programs cannot set this time.
    pub fn changed(file: &Metadata) -> Option<Self> {
        let (seconds, nanoseconds) = system::changed(file)?;
        Some(Self { seconds, nanoseconds })
    }

    /// Whether the nanoseconds are less than a second.
    pub fn is_normal(self) -> bool {
        self.nanoseconds < NANOSECONDS
    }

    /// Returns the moment as the system counts, if it can.
    pub fn system_time(self) -> Option<SystemTime> {
        let seconds = Duration::from_secs(self.seconds.unsigned_abs());
        let second = match self.seconds < 0 {
            true => SystemTime::UNIX_EPOCH.checked_sub(seconds),
            false => SystemTime::UNIX_EPOCH.checked_add(seconds),
        };
        second?.checked_add(Duration::from_nanos(self.nanoseconds.into()))
    }
}

/// Mode, owner and time that a new file gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    mode: u32,
    /// Whether the umask takes permissions away from `mode`, as it does from any new file's.
    masked: bool,
    owner: Option<Owner>,
    modified: Option<Timestamp>,
    /// Whether the file may inherit an access control list from its folder. A file that is made
    /// from a known file may not: the list could give somebody more rights than that file does.
    inherits: bool,
}

impl Access {
    /// The access that the process gives to any new file.
    pub const USUAL: Self =
        Self { mode: SHARD_MODE, masked: true, owner: None, modified: None, inherits: true };

    /// Returns the access to the shards of a source.
    pub fn of_shards(source: &Attributes) -> Self {
        let mode = source.mode.map_or(SHARD_MODE, |mode| mode & SHARD_MODE);
        Self { mode, owner: source.owner, inherits: source.mode.is_none(), ..Self::USUAL }
    }

    /// Returns the access to a decoded file: exactly this mode, if it is known.
    pub fn of_decoded(mode: Option<u32>, modified: Option<Timestamp>) -> Self {
        let exact = |mode| Self { mode, masked: false, inherits: false, ..Self::USUAL };
        Self { modified, ..mode.map_or(Self::USUAL, exact) }
    }

    /// Returns the access to a new file that replaces these files or joins them: the permissions
    /// that all of them give, and the owner of the first.
    pub fn like(files: impl IntoIterator<Item = Attributes>) -> Self {
        let Attributes { mode, owner, .. } = Attributes::common(files);
        mode.map_or(Self::USUAL, |mode| {
            let mode = mode & PERMISSIONS;
            Self { mode, masked: false, owner, modified: None, inherits: false }
        })
    }

    /// Returns the mode to create the file with; [`Self::settle`] gives it the final one.
    pub fn at_creation(&self) -> u32 {
        if self.masked { self.mode | WRITER } else { WRITER }
    }

    /// Whether the file may be open to somebody, before it has its owner and its mode, who may not
    /// read it afterwards.
    pub fn is_for_few(&self) -> bool {
        self.masked && (self.owner.is_some() || !self.inherits)
    }

    /// Returns the access with the permissions that the umask leaves. `made` is a file that was
    /// created with [`Self::at_creation`]. What is created with the result is the writer's alone,
    /// until it is settled.
    pub fn as_masked_in(&self, made: &Metadata) -> Self {
        let left = system::mode(made).unwrap_or(self.mode);
        Self { mode: self.mode & left, masked: false, ..*self }
    }

    /// Gives a file that was just created, and is empty, to its owner.
    ///
    /// # Errors
    /// If the permissions cannot be restricted.
    pub fn begin(&self, file: &File) -> io::Result<()> {
        if !self.inherits {
            Extended::default().apply(file);
        }
        let Some(owner) = self.owner else { return Ok(()) };
        give(file, owner)?;
        let metadata = file.metadata()?;
        let allowed = self.allowed(&metadata) | WRITER;
        set_mode(file, &metadata, |mode| mode & allowed).map(|_| ())
    }

    /// Gives a complete file its mode and time. Returns what the file system refused.
    ///
    /// # Errors
    /// If the system fails for any other reason than a file system that lacks such modes or times.
    pub fn settle(&self, file: &File) -> io::Result<Refused> {
        let metadata = file.metadata()?;
        let allowed = self.allowed(&metadata);
        let change = |mode| if self.masked { mode & allowed } else { allowed };
        let modes = set_mode(file, &metadata, change)? && self.is_made_from_a_file();
        let times = self.modified.map_or(Ok(false), |time| set_modified(file, time))?;
        let owners = is_refused(self.owner, &metadata);
        Ok(Refused { modes, times, owners, ..Refused::default() })
    }

    /// Whether the mode comes from a known file, rather than being the usual mode of a new file.
    fn is_made_from_a_file(&self) -> bool {
        !self.inherits
    }

    fn allowed(&self, file: &Metadata) -> u32 {
        allowed(self.mode, self.owner, file)
    }
}

/// The attributes that a restored file or folder is to have.
#[derive(Debug, Clone, Copy)]
pub struct WantedAttributes<'a> {
    /// The mode.
    pub mode: u32,
    /// The time of change.
    pub modified: Timestamp,
    /// The owner, if one is known.
    pub owner: Option<Owner>,
    /// Access control lists and extended attributes.
    pub extended: &'a Extended,
}

impl WantedAttributes<'_> {
    /// Gives these attributes to a file or folder. Where it cannot be given to its owner, or cannot
    /// have its access control list, its mode gives nobody more than the list and the mode do
    /// together. Returns what the file system refused.
    ///
    /// # Errors
    /// If the system fails for another reason.
    pub fn give(&self, file: &File) -> io::Result<Refused> {
        if let Some(owner) = self.owner {
            give(file, owner)?;
        }
        let mut refused = self.extended.apply(file);
        let mode = if refused.lists { self.extended.narrowed(self.mode) } else { self.mode };
        let now = file.metadata()?;
        let mode = allowed(mode, self.owner, &now);
        refused.owners |= is_refused(self.owner, &now);
        refused.modes |= set_mode(file, &now, |_| mode)?;
        refused.times |= set_modified(file, self.modified)?;
        Ok(refused)
    }
}

/// Returns the part of `mode` that is safe for a file that should belong to `owner`. If the file
/// could not be given to its group, the members of that group now count as others, and the members
/// of its present group counted as others before. So the group bits and the others' bits each keep
/// only what both have in `mode`.
fn allowed(mode: u32, owner: Option<Owner>, file: &Metadata) -> u32 {
    for_group_of(Owner::of(file), mode, owner)
}

/// Returns the mode that a file of the owner `file` may have because of a file or folder of this
/// mode and owner. If their groups differ, nobody knows who is in both, so the group and others get
/// only what the mode gives to both.
pub fn for_group_of(file: Option<Owner>, mode: u32, owner: Option<Owner>) -> u32 {
    match file.zip(owner) {
        Some((file, owner)) if file.group != owner.group => {
            let both = mode & (mode << GROUP_SHIFT) & GROUP;
            mode & !OTHERS | both | both >> GROUP_SHIFT
        }
        _ => mode,
    }
}

/// Gives a new file or folder to `owner`, that of the folder in which it is made: otherwise those
/// who own the folder could not use what root has made there. Does nothing unless this process may
/// give files to anybody.
pub fn hand_over(new: &File, owner: Owner) {
    // Only what root has made, and not what somebody has put in its place.
    let is_own =
        new.metadata().is_ok_and(|new| Owner::of(&new).map(|it| it.user) == system::user());
    if system::may_give_files_away() && is_own && system::user() != Some(owner.user) {
        // On some network file systems root may not do it either.
        let _ = system::set_owner(new, Some(owner.user), owner.group);
    }
}

/// Gives a file to an owner. If the process may not, gives it to the group alone; if it may not do
/// that either, leaves it.
fn give(file: &File, owner: Owner) -> io::Result<()> {
    let metadata = file.metadata()?;
    let is_foreign = Owner::of(&metadata).is_some_and(|now| now != owner);
    if is_foreign && system::set_owner(file, Some(owner.user), owner.group).is_err() {
        let _ = system::set_owner(file, None, owner.group);
    }
    Ok(())
}

/// Whether a file was not given to its owner although this process may give files away.
fn is_refused(wanted: Option<Owner>, file: &Metadata) -> bool {
    wanted.is_some() && wanted != Owner::of(file) && system::may_give_files_away()
}

/// Changes the mode of a file, where files have modes. Returns whether the file system refused it,
/// by an error or by keeping another mode.
fn set_mode(file: &File, now: &Metadata, change: impl Fn(u32) -> u32) -> io::Result<bool> {
    let Some(now) = system::mode(now) else { return Ok(false) };
    let wanted = change(now) & STORED_MODE;
    if wanted == now {
        return Ok(false);
    }
    let is_refused = refusal(system::set_mode(file, wanted))?;
    let kept = system::mode(&file.metadata()?);
    Ok(is_refused || kept.is_some_and(|kept| (kept ^ wanted) & PERMISSIONS != 0))
}

/// Sets the time at which a file or folder last changed, if the system can represent it. Returns
/// whether the file system refused it, by an error or by keeping another time.
///
/// # Errors
/// If the system fails for another reason.
pub fn set_modified(file: &File, modified: Timestamp) -> io::Result<bool> {
    let Some(time) = modified.system_time() else { return Ok(false) };
    // FUSE file systems made with version 2 of its library (exFAT, bindfs) ignore a request to set
    // one of the two times, and report success.
    let accessed = file.metadata()?.accessed().unwrap_or(time);
    let times = FileTimes::new().set_accessed(accessed).set_modified(time);
    Ok(refusal(file.set_times(times))? || !has_time(file, time)?)
}

/// Whether a file has this time, within the precision of file systems.
fn has_time(file: &File, time: SystemTime) -> io::Result<bool> {
    let kept = file.metadata()?.modified()?;
    Ok(kept.duration_since(time).unwrap_or_else(|earlier| earlier.duration()) <= COARSEST)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};

    fn modes(access: Access) -> [u32; 3] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut options = File::options();
        options.write(true).create_new(true).mode(access.at_creation());
        let file = options.open(&path).unwrap();
        let mode = || fs::metadata(&path).unwrap().mode() & STORED_MODE;
        let created = mode();
        access.begin(&file).unwrap();
        let begun = mode();
        access.settle(&file).unwrap();
        [created, begun, mode()]
    }

    #[test]
    fn modes_are_narrow_from_the_beginning() {
        let source = |mode| Attributes { mode: Some(mode), ..Attributes::default() };
        assert_eq!(modes(Access::of_shards(&source(0o600))), [0o600; 3]);
        assert_eq!(modes(Access::of_shards(&source(0o4700))), [0o600; 3]);
        assert_eq!(modes(Access::of_shards(&source(0o400))), [0o600, 0o600, 0o400]);
        assert_eq!(modes(Access::of_decoded(Some(0o751), None)), [0o600, 0o600, 0o751]);
        assert_eq!(modes(Access::of_decoded(Some(0o004), None)), [0o600, 0o600, 0o004]);
    }

    #[test]
    fn another_group_gets_what_others_get() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("file")).unwrap().metadata().unwrap();
        for (mode, foreign) in [(0o640, 0o600), (0o664, 0o644), (0o647, 0o644), (0o607, 0o600)] {
            for (group, mode_then) in [(file.gid(), mode), (file.gid() + 1, foreign)] {
                let owner = Some(Owner { user: file.uid(), group });
                let access = Access { owner, ..Access::of_decoded(Some(mode), None) };
                assert_eq!(access.allowed(&file), mode_then, "{mode:o} of group {group}");
            }
        }
    }

    #[test]
    fn siblings_are_joined_to_what_all_give() {
        let folder = tempfile::tempdir().unwrap();
        let files = [0o664, 0o646, 0o4755].map(|mode| {
            let path = folder.path().join(format!("{mode:o}"));
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            Attributes::of_path(&path).unwrap()
        });
        let access = Access::like(files);
        assert_eq!((access.mode, access.masked), (0o644, false));
        assert_eq!(Access::like(files[2..].to_vec()).mode, 0o755);
        assert_eq!(Access::like([]), Access::USUAL);
    }

    #[test]
    fn times_before_1970_are_set() {
        let folder = tempfile::tempdir().unwrap();
        for (seconds, nanoseconds) in [(-3, 250_000_000), (0, 1), (1 << 31, 999_999_999)] {
            let file = File::create(folder.path().join("file")).unwrap();
            let time = Timestamp { seconds, nanoseconds };
            Access::of_decoded(None, Some(time)).settle(&file).unwrap();
            assert_eq!(Attributes::of(&file.metadata().unwrap()).modified, Some(time));
        }
        let beyond = Timestamp { seconds: i64::MIN, nanoseconds: 0 };
        let file = File::create(folder.path().join("file")).unwrap();
        Access::of_decoded(None, Some(beyond)).settle(&file).unwrap();
    }
}
