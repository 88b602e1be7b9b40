//! `/proc/zoneinfo`, and a machine as a kernel reports it.

use crate::protocol::ROTATIONAL;
use lowmark_record::System;
use lowmark_spec::Machine;
use lowmark_spec::machine::{PAGE_SIZE, Zone, ZoneKind};

/// A zone with its marks, pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ZoneInfo {
    /// Node.
    pub node: usize,
    /// `DMA`, `DMA32`, `Normal`, …
    pub name: String,
    /// Free pages, those that CPUs keep for themselves apart.
    pub free: u64,
    /// Watermarks.
    pub min: u64,
    /// Below it, kswapd is woken.
    pub low: u64,
    /// Above it, kswapd sleeps.
    pub high: u64,
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
            ["min", _] => zone.min = number,
            ["low", _] => zone.low = number,
            ["high", _] if zone.high == 0 => zone.high = number,
            ["present", _] => zone.present = number,
            ["managed", _] => zone.managed = number,
            ["count", _] => zone.kept_by_cpus += number,
            ["protection", ..] => zone.protection = numbers().collect(),
            _ => {}
        }
    }
    zones.retain(|zone| zone.present > 0);
    zones
}

/// The machine as the kernel that ran on it found it before the first task: its zones, as `occupied` what
/// was in use by then, as `initmem` what its watermarks do not know of; and its disks rotate if the kernel
/// takes them to. Zones that the description of the machine gives stay as they are.
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
    machine.initmem = initmem(&zones, system) * PAGE_SIZE;
    machine.occupied = managed.saturating_sub(free) * PAGE_SIZE;
    machine.zones = zones
        .iter()
        .filter_map(|zone| {
            Some(Zone {
                node: zone.node,
                kind: kind(zone)?,
                present: zone.present,
                managed: zone.managed,
            })
        })
        .collect();
    machine
}

/// Whether the kernel takes its disks to be rotating; none if it does not say.
pub(crate) fn rotational(system: &System) -> Option<bool> {
    Some(system.before.get(ROTATIONAL)?.trim() == "1")
}

/// Pages that were not managed yet when watermarks and reserves were computed, as far as these tell:
/// `min_free_kbytes` is the root of sixteen times the managed memory in KiB, and a reserve a 256th of the
/// pages above, both rounded down.
fn initmem(zones: &[ZoneInfo], system: &System) -> u64 {
    const KIB_PER_PAGE: u64 = PAGE_SIZE >> 10;
    const RESERVE_RATIO: u64 = 256;
    let managed: u64 = zones.iter().map(|zone| zone.managed).sum();
    let file = system.before.get("proc/sys/vm/min_free_kbytes");
    let Some(root) = file.and_then(|text| text.trim().parse::<u64>().ok()) else {
        return 0;
    };
    let least = |root: u64| root.saturating_mul(root).div_ceil(16 * KIB_PER_PAGE);
    let (low, high) = (least(root), least(root + 1) - 1);
    if low > managed {
        // Set by hand, or raised for huge pages: it says nothing.
        return 0;
    }
    // What the lowest zone keeps from those that could use all of node 0.
    let first = &zones[0];
    let above = managed.saturating_sub(first.managed);
    let reserve = first.protection.iter().max().copied().unwrap_or(0) * RESERVE_RATIO;
    let by_reserve = first.managed + reserve;
    let at_boot = match above >= reserve && (low..=high).contains(&by_reserve) {
        true => by_reserve,
        false => low,
    };
    managed.saturating_sub(at_boot)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of Linux 6.18 in a guest with 256 MB, shortened.
    const TEXT: &str = "Node 0, zone      DMA\n  per-node stats\n      nr_inactive_anon 0\n  pages free     3840\n\
        \x20       boost    0\n        min      44\n        low      55\n        high     66\n        promo    77\n\
        \x20       spanned  4095\n        present  3998\n        managed  3840\n        cma      0\n\
        \x20       protection: (0, 204, 204, 204, 204)\n      nr_free_pages 3840\n  pagesets\n    cpu: 0\n\
        \x20             count:    0\n              high:     13\n              batch:    1\n\
        \x20             high_min: 13\n  node_unreclaimable:  0\n  start_pfn:           1\n\
        Node 0, zone    DMA32\n  pages free     50000\n        min      637\n        low      796\n\
        \x20       high     955\n        spanned  61408\n        present  61408\n        managed  54274\n\
        \x20       protection: (0, 0, 0, 0, 0)\n  pagesets\n    cpu: 0\n              count:    74\n\
        \x20             high:     237\n    cpu: 1\n              count:    26\n\
        Node 0, zone   Normal\n  pages free     0\n        min      0\n        present  0\n        managed  0\n";

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
        let given = Machine {
            occupied: 7,
            ..seen
        };
        assert_eq!(observed(&given, &system), given);
        system.before.insert(ROTATIONAL.into(), "1\n".into());
        assert!(!given.devices[0].rotational);
        assert!(observed(&given, &system).devices[0].rotational);
    }

    /// Linux 6.1 in a guest with 512 MB: 117,033 pages, of which 2,578 came after booting.
    #[test]
    fn memory_of_booting_is_found() {
        let zone = |managed, protection| ZoneInfo {
            managed,
            protection,
            ..ZoneInfo::default()
        };
        let zones = [zone(3_840, vec![0, 432, 432]), zone(113_193, vec![0, 0, 0])];
        let mut system = System::default();
        let mut found = |kbytes: &str| {
            let file = "proc/sys/vm/min_free_kbytes".to_owned();
            system.before.insert(file, kbytes.into());
            initmem(&zones, &system)
        };
        let at_boot = 117_033 - found("2706\n");
        assert_eq!((at_boot * 4 * 16).isqrt(), 2_706);
        assert_eq!((at_boot - 3_840) / 256, 432);
        assert_eq!(found("65536\n"), 0);
        assert_eq!(found("none"), 0);
    }
}
