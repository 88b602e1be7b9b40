//! Types of blocks: who lends what to whom, worked by hand.

use crate::ids::{NodeId, ZoneId};
use crate::kernel::Kernel;
use crate::mm::Mm;
use crate::mm::alloc::mmzone::Zone;
use crate::mm::alloc::page_alloc::RmqueueMode;
use crate::mm::alloc::page_alloc::freelist::Floor;
use crate::mm::frames::page::FreeList;
use crate::mm::types::{Gfp, MigrateType, PAGEBLOCK_PAGES, Pfn, Reserves, flag};
use crate::world::World;
use MigrateType::{HighAtomic, Movable, Reclaimable, Unmovable};
use lowmark_record::event::gfp;
use lowmark_spec::Machine;
use lowmark_spec::machine::{Arch, PAGE_SIZE, Pageblocks, Zone as ZoneSpec, ZoneKind};

/// Pageblocks of the machine's one zone.
const BLOCKS: u32 = 16;

fn kernel(text: &str, boost_factor: u64) -> Kernel {
    Kernel::named(&format!("{text},watermark_boost_factor={boost_factor}"))
}

/// One zone of 16 pageblocks, all movable and in use but for what `free` names: first frames and numbers of frames.
fn memory(version: &str, free: &[(Pfn, u32)]) -> Mm {
    let pages = u64::from(BLOCKS * PAGEBLOCK_PAGES);
    let machine = Machine {
        zones: vec![ZoneSpec::new(0, ZoneKind::Dma32, pages, pages)],
        ..Machine::small(pages * PAGE_SIZE, 0)
    };
    let mut mm = Mm::new(&machine, kernel(version, 15_000));
    mm.zones[ZoneId::FIRST].pageblocks.fill(Movable);
    for list in MigrateType::ALL {
        while mm.zones[ZoneId::FIRST].free_area[list as usize]
            .iter()
            .any(|area| area.len() > 0)
        {
            take(&mut mm, list);
        }
    }
    for &(first, pages) in free {
        for pfn in first..first + pages {
            mm.free_block(pfn, 0);
        }
    }
    mm.zones[ZoneId::FIRST].watermark_boost = 0;
    mm
}

fn take(mm: &mut Mm, list: MigrateType) -> Option<Pfn> {
    let mut mode = RmqueueMode::Normal;
    mm.zones[ZoneId::FIRST].rmqueue(&mut mm.pages, 0, list, &mut mode)
}

/// Free pages on the lists of each type.
fn free_of(zone: &Zone) -> [u64; 3] {
    [Unmovable, Movable, Reclaimable].map(|list| {
        let areas = zone.free_area[list as usize].iter().enumerate();
        areas.map(|(order, area)| area.len() << order).sum()
    })
}

const VERSIONS: [&str; 4] = ["v5.0", "v6.1", "v6.12", "v6.18"];

#[test]
fn whole_pageblocks_change_hands_without_a_boost() {
    for version in VERSIONS {
        let mut mm = memory(version, &[(1024, 1024), (4096, 512)]);
        // The largest block: two pageblocks at once.
        assert_eq!(take(&mut mm, Unmovable), Some(1024), "{version}");
        let zone = &mm.zones[ZoneId::FIRST];
        assert_eq!(free_of(zone), [1023, 512, 0], "{version}");
        assert_eq!(zone.pageblocks[2..4], [Unmovable; 2]);
        assert_eq!(zone.pageblocks[8], Movable);
        assert_eq!(zone.watermark_boost, 0, "{version}");
    }
}

#[test]
fn a_pageblock_that_is_half_free_is_claimed() {
    for version in VERSIONS {
        let mut mm = memory(version, &[(512, 256)]);
        assert_eq!(take(&mut mm, Unmovable), Some(512), "{version}");
        let zone = &mm.zones[ZoneId::FIRST];
        assert_eq!(free_of(zone), [255, 0, 0], "{version}");
        assert_eq!(zone.pageblocks[1], Unmovable);
        assert_eq!(zone.watermark_boost, 512, "{version}");
    }
}

/// Of a movable pageblock 128 pages are free and all others on an LRU list: what else is free in it goes along up to
/// 6.9, nothing later, and the pageblock keeps its type.
#[test]
fn a_page_is_taken_from_a_pageblock_in_use() {
    for (version, free) in [
        ("v5.0", [127, 0, 0]),
        ("v6.1", [127, 0, 0]),
        ("v6.12", [0, 127, 0]),
        ("v6.18", [0, 127, 0]),
    ] {
        let mut mm = memory(version, &[(512, 128)]);
        for pfn in 512 + 128..1024 {
            mm.pages[pfn].set(flag::LRU);
        }
        assert_eq!(take(&mut mm, Unmovable), Some(512), "{version}");
        let zone = &mm.zones[ZoneId::FIRST];
        assert_eq!(free_of(zone), free, "{version}");
        assert_eq!(zone.pageblocks[1], Movable);
        assert_eq!(zone.watermark_boost, 512, "{version}");
    }
}

/// Pages that are in use and not on LRU lists count for the types that cannot be moved.
#[test]
fn what_is_alike_counts() {
    for version in VERSIONS {
        let mut mm = memory(version, &[(512, 128)]);
        for pfn in 512 + 128..512 + 384 {
            mm.pages[pfn].set(flag::LRU);
        }
        // 128 free, 256 movable, 128 neither.
        assert_eq!(take(&mut mm, Reclaimable), Some(512), "{version}");
        assert_eq!(
            mm.zones[ZoneId::FIRST].pageblocks[1],
            Reclaimable,
            "{version}"
        );
        assert_eq!(free_of(&mm.zones[ZoneId::FIRST]), [0, 0, 127], "{version}");
    }
}

/// Of an unmovable pageblock a block of 8 pages and one of 128 are free, in different pageblocks. A movable page comes
/// from the smaller one where the larger cannot be claimed (6.15 and later), or would never be (order below 4).
#[test]
fn movable_pages_come_from_the_smallest_block() {
    for (version, first) in [("v6.1", 1024), ("v6.12", 1024), ("v6.18", 512)] {
        let mut mm = memory(version, &[]);
        mm.zones[ZoneId::FIRST].pageblocks[1..3].fill(Unmovable);
        for pfn in (512..520).chain(1024..1024 + 128) {
            mm.free_block(pfn, 0);
        }
        assert_eq!(take(&mut mm, Movable), Some(first), "{version}");
        assert_eq!(mm.zones[ZoneId::FIRST].pageblocks[1..3], [Unmovable; 2]);
        assert_eq!(mm.zones[ZoneId::FIRST].watermark_boost, 512, "{version}");
    }
    for (version, boost) in [("v6.1", 512), ("v6.18", 0)] {
        let mut mm = memory(version, &[]);
        mm.zones[ZoneId::FIRST].pageblocks[1..3].fill(Unmovable);
        for pfn in (512..514).chain(1024..1024 + 8) {
            mm.free_block(pfn, 0);
        }
        assert_eq!(take(&mut mm, Movable), Some(512), "{version}");
        // No order is large enough to be claimed, so nothing is tried.
        assert_eq!(mm.zones[ZoneId::FIRST].watermark_boost, boost, "{version}");
    }
}

/// Blocks of 8 and 128 pages are free in two movable pageblocks, 8 more pages beside each, and all others on LRU lists. What
/// an unmovable page takes with it, by era: (free pages of each type, with a larger block and with none).
#[test]
fn what_comes_along_depends_on_the_era() {
    for (version, from_large, from_small) in [
        // Free pages of the pageblock with blocks of 16 and more, and the rest of the block with them.
        ("v2.6.37", [135, 16, 0], [0, 15, 0]),
        // The rest of smaller blocks, too.
        ("v3.5", [135, 16, 0], [7, 8, 0]),
        // The rest of the block only with its pageblock.
        ("v3.12", [8, 143, 0], [0, 15, 0]),
        // Whatever the size of the block.
        ("v4.0", [135, 16, 0], [15, 0, 0]),
        ("v4.12", [135, 16, 0], [15, 0, 0]),
        ("v6.1", [135, 16, 0], [15, 0, 0]),
        // Only pages of a pageblock that changes its type.
        ("v6.12", [0, 151, 0], [0, 15, 0]),
    ] {
        let small = [(512, 8), (544, 8)];
        let large = [(1024, 128), (1024 + 256, 8)];
        let with = |free: &[(Pfn, u32)]| {
            let mut mm = memory(version, free);
            for pfn in 512..1536 {
                if free
                    .iter()
                    .all(|&(first, n)| pfn < first || pfn >= first + n)
                {
                    mm.pages[pfn].set(flag::LRU);
                }
            }
            take(&mut mm, Unmovable).expect("there is a page");
            assert_eq!(mm.zones[ZoneId::FIRST].pageblocks[1..3], [Movable; 2]);
            free_of(&mm.zones[ZoneId::FIRST])
        };
        assert_eq!(with(&[small, large].concat()), from_large, "{version}");
        assert_eq!(with(&small), from_small, "{version}");
    }
}

/// To 4.11 half a pageblock has to be free; to 4.12 movable pages come from the largest block.
#[test]
fn old_kernels_count_free_pages_alone_and_take_the_largest() {
    for (version, claimed) in [("v2.6.37", false), ("v4.11", false), ("v4.12", true)] {
        let mut mm = memory(version, &[(512, 128)]);
        assert_eq!(take(&mut mm, Reclaimable), Some(512), "{version}");
        let now = mm.zones[ZoneId::FIRST].pageblocks[1];
        assert_eq!(now == Reclaimable, claimed, "{version}");
    }
    for (version, first) in [("v2.6.37", 1024), ("v4.12", 1024), ("v4.13", 512)] {
        let mut mm = memory(version, &[]);
        mm.zones[ZoneId::FIRST].pageblocks[1..3].fill(Unmovable);
        for pfn in (512..514).chain(1024..1024 + 8) {
            mm.free_block(pfn, 0);
        }
        assert_eq!(take(&mut mm, Movable), Some(first), "{version}");
    }
}

/// Two pageblocks are kept to 4.3, and given when nothing else is free; they count for watermarks like all others.
#[test]
fn pageblocks_are_kept_from_booting_on() {
    let kept = |mm: &Mm| {
        let blocks = mm.zones[ZoneId::FIRST].pageblocks.iter();
        blocks.filter(|&&list| list == HighAtomic).count()
    };
    let machine = Machine {
        arch: Arch::Ppc64,
        ..Machine::small(1 << 30, 0)
    };
    for version in ["v2.6.37", "v4.3", "v4.4"] {
        let mut mm = Mm::new(&machine, kernel(version, 15_000));
        // The min watermark of 1 GiB, 1024 pages, fits in a pageblock of 16 MiB.
        let blocks = if version == "v4.4" { 0 } else { 1 };
        assert_eq!(kept(&mm), blocks, "{version}");
        let zone = &mm.zones[ZoneId::FIRST];
        assert_eq!(zone.free_without_reserve(), zone.free, "{version}");
        let mut last = Vec::new();
        while let Some(pfn) = take(&mut mm, Movable) {
            last.push(mm.zones[ZoneId::FIRST].pageblock_type(pfn));
        }
        let of_reserve = last.iter().filter(|&&list| list == HighAtomic).count();
        assert_eq!(of_reserve, 4096 * blocks, "{version}");
        let last = &last[last.len() - 4096 * blocks..];
        assert!(last.iter().all(|&list| list == HighAtomic), "{version}");
    }
}

/// From 4.4 on the pageblock is kept from which a block came that could not be waited for. Other allocations do not count
/// its pages as free, and get it back when they are out of memory.
#[test]
fn pageblocks_are_kept_for_allocations_that_cannot_wait() {
    for (version, keeps) in [
        ("v4.3", false),
        ("v4.4", true),
        ("v6.1", true),
        ("v6.18", false),
    ] {
        let mut mm = memory(version, &[(1024, 512)]);
        let zone = &mut mm.zones[ZoneId::FIRST];
        zone.watermark = [64, 80, 96];
        let atomic = Gfp::kernel(NodeId::FIRST).nowait(Reserves::Atomic);
        let floor = Floor::Min(Reserves::Atomic);
        assert_eq!(mm.get_block(atomic, 4, floor), Some(1024), "{version}");
        // A hundredth of this zone is less than a pageblock.
        let reserved = mm.zones[ZoneId::FIRST].reserved_highatomic;
        assert_eq!(reserved, if keeps { 512 } else { 0 }, "{version}");
        let min = Floor::Min(Reserves::None);
        let user = Gfp::user(NodeId::FIRST);
        assert_eq!(mm.get_block(user, 0, min).is_none(), keeps, "{version}");
        if keeps {
            assert_eq!(mm.get_block(atomic, 4, floor), Some(1040), "{version}");
            assert!(!mm.unreserve_highatomic_pageblock(user, false), "{version}");
            assert!(mm.unreserve_highatomic_pageblock(user, true), "{version}");
            assert!(mm.get_block(user, 0, min).is_some(), "{version}");
        }
    }
}

#[test]
fn reclaimable_blocks_are_preferred_to_unmovable_ones() {
    let mut mm = memory("v6.18", &[]);
    mm.zones[ZoneId::FIRST].pageblocks[1] = Unmovable;
    mm.zones[ZoneId::FIRST].pageblocks[2] = Reclaimable;
    for pfn in 512..1536 {
        mm.free_block(pfn, 0);
    }
    assert_eq!(take(&mut mm, Movable), Some(1024));
    assert_eq!(
        mm.zones[ZoneId::FIRST].pageblocks[1..3],
        [Unmovable, Movable]
    );
}

/// Two pageblocks merge: from 6.10 on both are what was freed last.
#[test]
fn merged_pageblocks_are_of_one_type() {
    for (version, kept) in [("v6.1", Unmovable), ("v6.18", Movable)] {
        let mut mm = memory(version, &[]);
        mm.zones[ZoneId::FIRST].pageblocks[2] = Unmovable;
        mm.free_block(1024, 9);
        mm.free_block(1536, 9);
        assert_eq!(free_of(&mm.zones[ZoneId::FIRST]), [0, 1024, 0], "{version}");
        assert_eq!(
            mm.zones[ZoneId::FIRST].pageblocks[2..4],
            [kept, Movable],
            "{version}"
        );
    }
}

/// `max(pageblock_nr_pages, high * factor / 10000)`, a pageblock at a time.
#[test]
fn boosts_add_up_to_their_limit() {
    let mut mm = memory("v6.18", &[]);
    let zone = &mut mm.zones[ZoneId::FIRST];
    let boosts = |zone: &mut Zone| {
        [(); 4].map(|()| {
            zone.boost_watermark();
            zone.watermark_boost
        })
    };
    assert!(zone.watermark[2] < 342, "{:?}", zone.watermark);
    assert_eq!(boosts(zone), [512; 4]);
    zone.watermark_boost = 0;
    zone.boost_max = 900 * 15_000 / 10_000;
    assert_eq!(boosts(zone), [512, 1024, 1350, 1350]);
    zone.watermark_boost = 0;
    zone.boost_max = 0;
    assert_eq!(boosts(zone), [0; 4]);
}

/// ZONE_DMA of a PC as guests with 256 MB find it (`/proc/pagetypeinfo` of 6.1 and 6.18): the first pageblock is
/// unmovable, the first megabyte is not managed, 32 pages are a pool for devices.
#[test]
fn zone_dma_begins_with_an_unmovable_pageblock() {
    let zone = |kind, present, managed| ZoneSpec::new(0, kind, present, managed);
    for version in ["v6.1", "v6.18"] {
        let machine = Machine {
            zones: vec![
                zone(ZoneKind::Dma, 3_998, 3_840),
                zone(ZoneKind::Dma32, 61_405, 50_246),
            ],
            occupied: 6_288 * PAGE_SIZE,
            ..Machine::small(256 << 20, 0)
        };
        let mm = Mm::new(&machine, kernel(version, 15_000));
        let dma = &mm.zones[ZoneId::FIRST];
        let blocks = |list: MigrateType| -> Vec<u64> {
            let areas = dma.free_area[list as usize].iter();
            areas.map(FreeList::len).collect()
        };
        assert_eq!(blocks(Unmovable), [0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0]);
        assert_eq!(blocks(Movable), [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0]);
        let of = |zone: &Zone, list| zone.pageblocks.iter().filter(|&&t| t == list).count();
        assert_eq!([Unmovable, Movable].map(|list| of(dma, list)), [1, 7]);
        // 14, 104 and 2 in 6.18; 12, 102 and 6 in 6.1.
        let types =
            [Unmovable, Movable, Reclaimable].map(|list| of(&mm.zones[ZoneId::from(1)], list));
        assert_eq!(types.iter().sum::<usize>(), 120);
        assert!((10..=14).contains(&types[0]) && types[2] == 2, "{types:?}");
    }
}

/// The free blocks, by type, are those of ZONE_DMA32 in a guest of 6.18 with 256 MB before a workload.
#[test]
fn free_blocks_lie_between_pages_in_use() {
    let movable = [3, 2, 2, 2, 0, 2, 2, 3, 1, 0];
    let of_type = |count, free| Pageblocks { count, free };
    let whole = ZoneSpec {
        movable: of_type(0, movable),
        reclaimable: of_type(2, [1, 0, 1, 1, 0, 0, 0, 0, 0, 0]),
        ..ZoneSpec::new(0, ZoneKind::Dma32, 61_405, 50_246)
    };
    let movable_alone = ZoneSpec {
        reclaimable: Pageblocks::default(),
        ..whole
    };
    for version in ["v6.1", "v6.18"] {
        let memory = |zone: ZoneSpec, occupied: u64| {
            let machine = Machine {
                zones: vec![zone],
                occupied: occupied * PAGE_SIZE,
                ..Machine::small(256 << 20, 0)
            };
            Mm::new(&machine, kernel(version, 15_000))
        };
        let free = |mm: &Mm, list: MigrateType| -> Vec<u64> {
            let areas = mm.zones[ZoneId::FIRST].free_area[list as usize].iter();
            areas.map(FreeList::len).take(9).collect()
        };
        let blocks_of = |mm: &Mm, list| {
            let types = mm.zones[ZoneId::FIRST].pageblocks.iter();
            types.filter(|&&of| of == list).count()
        };
        let mm = memory(movable_alone, 6_285);
        // The ends of the zone leave one of an order of which there are to be none.
        let found = free(&mm, Movable);
        let mut pairs = found.iter().zip(movable);
        assert!(
            pairs.all(|(&found, given)| found == given || given == 0 && found == 1),
            "{version}: {found:?}"
        );
        assert_eq!(mm.zones[ZoneId::FIRST].free, 50_246 - 6_285, "{version}");

        let mm = memory(whole, 6_285);
        assert_eq!(
            free(&mm, Reclaimable),
            whole.reclaimable.free[..9],
            "{version}"
        );
        assert_eq!(blocks_of(&mm, Reclaimable) as u64, 2, "{version}");
        assert_eq!(mm.zones[ZoneId::FIRST].free, 50_246 - 6_285, "{version}");

        // There cannot be more between pages than there are pages in use.
        for zone in [movable_alone, whole] {
            let mm = memory(zone, 100);
            assert_eq!(mm.zones[ZoneId::FIRST].free, 50_246 - 100, "{version}");
        }
    }
}

/// A page that is about to be written to comes from a zone, from 4.8 on from a node, of which no more than a fifth is
/// dirty; nothing else cares.
#[test]
fn pages_to_be_written_come_from_where_little_is_dirty() {
    let zone_of_page = |version: &str, gfp: Gfp| {
        let mut world = World::of_version(version);
        let (dma, dma32) = (ZoneId::FIRST, ZoneId::from(1));
        world.mm.zones[dma32].dirty = world.mm.zones[dma32].managed / 2;
        let pfn = world.alloc_page_fast(gfp)?;
        Some(match world.mm.pages.zone(pfn) {
            zone if zone == dma => "DMA",
            _ => "DMA32",
        })
    };
    let any = Gfp::user(NodeId::FIRST);
    let written = any.with(gfp::WRITE);
    for version in ["v3.2", "v3.3", "v4.7", "v4.8", "v6.18"] {
        assert_eq!(zone_of_page(version, any), Some("DMA32"), "{version}");
    }
    assert_eq!(zone_of_page("v3.2", written), Some("DMA32"));
    assert_eq!(zone_of_page("v3.3", written), Some("DMA"));
    assert_eq!(zone_of_page("v4.7", written), Some("DMA"));
    // The slow path gives one.
    assert_eq!(zone_of_page("v4.8", written), None);
    assert_eq!(zone_of_page("v6.18", written), None);
}
