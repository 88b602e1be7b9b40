use super::ageing::{Ages, ages};
use super::*;
use crate::ids::LruvecId;
use crate::kernel::GenAgeing;
use crate::mm::alloc::mmzone::lru_gen::Generations;
use crate::mm::reclaim::vmscan::ScanControl;
use crate::mm::types::{Pfn, ZoneType, flag};
use crate::world::World;

/// Anonymous pages from the oldest generation to the youngest, and whether a new one is due, is needed at once, and of how many
/// pages.
fn due(rule: GenAgeing, sizes: &[u64]) -> (bool, bool, u64) {
    let rules = crate::kernel::Kernel::named("v6.12").mechanisms.lru_gen;
    let gens = Generations::of_sizes(rules, sizes);
    let Ages { due, stuck, all } = ages(&gens, true, rule);
    (due, stuck, all)
}

/// Worked out by hand from `should_run_aging`.
#[test]
fn a_new_generation_is_due_when_old_pages_are_few() {
    for (rule, sizes, expected) in [
        // 4 * 20,000 < 100,000.
        (
            GenAgeing::Spread,
            &[20_000, 30_000, 50_000][..],
            (true, false),
        ),
        // Neither 4 * 25,000 < 100,000 nor 2 * 45,000 > 100,000.
        (GenAgeing::Spread, &[25_000, 30_000, 45_000], (false, false)),
        // 2 * 51,000 > 100,000.
        (GenAgeing::Spread, &[26_000, 23_000, 51_000], (true, false)),
        (GenAgeing::Spread, &[0, 0, 0, 100_000], (false, false)),
        (GenAgeing::Spread, &[50_000, 50_000], (true, true)),
        (GenAgeing::Count, &[25_000, 30_000, 45_000], (true, false)),
        (GenAgeing::Count, &[0, 0, 0, 100_000], (false, false)),
        (GenAgeing::Count, &[50_000, 50_000], (true, true)),
    ] {
        let (due, stuck, pages) = due(rule, sizes);
        assert_eq!(
            (due, stuck, pages),
            (expected.0, expected.1, 100_000),
            "{sizes:?}"
        );
    }
}

/// Puts pages on the lists, as many as there are free ones below `most`.
fn inactive_file_pages(world: &mut World, most: u64) {
    let gfp = crate::mm::types::Gfp::user(crate::ids::NodeId::FIRST);
    for _ in 0..most {
        let pfn = world.alloc_page_fast(gfp).expect("most of memory is free");
        world.mm.lru_add(pfn);
    }
}

/// kswapd begins where a share of the pages is what it wants: log2 of inactive pages less log2 of the target less one.
#[test]
fn kswapd_begins_at_the_priority_that_it_will_need() {
    for (version, inactive, target, expected) in [
        // 8,191 has 13 bits and 1,023 has 10: 13 - 1 - 10 = 2.
        ("v6.6,lru_gen.enabled=7", 8191, 1024, 2),
        ("v6.12,lru_gen.enabled=7", 8191, 1024, 6),
        // 13 - 1 - 7 for 128 pages, and 13 - 1 - 6 for 64.
        ("v6.6,lru_gen.enabled=7", 8191, 128, 5),
        ("v6.6,lru_gen.enabled=7", 8191, 64, 6),
        // A direct reclaimer wants fewer.
        ("v6.6,lru_gen.enabled=7", 8191, 32, 12),
        ("v6.1,lru_gen.enabled=7", 8191, 1024, 12),
    ] {
        let mut world = world(version);
        inactive_file_pages(&mut world, inactive);
        let target_lists = target_of(&world);
        let mut sc = ScanControl::new(true, target, 0, ZoneType::High);
        world.mm.set_initial_priority(target_lists, &mut sc);
        assert_eq!(sc.priority, expected, "{version} {target}");
    }
}

fn world(kernel: &str) -> World {
    let machine = lowmark_spec::Machine::small(64 << 20, 64 << 20);
    World::new(
        &machine,
        crate::kernel::Kernel::named(kernel),
        crate::trace::Trace::new(None),
    )
}

fn target_of(world: &World) -> Target {
    Target {
        lruvec: LruvecId::from(0),
        zone: world.mm.nodes[crate::ids::NodeId::FIRST].zonelist[0],
    }
}

/// The generations of pages of a region after a walk, counted from the youngest: every fourth of 256 was used since the last one,
/// or two of the 512 in the next table.
#[test]
fn a_walk_makes_used_pages_young_and_passes_over_tables_with_few() {
    for (kernel, looks) in [
        ("v6.12,lru_gen.enabled=7", 1),
        ("v6.18,lru_gen.enabled=7", 2),
    ] {
        let mut world = world(kernel);
        world.map_private(1024);
        let lists = LruvecId::from(0);
        let youngest = |world: &World, index: u32| {
            let pte = world.mm.vmas[0].ptes[index as usize];
            let pfn: Pfn = pte.frame().expect("it is there");
            let gens = world.mm.lruvecs[lists].generations().expect("they are on");
            gens.is_youngest(&world.mm.pages, pfn)
        };
        // Everything was used, and all tables are looked at.
        assert_eq!(world.mm.walk_page_tables(lists, true), Some(1024));
        assert_eq!(youngest(&world, 7), looks == 1, "{kernel}");
        let age = |world: &mut World| {
            let mm = &mut world.mm;
            mm.lruvecs[lists].age(&mut mm.chunks, &mut mm.pages, true);
        };
        let touch = |world: &mut World, indexes: &[u32]| {
            for &index in indexes {
                world.mm.vmas[0].ptes[index as usize].touch(false);
            }
        };
        age(&mut world);
        assert_eq!(
            world.mm.walk_page_tables(lists, true),
            Some(0),
            "no entry is young"
        );
        age(&mut world);
        // Both tables were full of young entries in the first walk, none of them in the second.
        let used: Vec<u32> = (0..256).step_by(4).collect();
        touch(&mut world, &used);
        touch(&mut world, &[600, 601]);
        assert_eq!(world.mm.walk_page_tables(lists, true), Some(0), "{kernel}");
        assert!(!youngest(&world, 4), "{kernel}");
        // A look around one of them says that its table is worth a walk.
        let pte = world.mm.vmas[0].ptes[8];
        let pfn = pte.frame().expect("it is there");
        world.mm.lru_del(pfn);
        let references = world.mm.referenced_around(pfn, true);
        assert_eq!(references.young, 1);
        assert!(youngest(&world, 12), "{kernel}");
        assert!(!youngest(&world, 200), "{kernel}: beyond 64 entries");
        world.mm.lru_add(pfn);
        assert_eq!(
            world.mm.walk_page_tables(lists, true),
            Some(512),
            "{kernel}"
        );
        assert!(youngest(&world, 200) && !youngest(&world, 600), "{kernel}");
    }
}

/// Who isolated a page sees how an entry beside it is treated that is isolated as well: to 6.13 it loses its young bit.
#[test]
fn entries_of_isolated_pages_are_left_alone_from_6_14_on() {
    for (kernel, stays) in [
        ("v6.12,lru_gen.enabled=7", false),
        ("v6.18,lru_gen.enabled=7", true),
    ] {
        let mut world = world(kernel);
        world.map_private(8);
        let frames =
            [0, 1].map(|index: usize| world.mm.vmas[0].ptes[index].frame().expect("there"));
        for pfn in frames {
            world.mm.lru_del(pfn);
            world.mm.pages[pfn].clear(flag::ACTIVE);
        }
        assert_eq!(world.mm.referenced_around(frames[0], true).young, 1);
        assert!(!world.mm.vmas[0].ptes[0].is_young());
        assert_eq!(world.mm.vmas[0].ptes[1].is_young(), stays, "{kernel}");
        assert_eq!(
            world.mm.pages[frames[1]].has(flag::REFERENCED),
            !stays,
            "{kernel}"
        );
    }
}
