//! What elementary work costs on a real kernel, as a machine file for the model.
//!
//! 1. [`PROBES`] is a workload of small pieces, each under a name of its own.
//! 2. Of the rounds of a piece the median counts, divided by how often it does its work.
//! 3. Costs are differences: a fault that zeroes a page less one that does not is the zeroing. What one
//!    system call costs and what a page of it costs follow from blocks of two sizes, and so do a disk's
//!    command and its transfer.
//! 4. How many commands a disk serves at once is how much longer one takes alone than with seven others,
//!    as far as one CPU lets see.
//! 5. Beside a thread that wants the CPU for itself, commands take from it what they need, and it is through that much
//!    later: that is the part of a command that is no waiting for the disk.
//! 6. `MADV_PAGEOUT` writes what is dirty, and leaves it in the swap cache. Read from there and paged out again,
//!    pages are clean: they are isolated, unmapped and freed at once. `MADV_WILLNEED` then reads them in large
//!    requests, and writing to them finds them in the swap cache; once more without that, each fault reads its own.
//! 7. What there is in memory is moved together (`compact_memory`), after three of four pages of a mapping were given back: more than
//!    CPUs keep for themselves, so that there is room between those that are left. The kernel counts the pages that were moved, all of
//!    which are mapped, and the frames that it looked at.
//!
//! 8. A memory cgroup that is asked for a page scans all of its pages before one is free: they have been used, and are clean in the swap cache.
//!    Asked for pages that were paged out, it frees what nothing maps.
//!
//!    Unmapping what is then in swap tells what giving up a slot takes, and unmapping what is in memory what a page takes.
//!
//!    Where the kernel gives huge pages, faults, unmapping and paging out tell the same of them.
//!
//! 9. `stat_walk` over names in memory tells what walking a path takes; once more after `drop_caches`, what making an inode takes
//!    whose block is in memory. Reading a file of one page tells what opening it takes; files are made, and are removed before their
//!    pages are written.
//! 10. `drop_caches` takes longer where there are dentries and inodes to free, and again where these have extents.
//!
//! Stand-ins: to keep, unmap or free a page of a file takes reclaim as long as a page of private memory; and a page of a hole takes as long
//! to zero as to copy. An object of a slab that a shrinker keeps costs a thirtieth of one
//! that it frees, as in the events of guests of 6.1. (What a fault takes longer for a page of its own than for the page of zeroes, `zero_page`, holds the
//! page's allocation, too.)

use crate::zoneinfo;
use lowmark_record::Recording;
use lowmark_spec::machine::{Costs, Device, Machine, PAGE_SIZE};
use lowmark_spec::write_machine;
use std::collections::BTreeMap;

/// The workload of probes.
pub const PROBES: &str = include_str!("probes.toml");

/// CPUs of the guest in which they run: one, so that who burns the CPU is in the way of who does not.
pub const CPUS: u32 = 1;

/// Rounds of all probes.
const ROUNDS: u64 = 5;
/// Pages of the mapping.
const PAGES: u64 = 2048;
/// Pages of the large one, and of the group's.
const LARGE: u64 = 8 * PAGES;
/// Passes over it while all of it is there.
const PASSES: u64 = 16;
/// Reads or writes of one page of the disk, one after the other or by eight threads; turns of two that take turns.
const COMMANDS: u64 = 512;
/// Pages of the file that is in memory and of the one that has no blocks, and of a block that is read.
const CACHED: u64 = (8 << 20) / PAGE_SIZE;
const CACHED_BLOCK: u64 = (128 << 10) / PAGE_SIZE;
/// Pages of a file that is made by writing it, and of a block of that.
const WRITTEN: u64 = (8 << 20) / PAGE_SIZE;
const WRITTEN_BLOCK: u64 = (128 << 10) / PAGE_SIZE;
/// Folios into which a file as long as these is read in order where files are read into large ones: 128 pages, 256 in
/// folios of 4, 512 in folios of 16, 1024 in folios of 64, the rest in one.
const FOLIOS: u64 = 128 + 64 + 32 + 16 + 1;
/// Blocks of 1 MiB of the file on the disk, and their pages.
const BLOCKS: u64 = 32;
const BLOCK: u64 = (1 << 20) / PAGE_SIZE;

/// Files whose names are walked, that are read, made and removed; each has one page.
const NAMES: u64 = 4 * 64;

/// How many objects a shrinker looks at and keeps in the time in which it frees one.
const KEPT_FOR_ONE_FREED: u64 = 30;

/// Why a recording of the probes says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the recording has no samples of the probe {probe}, or it found nothing to do; expected one of the workload of probes"
)]
pub struct MissingProbe {
    /// Which.
    pub probe: &'static str,
}

/// Median time of each probe, ns.
struct Times(BTreeMap<String, u64>);

impl Times {
    fn of(recording: &Recording) -> Times {
        let median = |samples: &[(u64, u64)]| {
            let mut values: Vec<u64> = samples.iter().map(|(_, value)| *value).collect();
            values.sort_unstable();
            values.get(values.len() / 2).copied()
        };
        let series = recording.series.iter();
        Times(
            series
                .filter_map(|series| Some((series.name.clone(), median(&series.samples)?)))
                .collect(),
        )
    }

    /// Time of one of `pieces`.
    fn each(&self, probe: &'static str, pieces: u64) -> Result<u64, MissingProbe> {
        let time = self.0.get(probe).copied().ok_or(MissingProbe { probe })?;
        Ok(time / pieces)
    }
}

/// Fills in `costs.migrate_page_ns`: the time of compaction, less that of the frames which compaction looks at, for each page moved, less
/// the time in which the kernel unmaps the page and maps it again. `costs` must have the times of scanning, unmapping and freeing a page.
/// Where looking at the frames of a large memory takes all of the time of compaction, `costs.migrate_page_ns` keeps its value.
fn moving(times: &Times, recording: &Recording, costs: &mut Costs) -> Result<(), MissingProbe> {
    let counter = |name: &str| recording.counters.get(name).copied().unwrap_or(0) / ROUNDS;
    let moved = counter("pgmigrate_success");
    if moved == 0 {
        return Err(MissingProbe { probe: "compact" });
    }
    let frames = counter("compact_migrate_scanned") + counter("compact_free_scanned");
    let time = times.each("compact", 1)?;
    let each = time.saturating_sub(costs.frames_ns(frames)) / moved;
    if let Some(moving @ 1..) = each.checked_sub(costs.remap_page_ns()) {
        costs.migrate_page_ns = moving;
    }
    Ok(())
}

/// The machine on which the probes ran, with the costs that they found. Its devices all get what the probes
/// say of the one that holds the files.
///
/// # Errors
///
/// A probe has no samples.
pub fn machine(base: &Machine, recording: &Recording) -> Result<Machine, MissingProbe> {
    let times = Times::of(recording);
    let touch_ns = times.each("touch", PAGES * PASSES)?;
    let fault = times.each("fault", PAGES)?;
    let read_page = times.each("read-page", CACHED)?;
    let read_block = times.each("read-many", CACHED / CACHED_BLOCK)?;
    let copy_page_ns = read_block.saturating_sub(read_page) / (CACHED_BLOCK - 1);
    let scans = scans(&times, recording)?;
    let written = scans.scan_page_ns + scans.unmap_page_ns;
    let swap_page_ns = times.each("swap-out", PAGES)?.saturating_sub(written);
    let syscall_ns = read_page.saturating_sub(copy_page_ns);
    let disk = disk(&times)?;
    let minor_fault_ns = fault.saturating_sub(touch_ns);
    let beside = |probe, burn| Ok(times.each(probe, 1)?.saturating_sub(times.each(burn, 1)?));
    let commands = beside("disk-read-beside", "burn")? + beside("disk-write-beside", "burn")?;
    let request_ns = (commands / (2 * COMMANDS)).saturating_sub(syscall_ns);
    let swap_in_ns = beside("swap-read-beside", "burn")? / PAGES;
    let swap_map_ns = times
        .each("swap-map", PAGES)?
        .saturating_sub(touch_ns + minor_fault_ns);
    let major = beside("swap-in-beside", "burn-long")? / PAGES;
    let Files {
        file_page_ns,
        folio_page_ns,
        dirty_page_ns,
    } = files(&times, read_block, copy_page_ns, syscall_ns)?;
    // A process that comes back reads a page, which it finds in no TLB; a thread does the same.
    let switch_mm_ns = times
        .each("turns-processes", COMMANDS)?
        .saturating_sub(times.each("turns-threads", COMMANDS)?);
    let mut machine = base.clone();
    forget_costs(&mut machine);
    machine.costs = Costs {
        touch_ns,
        memset_page_ns: times.each("memset", PAGES)?,
        minor_fault_ns,
        // What the fault takes beside the request and the page itself; it is a fault at least.
        major_fault_ns: major
            .saturating_sub(touch_ns + request_ns + swap_in_ns + swap_map_ns)
            .max(minor_fault_ns),
        zero_page_ns: times.each("fault-and-zero", PAGES)?.saturating_sub(fault),
        file_page_ns,
        folio_page_ns,
        dirty_page_ns,
        switch_mm_ns,
        swap_page_ns,
        swap_in_ns,
        swap_map_ns,
        scan_page_ns: scans.scan_page_ns,

        unmap_page_ns: scans.unmap_page_ns,
        free_page_ns: scans.free_page_ns,
        copy_page_ns,
        syscall_ns,
        // The probes do not tell the driver's part of a request.
        request_ns: request_ns.saturating_sub(base.costs.dispatch_ns),
        ..base.costs.clone()
    };
    from_others(&times, recording, read_page, &mut machine.costs)?;
    let system = recording.system.as_deref();
    let rotational = system.and_then(zoneinfo::rotational);
    for device in &mut machine.devices {
        *device = Device {
            rotational: rotational.unwrap_or(device.rotational),
            position_read_ns: 0,
            position_write_ns: 0,
            command_read_ns: disk.read_ns.saturating_sub(disk.page_ns + request_ns),
            command_write_ns: disk
                .write_ns
                .saturating_sub(disk.page_write_ns + request_ns),
            page_ns: disk.page_ns.max(1),
            page_write_ns: disk.page_write_ns.max(1),
            parallelism: disk.parallelism.clamp(1, device.queue_depth.max(1)),
            ..device.clone()
        };
    }
    Ok(machine)
}

/// Fills in `costs` what follows from times and from costs that it has by now. `read_page` is the time of a read(2) of a page in memory.
fn from_others(
    times: &Times,
    recording: &Recording,
    read_page: u64,
    costs: &mut Costs,
) -> Result<(), MissingProbe> {
    moving(times, recording, costs)?;
    unmapping(times, freed(recording)?, costs)?;
    huge_pages(times, recording, costs)?;
    names(times, read_page, costs)
}

/// Times of a disk.
struct Disk {
    /// A read of one page, alone, and a write.
    read_ns: u64,
    write_ns: u64,
    /// Transfer of a page that is read, and written.
    page_ns: u64,
    page_write_ns: u64,
    /// Commands that it serves at once.
    parallelism: u32,
}

/// What reads and writes past the page cache say of the disk.
fn disk(times: &Times) -> Result<Disk, MissingProbe> {
    let read_ns = times.each("disk-read-page", COMMANDS)?;
    let write_ns = times.each("disk-write-page", COMMANDS)?;
    let transfer = |block: u64, page: u64| block.saturating_sub(page) / (BLOCK - 1);
    let deep = times.each("disk-read-deep", COMMANDS)? + times.each("disk-write-deep", COMMANDS)?;
    let parallelism = (read_ns + write_ns + deep / 2) / deep.max(1);
    Ok(Disk {
        read_ns,
        write_ns,
        page_ns: transfer(times.each("disk-read-many", BLOCKS)?, read_ns),
        page_write_ns: transfer(times.each("disk-write-many", BLOCKS)?, write_ns),
        parallelism: u32::try_from(parallelism).unwrap_or(u32::MAX),
    })
}

/// Costs of pages that are scanned.
struct Scans {
    scan_page_ns: u64,
    unmap_page_ns: u64,
    free_page_ns: u64,
}

/// Pages that were freed in each round that nothing mapped: kernels free more than they are asked for. A few dozen are those of the
/// probe of kept ones. Groups of version 1 do not count them, and nothing else is short of memory: those of the system are they.
fn freed(recording: &Recording) -> Result<u64, MissingProbe> {
    let counter = |name: &str| recording.counters.get(name).copied();
    let of_system = || Some(counter("pgsteal_anon")? + counter("pgsteal_file")?);
    let all = counter("cgroup/group/memory.stat.pgsteal").or_else(of_system);
    let each = all.map(|pages| pages / ROUNDS).filter(|&pages| pages > 0);
    each.ok_or(MissingProbe {
        probe: "reclaim-unmapped",
    })
}

/// Fills in `costs` how long munmap(2) takes for a page and for a slot of swap. `costs` already has the time in which a fault finds a
/// page in the swap cache. `freed` pages of the swapped region had left the swap cache when it was unmapped; the slots of the rest
/// still had theirs.
fn unmapping(times: &Times, freed: u64, costs: &mut Costs) -> Result<(), MissingProbe> {
    costs.zap_page_ns = times.each("unmap", LARGE)?;
    let cached = LARGE.saturating_sub(freed) * (costs.swap_map_ns + costs.zap_page_ns);
    costs.zap_swap_ns = times.each("unmap-swapped", 1)?.saturating_sub(cached) / LARGE;
    Ok(())
}

/// Fills in `costs` what huge pages take, as far as the kernel gave some and swapped out all of them as a whole. `costs` must have the times of
/// touching and scanning a page, and of a request.
fn huge_pages(times: &Times, recording: &Recording, costs: &mut Costs) -> Result<(), MissingProbe> {
    let counter = |name: &str| recording.counters.get(name).copied().unwrap_or(0);
    // In each round there are as many twice, and the second time they go to swap.
    let pages = counter("thp_fault_alloc") / (2 * ROUNDS);
    if pages == 0 {
        return Ok(());
    }
    costs.zero_huge_page_ns = times
        .each("fault-huge", pages)?
        .saturating_sub(costs.touch_ns);
    costs.zap_huge_page_ns = times.each("unmap-huge", pages)?;
    if counter("thp_swpout") == pages * ROUNDS {
        let each = times.each("swap-out-huge", pages)?;
        // One request holds it: up to 4 MiB on 6.18, where guests swapped huge pages out as a whole.
        let beside = costs.scan_page_ns + costs.request_ns;
        costs.swap_huge_page_ns = each.saturating_sub(beside);
    }
    Ok(())
}

/// What scans say: of mapped pages that stay, of pages that nothing maps and that are freed, and of pages of which both is so.
fn scans(times: &Times, recording: &Recording) -> Result<Scans, MissingProbe> {
    let all = times.each("reclaim", PAGES)?;
    let scan_page_ns = times.each("keep", LARGE)?.min(all);
    let unmapped = times.each("reclaim-unmapped", freed(recording)?)?.min(all);
    let free_page_ns = unmapped.saturating_sub(scan_page_ns);
    Ok(Scans {
        scan_page_ns,
        unmap_page_ns: all - scan_page_ns - free_page_ns,
        free_page_ns,
    })
}

/// Costs of pages of files.
struct Files {
    file_page_ns: u64,
    folio_page_ns: u64,
    dirty_page_ns: u64,
}

/// What files say, where a block that is in memory takes `read_block` to read.
fn files(
    times: &Times,
    read_block: u64,
    copy_page_ns: u64,
    syscall_ns: u64,
) -> Result<Files, MissingProbe> {
    // A page of a hole is zeroed in place of being read, and copied as any.
    let of_page = |hole: u64| hole.saturating_sub(read_block / CACHED_BLOCK + copy_page_ns);
    let file_page_ns = of_page(times.each("read-hole-reverse", CACHED)?);
    let in_order = of_page(times.each("read-hole", CACHED)?) * CACHED;
    let beside = file_page_ns + copy_page_ns + syscall_ns / WRITTEN_BLOCK;
    Ok(Files {
        file_page_ns,
        folio_page_ns: in_order.saturating_sub(FOLIOS * file_page_ns) / (CACHED - FOLIOS),
        dirty_page_ns: times.each("write-new", WRITTEN)?.saturating_sub(beside),
    })
}

/// Fills in `costs` what paths, inodes and files take, and what a shrinker needs to free their objects. Reading a page that is in
/// memory takes `read_page`; `costs` has the system call already.
fn names(times: &Times, read_page: u64, costs: &mut Costs) -> Result<(), MissingProbe> {
    let walk = times.each("stat", NAMES)?;
    let beside = |probe, other| Ok(times.each(probe, NAMES)?.saturating_sub(other));
    costs.lookup_ns = walk.saturating_sub(costs.syscall_ns);
    costs.read_inode_ns = beside("stat-missing", walk)?;
    costs.open_ns = beside("read-file", walk + read_page)?;
    costs.create_ns = beside("create", walk)?;
    costs.unlink_ns = beside("delete", walk)?;
    let with_names = times.each("drop-names", NAMES)?;
    // A dentry and an inode each.
    let freed = with_names.saturating_sub(times.each("drop-none", NAMES)?) / 2;
    costs.scan_object_ns = freed / KEPT_FOR_ONE_FREED;
    costs.free_object_ns = freed - freed / KEPT_FOR_ONE_FREED;
    costs.free_extent_ns = beside("drop-extents", with_names)?;
    Ok(())
}

/// What was measured under single kernels, and fitted of costs and devices, is no longer so: they are measured now.
fn forget_costs(machine: &mut Machine) {
    machine.kernel_costs.clear();
    let measured = |name: &str| ["costs", "kernel_costs", "device"].contains(&name);
    machine
        .fitted
        .retain(|name, _| !name.split('.').next().is_some_and(measured));
}

/// A machine as a machine file, in which devices and costs come from `source`, unless the machine's description says
/// where they come from.
pub fn to_toml(machine: &Machine, source: &str) -> String {
    format!(
        "# Written by `lowmark calibrate`.\n{}",
        write_machine(machine, source)
    )
}

#[cfg(test)]
mod tests;
