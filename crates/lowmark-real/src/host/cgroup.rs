//! The memory cgroup that a workload runs in, of version 1 or 2.

use crate::undo::{Changes, OWN};
use lowmark_spec::workload::Cgroup;
use rustix::fs::{Access, access};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Version of the hierarchy that counts memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// `memory.limit_in_bytes`: a hierarchy for memory alone.
    V1,
    /// `memory.max`: one hierarchy for all.
    V2,
}

impl Version {
    pub(super) fn number(self) -> u8 {
        match self {
            Version::V1 => 1,
            Version::V2 => 2,
        }
    }
}

/// Where a cgroup can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub(super) version: Version,
    /// The cgroup in which it is made.
    pub(super) parent: PathBuf,
}

/// How much the cgroup may have, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Of memory.
    pub(super) memory: u64,
    /// Of swap.
    pub(super) swap: u64,
    /// `memory.swappiness`, which cgroups of version 1 have each.
    pub(super) swappiness: Option<u64>,
}

/// The cgroup, with those of the workload inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) version: Version,
    /// Its directory.
    pub(super) path: PathBuf,
    /// The directory of the cgroup for tasks that the workload puts in none.
    pub(super) tasks: PathBuf,
}

/// A mount of `/proc/self/mountinfo`.
struct Mount<'a> {
    /// The part of the file system that is mounted.
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    /// Options of the file system, for version 1 its controllers.
    options: &'a str,
}

fn mounts(mountinfo: &str) -> impl Iterator<Item = Mount<'_>> {
    mountinfo.lines().filter_map(|line| {
        let (own, of_type) = line.split_once(" - ")?;
        let own: Vec<&str> = own.split(' ').collect();
        let of_type: Vec<&str> = of_type.split(' ').collect();
        Some(Mount {
            root: own.get(3)?,
            point: own.get(4)?,
            kind: of_type.first()?,
            options: of_type.get(2)?,
        })
    })
}

/// The path of this process in a hierarchy, from a `/proc/self/cgroup`: that of a controller of version 1, or of version 2
/// (none).
fn own_path<'a>(cgroups: &'a str, controller: Option<&str>) -> Option<&'a str> {
    cgroups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_it = match controller {
            None => controllers.is_empty(),
            Some(wanted) => controllers.split(',').any(|name| name == wanted),
        };
        is_it.then_some(path)
    })
}

impl Hierarchy {
    /// Finds it.
    ///
    /// # Errors
    ///
    /// Why no cgroup can be made, as a sentence.
    pub(super) fn find() -> Result<Hierarchy, String> {
        let read = |file: &str| {
            fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"))
        };
        let mountinfo = read("/proc/self/mountinfo")?;
        let cgroups = read("/proc/self/cgroup")?;
        Hierarchy::find_in(&mountinfo, &cgroups)
    }

    fn find_in(mountinfo: &str, cgroups: &str) -> Result<Hierarchy, String> {
        const MEMORY: &str = "memory";
        let v1 = mounts(mountinfo).find(|mount| {
            mount.kind == "cgroup" && mount.options.split(',').any(|option| option == MEMORY)
        });
        if let Some(mount) = v1 {
            let own = own_path(cgroups, Some(MEMORY)).and_then(|path| below(&mount, path));
            let places = own.into_iter().chain([PathBuf::from(mount.point)]);
            return Hierarchy::first(Version::V1, places, |_| true).ok_or_else(|| {
                format!(
                    "no cgroup can be made below {}, the hierarchy of version 1 that counts memory: that takes root",
                    mount.point
                )
            });
        }
        let Some(mount) = mounts(mountinfo).find(|mount| mount.kind == "cgroup2") else {
            return Err("no cgroups are mounted on this system".into());
        };
        let controllers = |directory: &Path, file: &str| {
            let text = fs::read_to_string(directory.join(file)).unwrap_or_default();
            text.split_whitespace().any(|name| name == MEMORY)
        };
        if !controllers(Path::new(mount.point), "cgroup.controllers") {
            return Err(format!(
                "the cgroups at {} do not count memory",
                mount.point
            ));
        }
        // A cgroup with tasks in it has no cgroups with limits inside it, so that of this process is no place.
        let own = own_path(cgroups, None).and_then(|path| below(&mount, path));
        let above: Vec<PathBuf> = own
            .iter()
            .flat_map(|own| own.ancestors().skip(1))
            .take_while(|place| place.starts_with(mount.point))
            .map(Path::to_owned)
            .collect();
        let places = above.into_iter().chain([PathBuf::from(mount.point)]);
        let hands_on = |place: &Path| controllers(place, "cgroup.subtree_control");
        Hierarchy::first(Version::V2, places, hands_on).ok_or_else(|| {
            format!(
                "no cgroup with a limit of memory can be made below {}: that takes root, or a cgroup that was delegated \
                 (systemd-run --user --scope -p Delegate=yes), and `memory` in the cgroup.subtree_control above it",
                mount.point
            )
        })
    }

    /// The first place that can be written to.
    fn first(
        version: Version,
        places: impl IntoIterator<Item = PathBuf>,
        suits: impl Fn(&Path) -> bool,
    ) -> Option<Hierarchy> {
        let mut places = places.into_iter();
        let parent = places.find(|place| {
            access(place, Access::WRITE_OK | Access::EXEC_OK).is_ok() && suits(place)
        })?;
        Some(Hierarchy { version, parent })
    }

    /// The cgroup of a process, which is not there yet.
    pub(super) fn group(&self, pid: u32, groups: &[Cgroup]) -> Group {
        let path = self.parent.join(format!("{OWN}{pid}"));
        let tasks = match (self.version, groups.is_empty()) {
            // With groups in it, a cgroup of version 2 has no tasks of its own.
            (Version::V2, false) => {
                let mut name = "ungrouped".to_owned();
                while groups.iter().any(|group| group.path == name) {
                    name.push('_');
                }
                path.join(name)
            }
            _ => path.clone(),
        };
        Group {
            version: self.version,
            path,
            tasks,
        }
    }
}

/// Where a path of a hierarchy is, if it lies in the part that is mounted.
fn below(mount: &Mount<'_>, path: &str) -> Option<PathBuf> {
    let rest = match mount.root {
        "/" => path,
        root => path.strip_prefix(root)?,
    };
    Some(Path::new(mount.point).join(rest.trim_start_matches('/')))
}

/// The limits of a workload's cgroups that cgroups of a version do not have, a sentence each.
pub(super) fn lacks(version: Version, groups: &[Cgroup]) -> Vec<String> {
    let mut lacking = Vec::new();
    for group in groups {
        let asked: &[(&str, bool)] = match version {
            Version::V1 => &[
                ("memory.min", group.min.is_some()),
                ("memory.low", group.low.is_some()),
                ("memory.high", group.high.is_some()),
                ("memory.swap.max", group.swap_max.is_some()),
            ],
            Version::V2 => &[("the soft limit", group.soft.is_some())],
        };
        let number = version.number();
        for (what, _) in asked.iter().filter(|(_, asked)| *asked) {
            lacking.push(format!(
                "{what} of the cgroup {}: cgroups of this system are of version {number}",
                group.name
            ));
        }
    }
    lacking
}

impl Group {
    /// Makes it with those of the workload, and sets what they may have.
    pub(super) fn make(
        &self,
        changes: &mut dyn Changes,
        limits: Limits,
        groups: &[Cgroup],
    ) -> io::Result<()> {
        make_one(changes, &self.path)?;
        match self.version {
            Version::V1 => self.limit_v1(changes, limits)?,
            Version::V2 => {
                set(changes, &self.path, "memory.max", limits.memory)?;
                // A kernel without swap of groups has no such file.
                if self.path.join("memory.swap.max").exists() {
                    set(changes, &self.path, "memory.swap.max", limits.swap)?;
                }
            }
        }
        let has_inner = |path: &str| {
            let inside = format!("{path}/");
            groups.iter().any(|other| other.path.starts_with(&inside))
        };
        if self.version == Version::V2 && !groups.is_empty() {
            set(changes, &self.path, "cgroup.subtree_control", "+memory")?;
            make_one(changes, &self.tasks)?;
        }
        for group in groups {
            let directory = self.path.join(&group.path);
            make_one(changes, &directory)?;
            match self.version {
                Version::V1 => {
                    for (file, limit) in [
                        ("memory.limit_in_bytes", group.max),
                        ("memory.soft_limit_in_bytes", group.soft),
                    ] {
                        limit.map_or(Ok(()), |limit| set(changes, &directory, file, limit))?;
                    }
                }
                Version::V2 => {
                    for (file, limit) in group.files() {
                        limit.map_or(Ok(()), |limit| set(changes, &directory, file, limit))?;
                    }
                    if has_inner(&group.path) {
                        set(changes, &directory, "cgroup.subtree_control", "+memory")?;
                    }
                }
            }
        }
        Ok(())
    }

    fn limit_v1(&self, changes: &mut dyn Changes, limits: Limits) -> io::Result<()> {
        const HIERARCHY: &str = "memory.use_hierarchy";
        // Since 5.11 it is always 1. Cgroups inside have to be counted with it.
        let flat = fs::read_to_string(self.path.join(HIERARCHY));
        if flat.is_ok_and(|flat| flat.trim() == "0") {
            set(changes, &self.path, HIERARCHY, 1)?;
        }
        set(changes, &self.path, "memory.limit_in_bytes", limits.memory)?;
        // Memory and swap together; a kernel without swap of groups has no such file.
        const BOTH: &str = "memory.memsw.limit_in_bytes";
        if self.path.join(BOTH).exists() {
            let both = limits.memory.saturating_add(limits.swap);
            set(changes, &self.path, BOTH, both)?;
        }
        match limits.swappiness {
            Some(value) => set(changes, &self.path, "memory.swappiness", value),
            None => Ok(()),
        }
    }

    /// Moves a process into it: what that allocates from now on is charged there.
    pub(super) fn take(&self, changes: &mut dyn Changes, pid: u32) -> io::Result<()> {
        set(changes, &self.tasks, "cgroup.procs", pid)
    }
}

fn make_one(changes: &mut dyn Changes, path: &Path) -> io::Result<()> {
    changes.make_group(path).map_err(|error| {
        let text = format!("cannot make the cgroup {}: {error}", path.display());
        io::Error::new(error.kind(), text)
    })
}

fn set(
    changes: &mut dyn Changes,
    group: &Path,
    file: &str,
    value: impl std::fmt::Display,
) -> io::Result<()> {
    let path = group.join(file);
    changes.set(&path, &value.to_string()).map_err(|error| {
        let text = format!("cannot write {value} to {}: {error}", path.display());
        io::Error::new(error.kind(), text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(point: &Path, kind: &str, options: &str) -> String {
        format!(
            "22 1 0:20 / / rw - ext4 /dev/vda rw\n30 22 0:26 / {} rw,nosuid - {kind} {kind} {options}\n",
            point.display()
        )
    }

    #[test]
    fn a_hierarchy_of_version_1_is_found_at_the_place_of_this_process() {
        let place = tempfile::tempdir().expect("a directory");
        let own = place.path().join("a/b");
        fs::create_dir_all(&own).expect("made");
        let mountinfo = lines(place.path(), "cgroup", "rw,memory");
        let find =
            |cgroups: &str| Hierarchy::find_in(&mountinfo, cgroups).map(|found| found.parent);
        assert_eq!(find("3:cpu:/x\n2:memory:/a/b\n0::/y\n"), Ok(own));
        let gone = find("2:memory:/not/here\n");
        assert_eq!(gone.as_deref(), Ok(place.path()));
        assert!(Hierarchy::find_in("", "").is_err_and(|why| why.contains("no cgroups")));
    }

    #[test]
    fn a_cgroup_of_version_2_is_made_where_memory_is_handed_on() {
        let place = tempfile::tempdir().expect("a directory");
        let own = place.path().join("slice/unit/scope");
        fs::create_dir_all(&own).expect("made");
        let mountinfo = lines(place.path(), "cgroup2", "rw");
        let find = || Hierarchy::find_in(&mountinfo, "0::/slice/unit/scope\n");
        let write = |name: &str, text: &str| {
            fs::write(place.path().join(name), text).expect("written");
        };
        assert!(find().is_err_and(|why| why.contains("do not count memory")));
        write("cgroup.controllers", "cpu memory\n");
        assert!(find().is_err_and(|why| why.contains("subtree_control")));
        write("cgroup.subtree_control", "memory\n");
        let root = find().expect("found");
        assert_eq!(
            (root.version, root.parent.as_path()),
            (Version::V2, place.path())
        );
        write("slice/cgroup.subtree_control", "cpu memory\n");
        let slice = find().expect("found");
        assert_eq!(slice.parent, place.path().join("slice"));
        // A part of the hierarchy may be mounted alone.
        let part = mountinfo
            .replace(" / /", " /slice /")
            .replacen(" /slice /", " / /", 1);
        let found = Hierarchy::find_in(&part, "0::/slice/unit/scope\n").expect("found");
        assert_eq!(found.parent, place.path());
    }

    #[test]
    fn tasks_of_version_2_have_a_cgroup_beside_those_of_the_workload() {
        let hierarchy = |version| Hierarchy {
            version,
            parent: "/groups".into(),
        };
        let group = |path: &str| Cgroup {
            name: path.to_owned(),
            path: path.to_owned(),
            ..Cgroup::default()
        };
        let tasks = |version, groups: &[Cgroup]| hierarchy(version).group(7, groups).tasks;
        let path = PathBuf::from("/groups/lowmark-7");
        assert_eq!(tasks(Version::V2, &[]), path);
        assert_eq!(tasks(Version::V1, &[group("a")]), path);
        assert_eq!(tasks(Version::V2, &[group("a")]), path.join("ungrouped"));
        let taken = tasks(Version::V2, &[group("ungrouped")]);
        assert_eq!(taken, path.join("ungrouped_"));
    }

    #[test]
    fn what_a_version_lacks_is_named() {
        let group = Cgroup {
            name: "web".into(),
            low: Some(1),
            soft: Some(2),
            ..Cgroup::default()
        };
        let groups = std::slice::from_ref(&group);
        let [first] = lacks(Version::V1, groups).try_into().expect("one");
        assert!(first.starts_with("memory.low of the cgroup web"), "{first}");
        let [second] = lacks(Version::V2, groups).try_into().expect("one");
        assert!(second.starts_with("the soft limit"), "{second}");
    }
}
