//! What a workload asks of this system, found out before anything is changed.

use super::HostOptions;
use super::cgroup::{self, Group, Hierarchy, Limits, Version};
use super::error::HostError;
use super::settings::{self, Change};
use crate::protocol::Setting;
use crate::runner::procfs::setting_path;
use crate::runner::unsupported;
use crate::undo::{OWN, Undo, read_setting};
use lowmark_spec::Scenario;
use lowmark_spec::machine::{Arch, FsKind};
use lowmark_spec::workload::{Op, Workload};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Memory that is to be left to everything else, bytes.
const LEFT: u64 = 128 << 20;

/// Everything that is to be done.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) group: Group,
    pub(super) limits: Limits,
    /// Directory for files, and for swap.
    pub(super) directory: PathBuf,
    /// Directory for file systems that live in memory, if there are any.
    pub(super) in_memory: Option<PathBuf>,
    /// Size of the swap file that is to be made, bytes.
    pub(super) swap: Option<u64>,
    /// Settings of the whole system to be changed.
    pub(super) changes: Vec<Change>,
    /// What else gets its value back: what the workload changes itself.
    changed_later: Vec<Undo>,
    /// CPUs that the workload may use; none for all.
    pub(super) cpus: Option<u32>,
    /// The workload gets no huge pages, whatever the system is set to.
    pub(super) no_huge_pages: bool,
    /// What the recording's reader should know.
    pub(super) notes: Vec<String>,
}

impl Plan {
    /// Makes it.
    pub(super) fn of(scenario: &Scenario, options: &HostOptions) -> Result<Plan, HostError> {
        let mut refused = Refused::default();
        let hierarchy = Hierarchy::find().map_err(|why| refused.cannot(why)).ok();
        refused.of_scenario(scenario);
        let mut notes = notes(scenario);
        let pid = std::process::id();
        let workload = &scenario.workload;
        if let Some(hierarchy) = &hierarchy {
            refused
                .what
                .extend(cgroup::lacks(hierarchy.version, &workload.cgroups));
        }
        let version = hierarchy.as_ref().map(|hierarchy| hierarchy.version);
        let mut wanted = crate::settings::of(scenario);
        // Each cgroup of version 1 has its own.
        let swappiness = match version {
            Some(Version::V1) => take_swappiness(&mut wanted),
            _ => None,
        };
        let (changes, lacking) = settings::changes(&wanted);
        refused.what.extend(lacking);
        refused.wide.extend(changes.iter().map(|change| {
            format!(
                "the setting {} is {}, not {}",
                change.name, change.from, change.to
            )
        }));
        let changed_later = refused.of_statements(workload);
        let memory = memory_of(scenario);
        refused.of_memory(memory);
        let swap_size = swap_of(scenario);
        let has_files = workload.has_files() || (options.machine_wide && swap_size > 0);
        let scratch = refused.scratch(options.scratch.as_deref(), has_files);
        let swap = refused.swap(swap_size, options.machine_wide, &mut notes);
        refused.judge(options.machine_wide)?;
        let hierarchy = hierarchy.ok_or(HostError::Unsupported { what: Vec::new() })?;
        let cpus = cpus(scenario.machine.cpus, &mut notes);
        let of_memory = |kind: FsKind| kind == FsKind::Tmpfs;
        let mut systems = scenario.machine.filesystems.iter();
        let in_memory = systems.any(|system| of_memory(system.kind)) && workload.has_files();
        Ok(Plan {
            group: hierarchy.group(pid, &workload.cgroups),
            limits: Limits {
                memory,
                swap: swap_size,
                swappiness,
            },
            directory: scratch.join(format!("{OWN}{pid}")),
            in_memory: in_memory.then(|| Path::new(IN_MEMORY).join(format!("{OWN}{pid}"))),
            swap,
            changes,
            changed_later,
            cpus,
            no_huge_pages: !scenario.machine.thp
                && !scenario.kernel.sysctl.contains_key("thp.enabled"),
            notes,
        })
    }

    /// What undoes all of it, in the order in which it is done.
    pub(super) fn undo(&self, events: bool) -> Vec<Undo> {
        let settings = self.changes.iter().map(|change| change.undo.clone());
        let mut undo: Vec<Undo> = settings.chain(self.changed_later.iter().cloned()).collect();
        undo.push(Undo::Cgroup {
            path: self.group.path.clone(),
        });
        let directories = [Some(&self.directory), self.in_memory.as_ref()];
        undo.extend(
            directories
                .into_iter()
                .flatten()
                .map(|path| Undo::Directory { path: path.clone() }),
        );
        if self.swap.is_some() {
            undo.push(Undo::Swap {
                file: self.swap_file(),
            });
        }
        undo.push(Undo::Tasks {
            group: self.group.path.clone(),
        });
        if events {
            undo.push(Undo::Instance);
        }
        undo
    }

    /// The swap file.
    pub(super) fn swap_file(&self) -> PathBuf {
        self.directory.join("swap")
    }
}

/// Files in `/proc/sys/vm` that have no value.
const TRIGGERS: [&str; 3] = ["compact_memory", "drop_caches", "stat_refresh"];

/// Where file systems that live in memory are.
const IN_MEMORY: &str = "/dev/shm";

/// What stands against a run.
#[derive(Debug, Default)]
struct Refused {
    /// It cannot be done.
    what: Vec<String>,
    /// It changes the whole system.
    wide: Vec<String>,
}

impl Refused {
    fn cannot(&mut self, why: String) {
        self.what.push(why);
    }

    fn judge(self, machine_wide: bool) -> Result<(), HostError> {
        if !self.what.is_empty() {
            return Err(HostError::Unsupported { what: self.what });
        }
        if !machine_wide && !self.wide.is_empty() {
            return Err(HostError::MachineWide { what: self.wide });
        }
        Ok(())
    }

    /// What the workload, its kernel and its machine ask for that no system gives.
    fn of_scenario(&mut self, scenario: &Scenario) {
        let statements = unsupported(&scenario.workload);
        self.what.extend(statements.iter().map(ToString::to_string));
        let toggles = scenario.kernel.toggles.iter();
        self.what
            .extend(toggles.map(|toggle| format!("{toggle}: a real kernel is as it was built")));
        let own = match scenario.machine.arch {
            Arch::X86_64 => "x86_64",
            _ => "",
        };
        if own != std::env::consts::ARCH {
            self.cannot(format!("a machine that is not {}", std::env::consts::ARCH));
        }
        if scenario.workload.has_files() && scenario.machine.filesystems.is_empty() {
            self.cannot("files on a machine without a file system".into());
        }
    }

    /// Statements that change the whole system; what gives settings their values back.
    fn of_statements(&mut self, workload: &Workload) -> Vec<Undo> {
        const POOL: &str = "nr_hugepages";
        let mut names = BTreeSet::new();
        for stmt in workload.statements() {
            match &stmt.op {
                Op::Sysctl { name, .. } => {
                    names.insert(name.as_str());
                }
                Op::Alloc(_) => {
                    names.insert(POOL);
                }
                Op::DropCaches { .. } => {
                    let text = "drop_caches takes the page cache of all".to_owned();
                    if !self.wide.contains(&text) {
                        self.wide.push(text);
                    }
                }
                _ => {}
            }
        }
        let mut undo = Vec::new();
        for name in names {
            // What has an effect when it is written, and no value, needs nothing to undo it.
            if !TRIGGERS.contains(&name) {
                match settings::undo(name, Path::new(&setting_path(name))) {
                    Ok(step) => undo.push(step),
                    Err(error) => self.cannot(format!("the setting {name}: {error}")),
                }
            }
            self.wide.push(match name {
                POOL => "alloc changes the pool of huge pages (vm.nr_hugepages)".into(),
                _ => format!("a statement of the workload changes the setting {name}"),
            });
        }
        undo
    }

    /// Where files and a swap file go: onto a disk, as files in memory are no page cache that reclaim can write back.
    fn scratch(&mut self, asked: Option<&Path>, has_files: bool) -> PathBuf {
        let place = match (asked, has_files) {
            (Some(asked), _) => asked.to_owned(),
            (None, true) => on_disk(),
            (None, false) => std::env::temp_dir(),
        };
        if has_files && in_memory(&place) {
            self.cannot(format!(
                "{} lies in memory, and the workload's files and swap are to lie on a disk: name a directory on one in TMPDIR",
                place.display()
            ));
        }
        // Who undoes the run may do so from another directory.
        fs::canonicalize(&place).unwrap_or(place)
    }

    /// Memory for the workload has to be there, beside what others use.
    fn of_memory(&mut self, memory: u64) {
        match meminfo("MemAvailable") {
            Some(available) if available < memory.saturating_add(LEFT) => self.cannot(format!(
                "{} MB of memory, of which this system has {} MB available, {} MB of them for everything else: give the \
                 workload a smaller machine (--set machine.ram=SIZE)",
                memory >> 20,
                available >> 20,
                LEFT >> 20
            )),
            _ => {}
        }
    }

    /// Where swap comes from: a file of its own where the system may be changed, else the swap that is on.
    fn swap(&mut self, size: u64, machine_wide: bool, notes: &mut Vec<String>) -> Option<u64> {
        if size == 0 {
            return None;
        }
        if machine_wide {
            notes.push(format!(
                "the swap of the workload is a file of {} MB, which other tasks may use as well",
                size >> 20
            ));
            return Some(size);
        }
        let free = meminfo("SwapFree").unwrap_or(0);
        if free < size {
            self.wide.push(format!(
                "the workload's machine has {} MB of swap, this system {} MB free",
                size >> 20,
                free >> 20
            ));
            return None;
        }
        notes.push("the workload uses the swap that this system has on".into());
        None
    }
}

/// Swap of the machine.
pub(super) fn swap_of(scenario: &Scenario) -> u64 {
    scenario.machine.swap.iter().map(|area| area.size).sum()
}

/// What the machine's kernel has for the workload: all that it manages but for what is in use besides.
pub(super) fn memory_of(scenario: &Scenario) -> u64 {
    let machine = &scenario.machine;
    machine.mem_total().saturating_sub(machine.occupied)
}

/// The swappiness that a workload sets, which then is no setting of the whole system.
fn take_swappiness(wanted: &mut Vec<Setting>) -> Option<u64> {
    let at = wanted
        .iter()
        .position(|setting| setting.name == "swappiness")?;
    wanted.remove(at).value.trim().parse().ok()
}

/// A directory on a disk, where there is one: that for temporary files, else the one for those that outlive a boot.
pub(super) fn on_disk() -> PathBuf {
    const LASTING: &str = "/var/tmp";
    let usual = std::env::temp_dir();
    let lasting = Path::new(LASTING);
    if in_memory(&usual) && lasting.is_dir() && !in_memory(lasting) {
        return lasting.to_owned();
    }
    usual
}

/// Whether a directory lies in memory.
fn in_memory(path: &Path) -> bool {
    // TMPFS_MAGIC and RAMFS_MAGIC of include/uapi/linux/magic.h
    const MAGIC: [i64; 2] = [0x0102_1994, 0x8584_58f6];
    rustix::fs::statfs(path).is_ok_and(|stat| MAGIC.contains(&stat.f_type))
}

/// A field of `/proc/meminfo`, bytes.
fn meminfo(field: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| *name == field)?;
    let kilobytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

/// The CPUs that the workload is to use; none if it may use all that there are.
fn cpus(wanted: u32, notes: &mut Vec<String>) -> Option<u32> {
    let there = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    if there < wanted {
        notes.push(format!(
            "the workload's machine has {wanted} CPUs, this system {there}"
        ));
    }
    (there > wanted).then_some(wanted)
}

/// What is otherwise than on the workload's machine.
fn notes(scenario: &Scenario) -> Vec<String> {
    let mut notes = vec![
        "counters of /proc/vmstat are of the whole system; those that begin with cgroup/ are of the workload alone"
            .to_owned(),
    ];
    let on = |name: &str| read_setting(Path::new(&setting_path(name))).ok();
    if on("lru_gen.enabled").is_some_and(|value| value != "0x0000") {
        notes.push("pages stand in generations on this system (lru_gen.enabled)".into());
    }
    if scenario.machine.thp && on("thp.enabled").is_some_and(|value| value == "never") {
        notes.push("this system gives no huge pages (thp.enabled is never)".into());
    }
    if scenario.machine.nodes.len() > 1 {
        notes.push("nodes are those of this system".into());
    }
    let damon = fs::read_dir("/sys/kernel/mm/damon/admin/kdamonds");
    let runs = damon.into_iter().flatten().flatten().any(|entry| {
        let state = fs::read_to_string(entry.path().join("state"));
        state.is_ok_and(|state| state.trim() == "on")
    });
    if runs {
        notes.push("DAMON runs on this system, and may reclaim pages of the workload".into());
    }
    notes
}
