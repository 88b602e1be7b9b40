//! Scenarios that the model rejects before it runs them.

use crate::kernel::{Kernel, KernelError, Strictlimit, Version, v};
use crate::mm::files::inode::MAX_FILE_PAGES;
use crate::mm::frames::pte::MAX_PAYLOAD;
use crate::mm::frames::shadow::LRUVECS_MAX;
use crate::mm::swap::swapfile::MAX_FRAMES;
use crate::mm::types::BlockOrders;
use crate::task::{Later, Unsupported, bytes_before, later, unsupported};
use lowmark_record::Release;
use lowmark_spec::machine::{FsKind, PAGE_SIZE};
use lowmark_spec::workload::{Op, SizeDist, Stmt};
use lowmark_spec::{Machine, Scenario};
use std::fmt::Write;

/// The first kernel without `fs/ext3`.
const EXT3_REMOVED: Release = Release::new(4, 3);

/// Why a scenario cannot be run on the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The kernel is not one of the model's.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The machine is beyond what the model can hold.
    #[error("machine {machine}: {reason}")]
    Machine {
        /// Its name.
        machine: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// Memory cgroups that the model does not have.
    #[error("memory cgroup {name}: {reason}")]
    Cgroup {
        /// The first of them.
        name: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// The workload has statements that the model cannot carry out yet.
    #[error("the model cannot carry out {}", list(.0))]
    Workload(Vec<Unsupported>),
    /// A statement writes a setting that the kernel does not have, or a value that it does not take.
    #[error("{}: {error}", list(std::slice::from_ref(.statement)))]
    Setting {
        /// The statement.
        statement: Unsupported,
        /// What is wrong.
        error: Box<KernelError>,
    },
    /// The workload has statements that came with a later kernel.
    #[error("{version} does not know {}", list_later(.statements))]
    Later {
        /// The kernel.
        version: Version,
        /// The statements.
        statements: Vec<Later>,
    },
}

fn list_later(statements: &[Later]) -> String {
    let statements = statements.iter().map(|later| {
        let list = list(std::slice::from_ref(&later.statement));
        format!("{list}, which came with {}", later.since)
    });
    statements.collect::<Vec<_>>().join("; ")
}

fn list(statements: &[Unsupported]) -> String {
    let mut text = String::new();
    for (at, unsupported) in statements.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let Unsupported {
            task,
            line,
            statement,
        } = unsupported;
        // Writing to a string does not fail.
        let _ = write!(text, "{comma}`{statement}` (task {task}, line {line})");
    }
    text
}

/// Least memory that a node needs so that its zones can have watermarks at all.
const NODE_PAGES_MIN: u64 = 1024;
/// Files that sets may have together.
const FILES_MAX: u64 = 10_000_000;
/// Zones that a page can name.
const ZONES_MAX: usize = 16;

/// Looks at a scenario before it runs.
///
/// # Errors
///
/// When its machine, its kernel or a statement of its workload is beyond the model.
pub fn check(scenario: &Scenario) -> Result<(), Refusal> {
    let kernel = Kernel::resolve(&scenario.kernel)?;
    cgroups(scenario, &kernel)?;
    let machine = &scenario.machine;
    let parts = memory(machine)
        .and_then(|()| swap(machine))
        .and_then(|()| devices(machine, &kernel));
    parts.map_err(|reason| Refusal::Machine {
        machine: machine.name.clone(),
        reason,
    })?;
    files(scenario)?;
    let mut statements = unsupported(&scenario.workload);
    statements.extend(too_large(scenario));
    if !statements.is_empty() {
        return Err(Refusal::Workload(statements));
    }
    settings(scenario, &kernel)?;
    let version = kernel.version;
    let statements = later(&scenario.workload, version);
    if statements.is_empty() {
        Ok(())
    } else {
        Err(Refusal::Later {
            version,
            statements,
        })
    }
}

/// Whether the kernel takes what statements write to its settings.
fn settings(scenario: &Scenario, kernel: &Kernel) -> Result<(), Refusal> {
    for task in &scenario.workload.tasks {
        let mut statements: Vec<&Stmt> = task.instances.iter().flatten().collect();
        while let Some(stmt) = statements.pop() {
            if let Op::Sysctl { name, value } = &stmt.op {
                let statement = || Unsupported {
                    task: task.name.clone(),
                    line: stmt.line,
                    statement: "sysctl".into(),
                };
                kernel
                    .takes(name, value)
                    .map_err(|error| Refusal::Setting {
                        statement: statement(),
                        error: Box::new(error),
                    })?;
            }
            statements.extend(stmt.op.bodies().into_iter().flatten());
        }
    }
    Ok(())
}

/// Why the memory of a machine is not the model's, if it is not.
fn memory(machine: &Machine) -> Result<(), String> {
    if machine.nodes.is_empty() || machine.cpus == 0 || machine.hz == 0 {
        return Err("a machine needs a node, a CPU and a timer".into());
    }
    if let Some(version) = machine
        .kernel_costs
        .keys()
        .find(|version| Version::known(version).is_err())
    {
        return Err(format!(
            "kernel_costs.\"{version}\": the model has no such kernel; `lowmark list kernels` names those that it has"
        ));
    }
    if machine.nodes.len() + 2 > ZONES_MAX {
        return Err(format!(
            "{} nodes; the model holds {}",
            machine.nodes.len(),
            ZONES_MAX - 2
        ));
    }
    let frames = machine.ram() / PAGE_SIZE;
    if frames > u64::from(MAX_FRAMES) {
        return Err(format!(
            "{frames} pages of RAM; the model holds {MAX_FRAMES} (256 GiB)"
        ));
    }
    if let Some(node) = machine
        .nodes
        .iter()
        .find(|node| node.ram / PAGE_SIZE < NODE_PAGES_MIN)
    {
        return Err(format!(
            "a node with {} bytes; the least is 4 MiB",
            node.ram
        ));
    }
    if machine
        .zones
        .iter()
        .any(|zone| zone.node >= machine.nodes.len())
    {
        return Err("a zone refers to a node that the machine does not have".into());
    }
    let managed: u64 = machine.zones.iter().map(|zone| zone.managed).sum();
    if !machine.zones.is_empty() && machine.occupied / PAGE_SIZE + NODE_PAGES_MIN > managed {
        return Err(format!(
            "occupied takes {} bytes of {managed} managed pages; leave at least 4 MiB",
            machine.occupied
        ));
    }
    let taken = machine.reserved.saturating_add(machine.occupied);
    if machine.zones.is_empty()
        && taken / PAGE_SIZE + NODE_PAGES_MIN > machine.nodes[0].ram / PAGE_SIZE
    {
        return Err(format!(
            "reserved and occupied take {taken} of the {} bytes of node 0; leave at least 4 MiB",
            machine.nodes[0].ram
        ));
    }
    Ok(())
}

/// The same of its swap areas.
fn swap(machine: &Machine) -> Result<(), String> {
    let slots: u64 = machine.swap.iter().map(|area| area.size / PAGE_SIZE).sum();
    if slots > u64::from(MAX_PAYLOAD / 2) {
        return Err(format!(
            "{slots} pages of swap; the model holds {}",
            MAX_PAYLOAD / 2
        ));
    }
    for area in &machine.swap {
        let Some(device) = machine.devices.get(area.device) else {
            return Err(format!(
                "a swap area refers to device number {}, which the machine does not have",
                area.device
            ));
        };
        if area.size < 2 * PAGE_SIZE || area.start.saturating_add(area.size) > device.size {
            return Err(format!(
                "swap of {} bytes at {} does not fit on {} with {} bytes",
                area.size, area.start, device.name, device.size
            ));
        }
    }
    Ok(())
}

/// The same of its devices.
fn devices(machine: &Machine, kernel: &Kernel) -> Result<(), String> {
    if let Some(device) = machine
        .devices
        .iter()
        .find(|d| d.parallelism == 0 || d.members == 0 || d.nr_requests < 8)
    {
        return Err(format!(
            "{}: parallelism and members must be at least 1, nr_requests at least 8",
            device.name
        ));
    }
    let strict = machine.devices.iter().find(|device| device.strictlimit);
    if let Some(device) =
        strict.filter(|_| kernel.mechanisms.writeback.strictlimit == Strictlimit::Off)
    {
        return Err(format!(
            "{}: kernel {} has no strictlimit, which came with v3.12; add +strictlimit to the kernel to enable it",
            device.name, kernel.version
        ));
    }
    let mut ext3 = machine.filesystems.iter();
    if let Some(fs) = ext3.find(|fs| fs.kind == FsKind::Ext3)
        && kernel.version.release() >= EXT3_REMOVED
    {
        return Err(format!(
            "filesystem {}: the driver of ext3 was removed in v4.3 (c290ea01abb7), and kernel {} has none; use kind = \"ext4\"",
            fs.name, kernel.version
        ));
    }
    let shares: u64 = machine.devices.iter().map(|it| it.written_share).sum();
    if shares > 100 {
        return Err(format!(
            "written_share adds up to {shares} % over all devices; the total must not exceed 100 %"
        ));
    }
    Ok(())
}

/// Allocations of blocks that the allocator of the machine does not have.
fn too_large(scenario: &Scenario) -> Vec<Unsupported> {
    let largest = BlockOrders::of(scenario.machine.arch).largest;
    let mut found = Vec::new();
    for task in &scenario.workload.tasks {
        let mut open: Vec<&Stmt> = task.instances.iter().flatten().collect();
        while let Some(stmt) = open.pop() {
            if let Op::Alloc(what) = &stmt.op
                && what.order as usize > largest
            {
                let statement = format!(
                    "alloc of order {}; its blocks are up to order {largest}",
                    what.order
                );
                let entry = Unsupported {
                    task: task.name.clone(),
                    line: stmt.line,
                    statement,
                };
                if !found.contains(&entry) {
                    found.push(entry);
                }
            }
            open.extend(stmt.op.bodies().into_iter().flatten());
        }
    }
    found
}

/// `memory.min` came with this version (bf8d5d52ffe8).
const MEMORY_MIN: Version = v(4, 18);

/// Looks at the memory cgroups of a workload: whether the kernel has what they need.
fn cgroups(scenario: &Scenario, kernel: &Kernel) -> Result<(), Refusal> {
    let groups = &scenario.workload.cgroups;
    let Some(first) = groups.first() else {
        return Ok(());
    };
    let refuse = |reason: String| {
        Err(Refusal::Cgroup {
            name: first.name.clone(),
            reason,
        })
    };
    if !kernel.coverage.memory_cgroups {
        return refuse(format!(
            "the model has memory cgroups from v4.13 on, not in {}; use --kernel v6.1",
            scenario.kernel.text
        ));
    }
    let with_min = groups.iter().find(|group| group.min.is_some());
    if let Some(group) = with_min
        && kernel.version < MEMORY_MIN
    {
        return Err(Refusal::Cgroup {
            name: group.name.clone(),
            reason: format!(
                "memory.min came with v4.18, and {} has none; use `low`, or --kernel v4.18 or later",
                scenario.kernel.text
            ),
        });
    }
    let sets = (groups.len() + 1) * scenario.machine.nodes.len();
    if sets > LRUVECS_MAX {
        return refuse(format!(
            "{} groups on {} nodes need {sets} sets of LRU lists; the model holds {LRUVECS_MAX}",
            groups.len(),
            scenario.machine.nodes.len()
        ));
    }
    Ok(())
}

/// Looks at the files of a workload: where they lie, and whether they fit there.
fn files(scenario: &Scenario) -> Result<(), Refusal> {
    let (machine, workload) = (&scenario.machine, &scenario.workload);
    let refuse = |reason: String| {
        Err(Refusal::Machine {
            machine: machine.name.clone(),
            reason,
        })
    };
    let size_of_set = |size: SizeDist| match size {
        SizeDist::Fixed(size) | SizeDist::Uniform(_, size) | SizeDist::LogNormal(size, _) => size,
    };
    let single = workload
        .files
        .iter()
        .map(|file| (&file.path, &file.fs, file.size));
    let sets = workload
        .filesets
        .iter()
        .map(|set| (&set.name, &set.fs, size_of_set(set.size)));
    for (name, fs, size) in single.chain(sets) {
        let mut found = machine.filesystems.iter();
        let Some(fs) = found.find(|known| known.name == **fs || fs.is_empty()) else {
            return refuse(format!(
                "{name} lies on file system {fs:?}, which the machine does not have; add [machine.filesystem.data] with kind and device"
            ));
        };
        if fs.kind == FsKind::Tmpfs || fs.device.is_none_or(|d| d >= machine.devices.len()) {
            return refuse(format!(
                "{name} lies on {}, which has no device; the model has files on xfs, ext4 and ext3 only",
                fs.name
            ));
        }
        if size.div_ceil(PAGE_SIZE) > MAX_FILE_PAGES {
            return refuse(format!(
                "{name} has {size} bytes; the model holds files up to 16 TiB"
            ));
        }
    }
    let sets = workload.filesets.iter();
    let in_sets = sets.fold(0u64, |sum, set| {
        sum.saturating_add(set.directories.saturating_mul(set.files))
    });
    if in_sets > FILES_MAX {
        return refuse(format!(
            "{in_sets} files in sets; the model holds {FILES_MAX}"
        ));
    }
    for (fs, bytes) in
        machine
            .filesystems
            .iter()
            .zip(bytes_before(machine, workload, scenario.seed))
    {
        let room = fs.device.map_or(0, |device| machine.devices[device].size);
        if bytes > room {
            return refuse(format!(
                "files of {bytes} bytes before the run do not fit on {}, whose device has {room}",
                fs.name
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_kernels_that_there_are_not_are_refused() {
        let mut scenario = crate::example_scenario();
        let costs = scenario.machine.costs.clone();
        let kernels = &mut scenario.machine.kernel_costs;
        kernels.insert("v6.1".into(), costs.clone());
        assert_eq!(check(&scenario), Ok(()));
        let kernels = &mut scenario.machine.kernel_costs;
        kernels.insert("v9.9".into(), costs);
        let error = check(&scenario).expect_err("no such kernel").to_string();
        assert!(error.contains("kernel_costs.\"v9.9\""), "{error}");
    }
}
