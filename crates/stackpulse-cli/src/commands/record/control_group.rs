//! Control groups by the names people give them.

use super::own_failure;
use crate::failure::Failure;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the directory of a control group: a path to it, or its name below the mount of version 2.
pub(super) fn directory(group: &Path) -> Result<PathBuf, Failure> {
    let is_group = |path: &Path| path.join("cgroup.procs").exists();
    if group.is_absolute() && is_group(group) {
        return Ok(group.to_path_buf());
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let Some(mount) = mount_of(&mounts) else {
        return Err(own_failure(
            "control groups of version 2 are not mounted here (mount -t cgroup2 none DIRECTORY); those of version 1 cannot be recorded",
        ));
    };
    let below = group.strip_prefix("/").unwrap_or(group);
    let path = mount.join(below);
    if below.as_os_str().is_empty() || !is_group(&path) {
        return Err(own_failure(format!(
            "there is no control group {} below {}; systemd-cgls lists those there are",
            group.display(),
            mount.display()
        )));
    }
    Ok(path)
}

/// Where control groups of version 2 are mounted, by the kernel's table of mounts.
fn mount_of(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let place = fields.next()?;
        (fields.next()? == "cgroup2").then(|| place.into())
    })
}
