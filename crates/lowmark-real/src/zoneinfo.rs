//! `/proc/zoneinfo`, and a machine as a kernel reports it.

use crate::protocol::{KERNEL_LOG, ROTATIONAL};
use crate::swap_area;
use lowmark_record::System;
use lowmark_spec::Machine;
use lowmark_spec::machine::{PAGE_SIZE, PAGEBLOCK_ORDERS, Pageblocks, Zone, ZoneKind};

/// Where the image of a kernel lies that does not choose its place (`CONFIG_PHYSICAL_START`).
const IMAGE: u64 = 16 << 20;

/// Free blocks by type and order.
const PAGETYPEINFO: &str = "proc/pagetypeinfo";

/// A zone with its marks, pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ZoneInfo {
    /// Node.
    pub node: usize,
    /// `DMA`, `DMA32`, `Normal`, …
    pub name: String,
    /// Free pages, those that CPUs keep for themselves apart.
    pub free: u64,
    /// What is added to the watermarks for a while (`watermark_boost`).
    pub boost: u64,
    /// Watermarks, without the boost, with which kernels print them.
    pub min: u64,
    /// Below it, kswapd is woken.
    pub low: u64,
    /// Above it, kswapd sleeps.
    pub high: u64,
    /// First page.
    pub start: u64,
    /// Pages from the first to the last, holes included.
    pub spanned: u64,
    /// Pages that there are.
    pub present: u64,
    /// Pages that the allocator manages.
    pub managed: u64,
    /// `lowmem_reserve` against each class.
    pub protection: Vec<u64>,
    /// Free pages that CPUs keep for themselves.
    pub kept_by_cpus: u64,
}

/// The zones that have pages, in the order of the text. What is not understood is left out: each kernel
/// has lines of its own.
pub fn parse(text: &str) -> Vec<ZoneInfo> {
    let mut zones: Vec<ZoneInfo> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line
            .split([' ', ',', ':', '(', ')'])
            .filter(|w| !w.is_empty())
            .collect();
        if let ["Node", node, "zone", name] = words.as_slice() {
            zones.push(ZoneInfo {
                node: node.parse().unwrap_or(0),
                name: (*name).to_owned(),
                ..ZoneInfo::default()
            });
            continue;
        }
        let Some(zone) = zones.last_mut() else {
            continue;
        };
        let numbers = || words.iter().filter_map(|word| word.parse().ok());
        let number: u64 = numbers().next().unwrap_or(0);
        match words.as_slice() {
            ["pages", "free", _] => zone.free = number,
            ["boost", _] => zone.boost = number,
            ["min", _] => zone.min = number,
            ["low", _] => zone.low = number,
            ["high", _] if zone.high == 0 => zone.high = number,
            ["spanned", _] => zone.spanned = number,
            ["present", _] => zone.present = number,
            ["managed", _] => zone.managed = number,
            ["start_pfn", _] => zone.start = number,
            ["count", _] => zone.kept_by_cpus += number,
            ["protection", ..] => zone.protection = numbers().collect(),
            _ => {}
        }
    }
    zones.retain(|zone| zone.present > 0);
    for zone in &mut zones {
        for mark in [&mut zone.min, &mut zone.low, &mut zone.high] {
            *mark = mark.saturating_sub(zone.boost);
        }
    }
    zones
}

/// The machine as the kernel that ran on it found it before the first task: its zones, with what its watermarks
/// do not know of; as `occupied` what was in use by then; its disks rotate if the kernel takes them to, and its swap areas are files or
/// partitions as the kernel has them. Zones that the description of the machine gives stay as they are.
pub fn observed(machine: &Machine, system: &System) -> Machine {
    let zones = system
        .before
        .get("proc/zoneinfo")
        .map_or(Vec::new(), |text| parse(text));
    let kind = |zone: &ZoneInfo| match zone.name.as_str() {
        "DMA" => Some(ZoneKind::Dma),
        "DMA32" => Some(ZoneKind::Dma32),
        "Normal" => Some(ZoneKind::Normal),
        "HighMem" => Some(ZoneKind::HighMem),
        _ => None,
    };
    let mut machine = machine.clone();
    swap_area::observe(&mut machine, system);
    if let Some(rotational) = rotational(system) {
        for device in &mut machine.devices {
            device.rotational = rotational;
        }
    }
    if !machine.zones.is_empty() || zones.is_empty() {
        return machine;
    }
    let managed: u64 = zones.iter().map(|zone| zone.managed).sum();
    let free: u64 = zones.iter().map(|zone| zone.free + zone.kept_by_cpus).sum();
    let initmem = initmem(&zones, system);
    machine.initmem = 0;
    machine.occupied = managed.saturating_sub(free) * PAGE_SIZE;
    machine.buffers = buffers(system).min(machine.occupied);
    machine.zones = zones
        .iter()
        .zip(initmem)
        .filter_map(|(zone, initmem)| {
            Some(Zone {
                node: zone.node,
                kind: kind(zone)?,
                present: zone.present,
                managed: zone.managed,
                initmem,
                movable: movable_pageblocks(zone, system),
                reclaimable: pageblocks(zone, system, "Reclaimable"),
                kept: zone.kept_by_cpus,
            })
        })
        .collect();
    machine
}

/// Bytes of block devices in the page cache; 0 if the kernel does not say.
fn buffers(system: &System) -> u64 {
    let text = system.before.get("proc/meminfo").map_or("", String::as_str);
    let line = text.lines().find_map(|line| line.strip_prefix("Buffers:"));
    let kib = line.and_then(|rest| {
        rest.trim()
            .trim_end_matches(" kB")
            .trim()
            .parse::<u64>()
            .ok()
    });
    kib.unwrap_or(0) * 1024
}

/// A zone's pageblocks of a type and their free blocks, as `/proc/pagetypeinfo` says; none if it does not. Before each free block
/// there is as much that is in use at least in part, so that no more are taken over than the zone has room for.
fn pageblocks(zone: &ZoneInfo, system: &System, wanted: &str) -> Pageblocks {
    let text = system.before.get(PAGETYPEINFO).map_or("", String::as_str);
    let is_this = |node: &str, name: &str| node.parse() == Ok(zone.node) && name == zone.name;
    let mut pageblocks = Pageblocks::default();
    // Which of the numbers of pageblocks is that of this type.
    let mut column = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split([' ', ',']).filter(|w| !w.is_empty()).collect();
        match words.as_slice() {
            ["Node", node, "zone", name, "type", of, counts @ ..]
                if *of == wanted && is_this(node, name) =>
            {
                let free = pageblocks.free.iter_mut().enumerate();
                for ((order, free), count) in free.zip(counts) {
                    // The kernel stops counting at 100,000: `>100000`.
                    let count = count.trim_start_matches('>').parse().unwrap_or(0);
                    *free = count.min(zone.managed >> (order + 1));
                }
            }
            ["Node", _, "zone", _, "type", ..] => {}
            ["Number", "of", "blocks", "type", types @ ..] => {
                column = types.iter().position(|of| *of == wanted);
            }
            ["Node", node, "zone", name, counts @ ..] if is_this(node, name) => {
                let count = column.and_then(|column| counts.get(column)?.parse().ok());
                pageblocks.count = count
                    .unwrap_or(0)
                    .min(zone.managed >> (PAGEBLOCK_ORDERS - 1));
            }
            _ => {}
        }
    }
    pageblocks
}

/// A zone's movable pageblocks that have pages in use. Movable pageblocks that are free as a whole lie side by side, and are left out.
fn movable_pageblocks(zone: &ZoneInfo, system: &System) -> Pageblocks {
    let mut pageblocks = pageblocks(zone, system, "Movable");
    pageblocks.count = 0;
    pageblocks.free[PAGEBLOCK_ORDERS - 1] = 0;
    pageblocks
}

/// Whether the kernel of a guest takes its disks, all of one kind, to be rotating; none if it does not say. A host has disks of
/// its own ([`Disk`](crate::host::Disk)).
pub(crate) fn rotational(system: &System) -> Option<bool> {
    const HOST: &str = "host";
    let of_guest = system.before.get(ROTATIONAL)?;
    (system.executed_by != HOST).then(|| of_guest.trim() == "1")
}

/// Pages of each zone that were not managed yet when the watermarks were computed, by the kernel's log: those of
/// the initial file system, and those of the kernel's image, which both lie where they were loaded.
///
/// `init_per_zone_wmark_min` is a postcore_initcall. What the kernel frees before, when it has patched itself for
/// one CPU, is managed by then; the initial file system is freed by a rootfs_initcall, the image's parts before
/// PID 1 begins.
fn initmem(zones: &[ZoneInfo], system: &System) -> Vec<u64> {
    let mut pages = vec![0; zones.len()];
    let log = system.before.get(KERNEL_LOG).map_or("", String::as_str);
    let mut ramdisk = IMAGE;
    for line in log.lines() {
        if let Some(range) = line.strip_prefix("RAMDISK: [mem 0x") {
            let first = range.split('-').next().unwrap_or("");
            ramdisk = u64::from_str_radix(first, 16).unwrap_or(IMAGE);
        }
        let freed = line.strip_prefix("Freeing ");
        let Some((what, size)) = freed.and_then(|line| line.split_once(" memory: ")) else {
            continue;
        };
        let at = match what {
            "SMP alternatives" => continue,
            "initrd" => ramdisk,
            _ => IMAGE,
        } / PAGE_SIZE;
        let kib: u64 = size.trim_end_matches('K').parse().unwrap_or(0);
        let zone = zones
            .iter()
            .position(|zone| (zone.start..zone.start + zone.spanned).contains(&at));
        if let Some(pages) = zone.and_then(|zone| pages.get_mut(zone)) {
            *pages += kib * 1024 / PAGE_SIZE;
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of Linux 6.18 in a guest with 256 MB, shortened.
    const TEXT: &str = "Node 0, zone      DMA\n  per-node stats\n      nr_inactive_anon 0\n  pages free     3840\n\
        \x20       boost    40\n        min      84\n        low      95\n        high     106\n        promo    77\n\
        \x20       spanned  4095\n        present  3998\n        managed  3840\n        cma      0\n\
        \x20       protection: (0, 204, 204, 204, 204)\n      nr_free_pages 3840\n  pagesets\n    cpu: 0\n\
        \x20             count:    0\n              high:     13\n              batch:    1\n\
        \x20             high_min: 13\n  node_unreclaimable:  0\n  start_pfn:           1\n\
        Node 0, zone    DMA32\n  pages free     50000\n        min      637\n        low      796\n\
        \x20       high     955\n        spanned  61408\n        present  61408\n        managed  54274\n\
        \x20       protection: (0, 0, 0, 0, 0)\n  pagesets\n    cpu: 0\n              count:    74\n\
        \x20             high:     237\n    cpu: 1\n              count:    26\n\
        Node 0, zone   Normal\n  pages free     0\n        min      0\n        present  0\n        managed  0\n";

    /// `/proc/pagetypeinfo` of such a guest, shortened, with one number that is none of a guest's.
    const BLOCKS: &str = "Page block order: 9\nPages per block:  512\n\n\
        Free pages count per migrate type at order       0      1      2      3\n\
        Node    0, zone      DMA, type      Movable      0      0      0      0      0      0      0      0      0      1      3 \n\
        Node    0, zone    DMA32, type  Reclaimable      1      1      0      1      0      0      0      1      0      1      0 \n\
        Node    0, zone    DMA32, type      Movable      3      2      2   >100000      0      2      2      3      1      2     36 \n\
        Node    1, zone    DMA32, type      Movable      9      9      9      9      9      9      9      9      9      9      9 \n\n\
        Number of blocks type     Unmovable      Movable  Reclaimable\n\
        Node 0, zone    DMA32           14          104            2 \nNode 1, zone    DMA32            5            6            7 \n";

    #[test]
    fn zones_are_read() {
        let zones = parse(TEXT);
        assert_eq!(zones.len(), 2);
        let dma = &zones[0];
        assert_eq!(
            (dma.name.as_str(), dma.min, dma.low, dma.high),
            ("DMA", 44, 55, 66)
        );
        assert_eq!((dma.present, dma.managed, dma.free), (3998, 3840, 3840));
        assert_eq!(dma.protection, [0, 204, 204, 204, 204]);
        assert_eq!((zones[1].high, zones[1].kept_by_cpus), (955, 100));
        assert!(parse("").is_empty());
    }

    #[test]
    fn a_machine_is_what_the_kernel_says_unless_it_gives_zones() {
        let machine = Machine::small(256 << 20, 0);
        let mut system = System::default();
        assert_eq!(observed(&machine, &system), machine);
        system.before.insert("proc/zoneinfo".into(), TEXT.into());
        let seen = observed(&machine, &system);
        assert_eq!(
            seen.occupied,
            (3840 + 54_274 - 3840 - 50_000 - 100) * PAGE_SIZE
        );
        assert_eq!(seen.zones.len(), 2);
        assert_eq!(
            (seen.zones[1].kind, seen.zones[1].managed),
            (ZoneKind::Dma32, 54_274)
        );
        assert_eq!(seen.initmem, 0);
        assert_eq!(seen.zones[1].movable, Pageblocks::default());
        system.before.insert(PAGETYPEINFO.into(), BLOCKS.into());
        let seen = observed(&machine, &system);
        assert_eq!(seen.zones[0].movable, Pageblocks::default());
        let dma32 = seen.zones[1];
        assert_eq!(dma32.movable.free, [3, 2, 2, 3392, 0, 2, 2, 3, 1, 0]);
        assert_eq!(dma32.reclaimable.free, [1, 1, 0, 1, 0, 0, 0, 1, 0, 1]);
        assert_eq!([dma32.movable.count, dma32.reclaimable.count], [0, 2]);
        let given = Machine {
            occupied: 7,
            ..seen
        };
        assert_eq!(observed(&given, &system), given);
        system.before.insert(ROTATIONAL.into(), "1\n".into());
        assert!(!given.devices[0].rotational);
        assert!(observed(&given, &system).devices[0].rotational);
    }

    /// Two nodes of 256 MB: the image lies on the first, the initial file system on the second.
    #[test]
    fn memory_of_booting_is_found() {
        let zone = |start, spanned| ZoneInfo {
            start,
            spanned,
            ..ZoneInfo::default()
        };
        let zones = [zone(1, 4_095), zone(4_096, 61_440), zone(65_536, 65_504)];
        let mut system = System::default();
        assert_eq!(initmem(&zones, &system), [0, 0, 0]);
        let log = "Memory: 456684K/523768K available\nRAMDISK: [mem 0x1fc5f000-0x1ffdffff]\n\
            Freeing SMP alternatives memory: 36K\nFreeing initrd memory: 3588K\n\
            Freeing unused kernel image (initmem) memory: 2660K\n\
            Freeing unused kernel image (rodata/data gap) memory: 864K\nFreeing nothing\n";
        system.before.insert(KERNEL_LOG.into(), log.into());
        assert_eq!(initmem(&zones, &system), [0, 881, 897]);
    }
}
