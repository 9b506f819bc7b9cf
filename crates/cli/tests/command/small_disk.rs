//! A small disk, for tests of what happens when it is full.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// A file system in memory, which is mounted until this is dropped.
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// Mounts a disk of a size such as `12m`. Returns `None` if nothing can be mounted here.
    pub fn new(size: &str) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(place.path());
        let is_mounted = mount.output().is_ok_and(|mount| mount.status.success());
        is_mounted.then(|| Self(place))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}
