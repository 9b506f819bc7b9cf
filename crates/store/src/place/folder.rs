//! Changing things in a tree without ever leaving it: each folder on the way is opened by itself,
//! and links are refused. So a folder that somebody replaces by a link meanwhile does not redirect
//! a write.

use std::io;

#[cfg(not(unix))]
pub use other::Folder;
#[cfg(unix)]
pub use unix::Folder;

impl Folder {
    /// Opens the folder that a path relative to this one is in, and returns it with the last name.
    /// Folders on the way that do not exist are made if `make` is set.
    pub fn parent(&self, path: &[u8], make: bool) -> io::Result<(Self, Vec<u8>)> {
        let mut names = path.split(|&byte| byte == b'/');
        let last = names.next_back().unwrap_or_default().to_vec();
        let mut folder = self.same()?;
        for name in names {
            folder = folder.inner(name, make)?;
        }
        Ok((folder, last))
    }
}

#[cfg(unix)]
mod unix {
    use std::fs::{File, Permissions};
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::fs::{PermissionsExt, fchown};
    use std::path::Path;

    use crate::place::attributes::{Owner, Timestamp, WantedAttributes, set_modified};
    use crate::place::refused::{Refused, is_refusal, refusal};
    use rustix::fs::{
        AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, fstat,
        linkat, mkdirat, openat, renameat, renameat_with, statat, symlinkat, unlinkat, utimensat,
    };
    use rustix::io::Errno;

    const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    /// Returns both times of something, to set them again.
    fn times_of(found: &Stat) -> Timestamps {
        let time = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
        Timestamps {
            last_access: time(found.st_atime, found.st_atime_nsec as _),
            last_modification: time(found.st_mtime, found.st_mtime_nsec as _),
        }
    }

    /// An open folder.
    #[derive(Debug)]
    pub struct Folder(OwnedFd);

    impl Folder {
        /// Opens a folder by its path, which may lead through links.
        pub fn open(path: &Path) -> io::Result<Self> {
            Ok(Self(openat(CWD, path, FOLDER, Mode::empty())?))
        }

        /// Returns this folder, opened once more.
        pub fn same(&self) -> io::Result<Self> {
            self.0.try_clone().map(Self)
        }

        /// Opens a folder in this one; makes it if it does not exist and `make` is set.
        pub fn inner(&self, name: &[u8], make: bool) -> io::Result<Self> {
            let open = || openat(&self.0, name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
            match open() {
                Err(Errno::NOENT) if make => match mkdirat(&self.0, name, Mode::RWXU) {
                    Ok(()) => {
                        let made = Self(open()?);
                        self.give(&made.0);
                        Ok(made)
                    }
                    Err(Errno::EXIST) => Ok(Self(open()?)),
                    Err(error) => Err(error.into()),
                },
                opened => Ok(Self(opened?)),
            }
        }

        /// Makes a folder in this one, unless there is one. A new folder has its mode at once, as
        /// far as the file system has modes, but may be changed by its owner in any case.
        pub fn make(&self, name: &[u8], mode: u32) -> io::Result<()> {
            match mkdirat(&self.0, name, Mode::RWXU) {
                Err(Errno::EXIST) => self.inner(name, false).map(|_| ()),
                Err(error) => Err(error.into()),
                Ok(()) => {
                    let folder = File::from(self.inner(name, false)?.0);
                    self.give(&folder);
                    let mode = Permissions::from_mode(mode | 0o700);
                    refusal(folder.set_permissions(mode)).map(|_| ())
                }
            }
        }

        /// Gives a new folder in this one to the owner of this one. Few processes may do so. If
        /// this process may not, the new folder keeps its owner.
        fn give(&self, new: impl AsFd) {
            let _ = fstat(&self.0).map(|above| fchown(new, Some(above.st_uid), Some(above.st_gid)));
        }

        /// Makes a file that must not exist, for its owner alone.
        pub fn create(&self, name: &[u8]) -> io::Result<File> {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            Ok(File::from(openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?))
        }

        /// Opens a file for reading and writing, unless it is a link.
        pub fn file(&self, name: &[u8]) -> io::Result<File> {
            let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            Ok(File::from(openat(&self.0, name, flags, Mode::empty())?))
        }

        /// Opens a file for reading, unless it is a link.
        pub fn file_to_read(&self, name: &[u8]) -> io::Result<File> {
            // `NONBLOCK`, because opening a named pipe would wait for a writer.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            Ok(File::from(openat(&self.0, name, flags, Mode::empty())?))
        }

        /// Returns the mode and the owner of the file called `name`, if there is one.
        pub fn about(&self, name: &[u8]) -> Option<(u32, Option<Owner>)> {
            let found = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let owner = Owner { user: found.st_uid, group: found.st_gid };
            let is_file = FileType::from_raw_mode(found.st_mode).is_file();
            is_file.then_some((found.st_mode & 0o7777, Some(owner)))
        }

        /// Returns the owner of the folder.
        pub fn owner(&self) -> Option<Owner> {
            let found = fstat(&self.0).ok()?;
            Some(Owner { user: found.st_uid, group: found.st_gid })
        }

        /// Renames a file in this folder, and replaces what has the new name.
        pub fn replace(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
            Ok(renameat(&self.0, from, &self.0, to)?)
        }

        /// Renames something to a name that the file system treats as the same, such as one that
        /// differs only in case. `temporary` must be free.
        ///
        /// # Errors
        /// If something has exactly that name already ([`io::ErrorKind::AlreadyExists`]).
        pub fn rename_alike(&self, from: &[u8], to: &[u8], temporary: &[u8]) -> io::Result<()> {
            let has = |name: &[u8]| self.names().map(|names| names.iter().any(|one| one == name));
            if has(to)? {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            self.replace(from, to)?;
            if has(to)? {
                return Ok(());
            }
            // The system has found one file under both names, and done nothing. It may remember for
            // a moment that there is something under the second name, so no free name is asked for.
            self.replace(from, temporary)?;
            self.replace(temporary, to).inspect_err(|_| _ = self.replace(temporary, from))
        }

        /// Moves something from another folder to a name that must be free.
        pub fn take(&self, folder: &Self, from: &[u8], to: &[u8]) -> io::Result<()> {
            match renameat_with(&folder.0, from, &self.0, to, RenameFlags::NOREPLACE) {
                Err(error) if is_refusal(&error.into()) => self.take_in_steps(folder, from, to),
                taken => Ok(taken?),
            }
        }

        /// Does what [`Folder::take`] does on a file system that cannot do it at once.
        fn take_in_steps(&self, folder: &Self, from: &[u8], to: &[u8]) -> io::Result<()> {
            match linkat(&folder.0, from, &self.0, to, AtFlags::empty()) {
                Ok(()) => Ok(unlinkat(&folder.0, from, AtFlags::empty())?),
                // The file system has no hard links, or the file cannot have one more: the name is
                // looked up first.
                Err(error) if is_refusal(&error.into()) || error == Errno::MLINK => {
                    match statat(&self.0, to, AtFlags::SYMLINK_NOFOLLOW) {
                        Err(Errno::NOENT) => Ok(renameat(&folder.0, from, &self.0, to)?),
                        found => Err(found.err().unwrap_or(Errno::EXIST).into()),
                    }
                }
                Err(error) => Err(error.into()),
            }
        }

        /// Returns the names of what is in the folder.
        pub fn names(&self) -> io::Result<Vec<Vec<u8>>> {
            let entries = Dir::read_from(&self.0)?;
            entries.map(|entry| Ok(entry?.file_name().to_bytes().to_vec())).collect()
        }

        /// Removes a file or a link.
        pub fn remove(&self, name: &[u8]) -> io::Result<()> {
            Ok(unlinkat(&self.0, name, AtFlags::empty())?)
        }

        /// Makes a symbolic link with a time.
        pub fn symlink(&self, target: &[u8], name: &[u8], modified: Timestamp) -> io::Result<()> {
            symlinkat(target, &self.0, name)?;
            let time = Timespec { tv_sec: modified.seconds, tv_nsec: modified.nanoseconds.into() };
            let times = Timestamps { last_access: time, last_modification: time };
            let behind = statat(&self.0, name, AtFlags::empty()).ok();
            // If the time cannot be set, the link is still right.
            let set = utimensat(&self.0, name, &times, AtFlags::SYMLINK_NOFOLLOW);
            let link = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
            // Over SFTP, what the link leads to gets the time instead.
            if let (Ok(()), Some(behind)) = (set, behind)
                && link.st_mtime != modified.seconds
            {
                let _ = utimensat(&self.0, name, &times_of(&behind), AtFlags::empty());
            }
            Ok(())
        }

        /// Makes a hard link here to a file in another folder.
        pub fn link(&self, folder: &Self, from: &[u8], to: &[u8]) -> io::Result<()> {
            Ok(linkat(&folder.0, from, &self.0, to, AtFlags::empty())?)
        }

        /// Gives the folder attributes. Returns what the file system refused.
        pub fn finish(self, wanted: &WantedAttributes<'_>) -> io::Result<Refused> {
            wanted.give(&File::from(self.0))
        }

        /// Sets the time at which the folder last changed. Returns whether the file system refused
        /// it.
        pub fn set_modified(self, modified: Timestamp) -> io::Result<bool> {
            set_modified(&File::from(self.0), modified)
        }

        /// Makes the names in the folder durable, where the file system can do that.
        pub fn sync(&self) -> io::Result<()> {
            refusal(rustix::fs::fsync(&self.0).map_err(Into::into)).map(|_| ())
        }
    }
}

#[cfg(not(unix))]
#[expect(missing_docs, reason = "the functions do what `unix` says of them")]
mod other {
    use std::fs::{self, File, OpenOptions};
    use std::io;
    use std::path::{Path, PathBuf};

    use crate::place::attributes::{Owner, Timestamp, WantedAttributes};
    use crate::place::refused::Refused;

    use crate::place::system::{name_bytes, owned_name};

    /// A folder, kept by its path. The path is checked before each use, because a folder cannot be
    /// held open on this system.
    #[derive(Debug)]
    pub struct Folder(PathBuf);

    impl Folder {
        pub fn open(path: &Path) -> io::Result<Self> {
            path.canonicalize().map(Self)
        }

        pub fn same(&self) -> io::Result<Self> {
            Ok(Self(self.0.clone()))
        }

        pub fn inner(&self, name: &[u8], make: bool) -> io::Result<Self> {
            let path = self.at(name);
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() => Ok(Self(path)),
                Ok(_) => Err(io::ErrorKind::NotADirectory.into()),
                Err(error) if error.kind() == io::ErrorKind::NotFound && make => {
                    fs::create_dir(&path)?;
                    Ok(Self(path))
                }
                Err(error) => Err(error),
            }
        }

        pub fn make(&self, name: &[u8], _mode: u32) -> io::Result<()> {
            self.inner(name, true).map(|_| ())
        }

        fn at(&self, name: &[u8]) -> PathBuf {
            self.0.join(owned_name(name.to_vec()))
        }

        pub fn create(&self, name: &[u8]) -> io::Result<File> {
            OpenOptions::new().read(true).write(true).create_new(true).open(self.at(name))
        }

        pub fn file(&self, name: &[u8]) -> io::Result<File> {
            OpenOptions::new().read(true).write(true).open(self.at(name))
        }

        pub fn file_to_read(&self, name: &[u8]) -> io::Result<File> {
            File::open(self.at(name))
        }

        pub fn about(&self, _name: &[u8]) -> Option<(u32, Option<Owner>)> {
            None
        }

        pub fn owner(&self) -> Option<Owner> {
            None
        }

        pub fn replace(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
            fs::rename(self.at(from), self.at(to))
        }

        pub fn rename_alike(&self, from: &[u8], to: &[u8], _temporary: &[u8]) -> io::Result<()> {
            self.replace(from, to)
        }

        pub fn take(&self, folder: &Self, from: &[u8], to: &[u8]) -> io::Result<()> {
            fs::hard_link(folder.at(from), self.at(to))?;
            fs::remove_file(folder.at(from))
        }

        pub fn names(&self) -> io::Result<Vec<Vec<u8>>> {
            let entries = fs::read_dir(&self.0)?;
            entries.map(|entry| Ok(name_bytes(&entry?.file_name()).to_vec())).collect()
        }

        pub fn remove(&self, name: &[u8]) -> io::Result<()> {
            fs::remove_file(self.at(name))
        }

        pub fn symlink(&self, _target: &[u8], _name: &[u8], _time: Timestamp) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub fn link(&self, folder: &Self, from: &[u8], to: &[u8]) -> io::Result<()> {
            fs::hard_link(folder.at(from), self.at(to))
        }

        pub fn finish(self, _wanted: &WantedAttributes<'_>) -> io::Result<Refused> {
            Ok(Refused::default())
        }

        pub fn set_modified(self, _modified: Timestamp) -> io::Result<bool> {
            Ok(false)
        }

        pub fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }
}
