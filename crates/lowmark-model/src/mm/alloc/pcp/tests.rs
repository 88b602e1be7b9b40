//! Lists of CPUs: how long they are, and what goes back to the zone.

use crate::ids::{NodeId, ZoneId};
use crate::kernel::{Kernel, PcpLists};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::{Built, Layout};
use crate::mm::alloc::page_alloc::RmqueueMode;
use crate::mm::types::Gfp;
use crate::mm::types::{Mark, MigrateType, flag};
use lowmark_spec::Machine;
use lowmark_spec::machine::{Zone, ZoneKind};

fn machine(cpus: u32) -> Machine {
    Machine {
        cpus,
        ..Machine::small(512 << 20, 0)
    }
}

#[test]
fn sizes_are_those_of_zoneinfo() {
    // /proc/zoneinfo of 6.1.192 and 6.18.15 on 2 CPUs with 512 MB: batch 31, high 13 and 408; high_min 13
    // and 410, high_max 240.
    for (version, low) in [("v6.1", 408), ("v6.18", 410)] {
        let kernel = Kernel::named(version);
        let layout = Layout::of(&machine(2), &kernel);
        let Built { mut zones, .. } = layout.build(&kernel);
        zones[ZoneId::FIRST].managed = 3840;
        zones[ZoneId::FIRST].watermark = [22, 27, 32];
        zones[ZoneId::from(1)].managed = 114_592;
        zones[ZoneId::from(1)].watermark[Mark::Low as usize] = 2 * low;
        let dma = super::Pcp::new(&zones[ZoneId::FIRST], 2, 2);
        let dma32 = super::Pcp::new(&zones[ZoneId::from(1)], 2, 2);
        assert_eq!((dma.batch, dma.high_min), (1, 13));
        assert_eq!((dma32.batch, dma32.high_min), (31, low as u32));
        let tuned = kernel.mechanisms.zones.pcp_lists == PcpLists::Tuned;
        assert_eq!(dma.high_max, if tuned { 240 } else { 13 });
    }
}

/// `/proc/zoneinfo` of a 3.x kernel, of a zone of 2 GB: batch 31, high 186; of ZONE_DMA batch 1, high 0. Batches of 63
/// since 4.19.
#[test]
fn old_lists_hold_six_batches_of_single_pages() {
    for (version, batch) in [("v2.6.37", 31), ("v4.18", 31), ("v4.19", 63), ("v5.13", 63)] {
        let kernel = Kernel::named(version);
        let layout = Layout::of(&machine(2), &kernel);
        let Built { mut zones, .. } = layout.build(&kernel);
        for (zone, pages) in zones.iter_mut().zip([3976, 2 << 18]) {
            (zone.present, zone.managed) = (pages, pages);
        }
        let dma = super::Pcp::new(&zones[ZoneId::FIRST], 2, 2);
        let dma32 = super::Pcp::new(&zones[ZoneId::from(1)], 2, 2);
        assert_eq!((dma.batch, dma.high_min), (1, 0), "{version}");
        assert_eq!(
            (dma32.batch, dma32.high_min),
            (batch, 6 * batch),
            "{version}"
        );
        assert_eq!(
            [0, 1, 9].map(|order| dma32.has_list(order)),
            [true, false, false]
        );
    }
}

/// A list that is full gives a batch back, of each type in turn, the oldest first.
#[test]
fn old_lists_give_back_a_batch_of_all_types() {
    let mut mm = Mm::new(&machine(1), Kernel::named("v3.6"));
    let zone = mm.nodes[NodeId::FIRST].zonelist[0];
    let take = |mm: &mut Mm, list| {
        let mut mode = RmqueueMode::Normal;
        mm.zones[zone]
            .rmqueue(&mut mm.pages, 0, list, &mut mode)
            .unwrap()
    };
    let of_types = [MigrateType::Movable, MigrateType::Unmovable];
    let used: Vec<u32> = (0..186).map(|at| take(&mut mm, of_types[at % 2])).collect();
    let free = mm.zones[zone].free;
    for &pfn in &used[..185] {
        mm.free_page(pfn);
    }
    assert_eq!((mm.zones[zone].pcp.len(), mm.zones[zone].free), (185, free));
    mm.free_page(used[185]);
    assert_eq!(
        (mm.zones[zone].pcp.len(), mm.zones[zone].free),
        (155, free + 31)
    );
    let left = used
        .iter()
        .filter(|&&pfn| mm.pages[pfn].has(flag::BUDDY))
        .count();
    assert!(left > 0, "the first page of a free block is marked");
}

/// Pages are neither lost nor made, and each CPU gets its own back first.
#[test]
fn what_a_cpu_frees_it_allocates_next() {
    for version in ["v6.1", "v6.18"] {
        let kernel = Kernel::named(version);
        let mut mm = Mm::new(&machine(2), kernel);
        let in_zones = |mm: &Mm| {
            let held = |z: &super::Zone| z.free + z.pcp.len();
            mm.zones.iter().map(held).sum::<u64>()
        };
        let all = in_zones(&mm);
        let take = |mm: &mut Mm| mm.get_page_fast(Gfp::user(NodeId::FIRST)).unwrap();
        let pages: Vec<u32> = (0..500).map(|_| take(&mut mm)).collect();
        assert_eq!(in_zones(&mm), all - 500, "{version}");
        mm.cpu = 1;
        mm.free_page(pages[7]);
        assert_eq!(take(&mut mm), pages[7]);
        mm.cpu = 0;
        assert_ne!(take(&mut mm), pages[7]);
        for &pfn in &pages[8..] {
            mm.free_page(pfn);
        }
        mm.drain_all_pages();
        assert_eq!(in_zones(&mm), all - 9);
        assert_eq!(mm.zones.iter().map(|zone| zone.free).sum::<u64>(), all - 9);
    }
}

/// Blocks of each order come from lists of their own, and none is lost.
#[test]
fn blocks_of_several_pages_are_kept_too() {
    for version in ["v6.1", "v6.18"] {
        let kernel = Kernel::named(version);
        let mut mm = Mm::new(&machine(1), kernel);
        mm.drain_all_pages();
        let free = |mm: &Mm| mm.zones.iter().map(|zone| zone.free).sum::<u64>();
        let all = free(&mm);
        let mut blocks = Vec::new();
        for order in [0, 1, 3, 1, 4] {
            let at = mm.nodes[NodeId::FIRST].zonelist[0];
            let zone = &mut mm.zones[at];
            let block = match order {
                4 => zone.rmqueue(
                    &mut mm.pages,
                    order,
                    MigrateType::Reclaimable,
                    &mut RmqueueMode::Normal,
                ),
                _ => zone.take_from_pcp(0, &mut mm.pages, order, MigrateType::Reclaimable),
            };
            blocks.push((block.unwrap(), order));
        }
        assert!(blocks.iter().all(|&(pfn, order)| pfn % (1 << order) == 0));
        assert!(free(&mm) <= all - 29, "{version}");
        for (pfn, order) in blocks {
            mm.free_pages(pfn, order);
        }
        mm.drain_all_pages();
        assert_eq!(free(&mm), all, "{version}");
    }
}

#[test]
fn lists_are_short_while_kswapd_works() {
    for version in ["v6.1", "v6.18"] {
        let kernel = Kernel::named(version);
        let mut mm = Mm::new(&machine(1), kernel);
        let pages: Vec<u32> = (0..4000)
            .map(|_| mm.get_page_fast(Gfp::user(NodeId::FIRST)).unwrap())
            .collect();
        for zone in &mut mm.zones {
            zone.set_reclaim_active(true);
        }
        for pfn in pages {
            mm.free_page(pfn);
            let longest = mm.zones.iter().map(|z| z.pcp.len()).max().unwrap();
            assert!(longest <= 4096, "{version}: {longest}");
        }
        let left: Vec<u64> = mm.zones.iter().map(|zone| zone.pcp.len()).collect();
        assert!(left.iter().all(|&len| len <= 4 * 31), "{version}: {left:?}");
    }
}

#[test]
fn batches_grow_with_allocations_in_a_row() {
    let kernel = Kernel::named("v6.18");
    let mut mm = Mm::new(&machine(1), kernel);
    let zone = mm.nodes[NodeId::FIRST].zonelist[0];
    let mut drops = Vec::new();
    for _ in 0..4000 {
        let before = mm.zones[zone].free;
        mm.get_page_fast(Gfp::user(NodeId::FIRST));
        let drop = before - mm.zones[zone].free;
        if drop > 0 {
            drops.push(drop);
        }
    }
    assert_eq!(drops[..6], [31, 62, 124, 248, 496, 992]);
}

/// What CPUs keep when the workload begins is not free, and no list is longer than the kernel's may be.
#[test]
fn kept_pages_are_on_the_lists_from_the_beginning() {
    for (version, asked, expected) in [
        ("v6.18", 5_000, 5_000),
        ("v6.18", 100_000, 2 * 8_128),
        ("v4.18", 5_000, 2 * 186),
    ] {
        let kernel = Kernel::named(version);
        let mut machine = machine(2);
        machine.zones = vec![Zone::new(0, ZoneKind::Dma32, 131_072, 130_048)];
        let free = Mm::new(&machine, kernel.clone()).zones[ZoneId::FIRST].free;
        machine.zones[0].kept = asked;
        let mut mm = Mm::new(&machine, kernel);
        let zone = &mm.zones[ZoneId::FIRST];
        assert_eq!(
            (zone.pcp.len(), free - zone.free),
            (expected, expected),
            "{version}"
        );
        mm.drain_all_pages();
        assert_eq!(mm.zones[ZoneId::FIRST].free, free, "{version}");
    }
}
