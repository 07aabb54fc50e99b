//! Opening files whose paths others chose: regular files only, and nothing else is so much as opened.

use crate::allowance::Allowance;
use crate::input::Input;
use rustix::fs::{self, CWD, FsWord, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory that recorded paths are looked for below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) directory: PathBuf,
    /// Whether links in it may lead out of it. What a process sees as its root they may not: they mean its own files.
    pub(crate) leads_out: bool,
}

impl Root {
    /// Where a recorded path is below it.
    pub(crate) fn below(&self, path: &Path) -> PathBuf {
        self.directory.join(path.strip_prefix("/").unwrap_or(path))
    }
}

/// File systems of regular files that the kernel makes up: some never end, some wait, some change what they tell of
/// (`linux/magic.h`).
const MADE_UP: [FsWord; 15] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x6265_7065, // configfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0xcafe_4a11, // bpf
    0xde5e_81e4, // efivarfs
    0x6165_676c, // pstore
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x4249_4e4d, // binfmt_misc
    0x6e73_6673, // nsfs
];

/// Opens a regular file that holds what was once written. Where the path is below the root, its links are those of the root.
pub(crate) fn open(path: &Path, root: Option<&Root>) -> Option<(File, Metadata)> {
    let found = look_at(path, root)?;
    let is_made_up = fs::fstatfs(&found).is_ok_and(|about| MADE_UP.contains(&about.f_type));
    if is_made_up { None } else { reopen(found) }
}

/// Opens a regular file that may be the kernel's own, at a path that nobody else chose.
pub(crate) fn open_any(path: &Path) -> Option<(File, Metadata)> {
    reopen(look_at(path, None)?)
}

/// Opens a regular file to read pieces of it.
pub(crate) fn input(path: &Path, root: Option<&Root>, allowance: &Allowance) -> Option<Arc<Input>> {
    let (file, metadata) = open(path, root)?;
    Some(Input::file(file, &metadata, allowance).into())
}

/// When a file was last changed, nanoseconds since 1970 UTC.
pub(crate) fn modified_ns(metadata: &Metadata) -> u64 {
    let seconds = u64::try_from(metadata.mtime()).unwrap_or_default();
    let rest = u64::try_from(metadata.mtime_nsec()).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// Finds what a path leads to, without opening it: that alone would rewind a tape, or start a watchdog.
fn look_at(path: &Path, root: Option<&Root>) -> Option<OwnedFd> {
    let plain = || fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let below = root.and_then(|root| Some((root, path.strip_prefix(&root.directory).ok()?)));
    let Some((root, inner)) = below else { return plain().ok() };
    match in_root(&root.directory, inner) {
        // Not every kernel, and not every sandbox, has openat2(2).
        Err(Errno::NOSYS | Errno::PERM) => plain().ok(),
        Err(_) if root.leads_out => plain().ok(),
        found => found.ok(),
    }
}

fn in_root(root: &Path, inner: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let root = fs::openat(CWD, root, flags | OFlags::DIRECTORY, Mode::empty())?;
    fs::openat2(root, inner, flags, Mode::empty(), ResolveFlags::IN_ROOT)
}

/// Opens what was found, if it is a regular file: the same one, whatever has become of its path.
fn reopen(found: OwnedFd) -> Option<(File, Metadata)> {
    let found = File::from(found);
    let metadata = found.metadata().ok()?;
    if !metadata.is_file() {
        return None;
    }
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = fs::open(path, flags, Mode::empty()).ok()?;
    Some((File::from(file), metadata))
}
