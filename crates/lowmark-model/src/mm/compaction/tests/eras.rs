//! What an allocation of a block does in each era, worked by hand: in which order it compacts and reclaims, what counts, and when
//! compaction is put off.
//!
//! The memory is that of [`fragmented`], three quarters of it free. Where a page of each pageblock is being written, compaction
//! cannot make a pageblock free, and nothing ever ends the writes.

use super::{fragment, fragmented, frames};
use crate::ids::{NodeId, ZoneId};
use crate::invariants;
use crate::kernel::{Kernel, v};
use crate::mm::alloc::page_alloc::alloc_pages;
use crate::mm::compaction::Suitable;
use crate::mm::reclaim::vmscan::MAX_KSWAPD_FAILURES;
use crate::mm::types::{
    Gfp, MAX_NR_ZONES, MigrateType, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, ZoneType, flag,
};
use crate::time::run_until_idle;
use crate::trace::Trace;
use crate::world::{Sys, World};
use lowmark_record::event::gfp;
use lowmark_spec::Machine;
use lowmark_spec::machine::Node;
use std::cell::Cell;
use std::rc::Rc;

/// What a fault wants a huge page with where it may reclaim (`GFP_TRANSHUGE` of 2.6.38 to 4.5).
const HUGE_FAULT: u64 = gfp::TRANSHUGE_LIGHT | gfp::NORETRY | gfp::DIRECT_RECLAIM;
/// What a test of huge allocations wants them with.
pub(super) const STRESS: u64 = gfp::HIGHUSER_MOVABLE | gfp::NOWARN;

/// Fragmented memory of which the third page in use of every pageblock is being written. Zones below have nothing.
fn stuck(version: &str) -> (World, ZoneId) {
    let (mut world, zone) = fragmented(version);
    let used = frames(&world);
    let block = |at: usize| used[at].1 >> PAGEBLOCK_ORDER;
    for (at, &(_, pfn)) in used.iter().enumerate().skip(2) {
        if block(at) == block(at - 2) && (at < 3 || block(at) != block(at - 3)) {
            world.mm.pages[pfn].set(flag::WRITEBACK);
        }
    }
    empty_others(&mut world, zone);
    (world, zone)
}

pub(super) fn empty_others(world: &mut World, zone: ZoneId) {
    for other in world.mm.zones.keys().filter(|&other| other != zone) {
        let other = &mut world.mm.zones[other];
        while other
            .take(&mut world.mm.pages, MigrateType::Unmovable)
            .is_some()
        {}
    }
}

/// The mask that has these flags and no others, on the first node.
fn mask(flags: u64) -> Gfp {
    let gfp = Gfp::of(NodeId::FIRST, 0).with(flags);
    assert_eq!(gfp.flags(), flags);
    gfp
}

/// What a task that wants one block after the other gets, by its flags; none of one that it still waits for.
pub(super) fn asked(world: World, order: usize, masks: &[u64]) -> (Rc<Sys>, Vec<Option<bool>>) {
    let sys = Sys::new(world);
    let found: Rc<Vec<Cell<Option<bool>>>> = Rc::new(vec![Cell::new(None); masks.len()]);
    let (task, result, masks) = (Rc::clone(&sys), Rc::clone(&found), masks.to_vec());
    let body = Box::pin(async move {
        for (flags, cell) in masks.into_iter().zip(result.iter()) {
            cell.set(Some(alloc_pages(&task, mask(flags), order).await.is_ok()));
        }
    });
    sys.world().spawn("task".into(), false, body);
    run_until_idle(&sys, &mut |_| {});
    let found = found.iter().map(Cell::get).collect();
    (sys, found)
}

/// (compact_stall, compact_success, compact_fail, direct reclaims).
fn counts(sys: &Sys) -> [u64; 4] {
    let stat = &sys.world().mm.stat;
    let direct = stat.allocstall.iter().sum();
    [
        stat.compact_stall,
        stat.compact_success,
        stat.compact_fail,
        direct,
    ]
}

/// A fault that wants a huge page and gets none, of 4.4: compaction without waiting, a direct reclaim that leaves it to
/// compaction, and compaction without waiting again. Both stalls fail, and nothing is ever put off by that.
#[test]
fn a_failed_fault_of_4_4_compacts_twice() {
    for version in ["v3.18", "v4.4", "v4.5", "v4.6", "v4.7"] {
        let (world, zone) = stuck(version);
        let (sys, found) = asked(world, PAGEBLOCK_ORDER, &[HUGE_FAULT; 3]);
        assert_eq!(found, [Some(false); 3], "{version}");
        assert_eq!(counts(&sys), [6, 0, 6, 3], "{version}");
        let world = sys.world();
        assert_eq!(world.mm.zones[zone].compaction.defer_shift, 0, "{version}");
        // Compaction has room, so that nothing was reclaimed; and kswapd was not woken.
        assert_eq!(world.mm.stat.pgsteal_direct.iter().sum::<u64>(), 0);
        assert_eq!(world.mm.nodes[NodeId::FIRST].kswapd.order, 0);
    }
}

/// The same for who lets kswapd be woken, of 4.4: the second compaction waits, goes through the zone in vain, and is put off. By
/// hand: (shift, considered) after each attempt, where direct reclaim asks once, too.
///
/// 1. Compaction 1 runs, fails; reclaim asks: 1 of 1; compaction 2 runs, fails: shift 1.
/// 2. 1 of 2: put off; reclaim: 2 of 2; compaction 2 runs, fails: shift 2.
/// 3. 1 of 4, reclaim 2 of 4, 3 of 4: put off.
/// 4. 4 of 4: runs, fails; reclaim: 4 of 4; runs, fails: shift 3.
#[test]
fn an_attempt_that_waits_puts_compaction_off() {
    let after = [(2, 1), (3, 2), (3, 2), (5, 3)];
    for (attempts, (stalls, shift)) in (1..).zip(after) {
        let (world, zone) = stuck("v4.4");
        let (sys, _) = asked(world, PAGEBLOCK_ORDER, &vec![STRESS; attempts]);
        let direct = attempts as u64;
        assert_eq!(counts(&sys), [stalls, 0, stalls, direct], "{attempts}");
        let world = sys.world();
        assert_eq!(world.mm.zones[zone].compaction.defer_shift, shift);
        // The flags say that kswapd is to be told.
        assert_eq!(world.mm.nodes[NodeId::FIRST].kswapd.order, 9);
    }
}

/// 2.6.36 and 2.6.37 compact once for a huge page, wait for what is being written, and put compaction off after any failure;
/// for 8 pages they do not compact.
#[test]
fn one_compaction_to_2_6_37() {
    for version in ["v2.6.36", "v2.6.37"] {
        let (world, _) = fragmented(version);
        let (sys, found) = asked(world, 3, &[STRESS]);
        assert_eq!(found.len(), 1, "{version}");
        assert_eq!(counts(&sys)[0], 0, "{version}");
        // It never ends.
        let (world, _) = stuck(version);
        let (sys, found) = asked(world, PAGEBLOCK_ORDER, &[STRESS]);
        assert_eq!(
            (found, counts(&sys)),
            (vec![None], [0, 0, 0, 0]),
            "{version}"
        );
        // Nothing is in the way, and the second attempt finds the block that the first has made of another zone's pages.
        let (mut world, zone) = fragmented(version);
        empty_others(&mut world, zone);
        let (sys, found) = asked(world, PAGEBLOCK_ORDER, &[STRESS]);
        assert_eq!(
            (found, counts(&sys)),
            (vec![Some(true)], [1, 1, 0, 0]),
            "{version}"
        );
        assert!(sys.world().mm.stat.compact_blocks_moved > 0);
        invariants::check(&sys.world());
    }
}

/// To 3.2 who may wait waits for pages that are being written, from 2.6.38 on only after the reclaim; from 3.3 on nobody does.
#[test]
fn writes_are_waited_for_to_3_2() {
    for (version, ends, stalls) in [
        ("v2.6.38", false, 1),
        ("v3.2", false, 1),
        ("v3.3", true, 2),
        ("v3.14", true, 2),
    ] {
        let (world, _) = stuck(version);
        let (sys, found) = asked(world, PAGEBLOCK_ORDER, &[HUGE_FAULT]);
        assert_eq!(found, [ends.then_some(false)], "{version}");
        assert_eq!(counts(&sys)[2..], [stalls, 1], "{version}");
    }
}

/// Where compaction is put off: who wakes no kswapd fails without reclaim from 3.3 on; from 3.16 to 4.7 a huge page of a fault does,
/// from 4.8 on who does not try again.
#[test]
fn who_is_light_gives_up_where_compaction_is_put_off() {
    let light = gfp::HIGHUSER_MOVABLE & !gfp::KSWAPD_RECLAIM;
    for (version, masks, direct) in [
        ("v3.2", [light, STRESS, HUGE_FAULT], [1, 1, 1]),
        ("v3.3", [light, STRESS, HUGE_FAULT], [0, 1, 0]),
        ("v3.16", [light, STRESS, HUGE_FAULT], [1, 1, 0]),
        ("v4.4", [light, STRESS, HUGE_FAULT], [1, 1, 0]),
        ("v4.8", [light, STRESS, HUGE_FAULT], [1, 1, 0]),
        (
            "v6.1",
            [light, STRESS | gfp::NORETRY, HUGE_FAULT],
            [1, 0, 0],
        ),
    ] {
        for (flags, direct) in masks.into_iter().zip(direct) {
            let (mut world, zone) = fragmented(version);
            empty_others(&mut world, zone);
            for at in world.mm.zones.keys() {
                for _ in 0..5 {
                    world.mm.zones[at].defer_compaction(PAGEBLOCK_ORDER);
                }
            }
            let (sys, _) = asked(world, PAGEBLOCK_ORDER, &[flags]);
            assert_eq!(counts(&sys)[3], direct, "{version} {flags:#x}");
        }
    }
}

/// Where compaction lacks room a huge page that is not worth trying again is reclaimed for to 5.3, and from 4.0 to 4.11 twice, as
/// nothing is freed. The attempts count as stalls to 3.17.
#[test]
fn reclaim_for_want_of_room_ends_with_5_4() {
    for (version, stalls, direct) in [
        ("v3.14", 2, 1),
        ("v3.18", 0, 1),
        ("v4.4", 0, 2),
        ("v4.19", 0, 1),
        ("v5.3", 0, 1),
        ("v5.4", 0, 0),
        ("v5.5", 0, 0),
        ("v6.18", 0, 0),
    ] {
        let (mut world, zone) = fragmented(version);
        empty_others(&mut world, zone);
        for zone in &mut world.mm.zones {
            zone.watermark = [20_000; 3];
        }
        // Nobody waits for kswapd, which there is none of.
        world.mm.nodes[NodeId::FIRST].kswapd.failures = MAX_KSWAPD_FAILURES;
        let (sys, found) = asked(world, PAGEBLOCK_ORDER, &[HUGE_FAULT]);
        assert_eq!(found, [Some(false)], "{version}");
        assert_eq!(counts(&sys), [stalls, 0, 0, direct], "{version}");
    }
}

/// An allocation without `__GFP_DIRECT_RECLAIM` goes down to the min watermark and no further, and wakes kswapd only if it is to.
#[test]
fn who_cannot_wait_does_without() {
    for version in ["v3.3", "v4.4", "v4.6", "v6.18"] {
        for flags in [
            gfp::TRANSHUGE_LIGHT,
            gfp::TRANSHUGE_LIGHT | gfp::KSWAPD_RECLAIM,
        ] {
            let (world, _) = stuck(version);
            let (sys, found) = asked(world, PAGEBLOCK_ORDER, &[flags]);
            assert_eq!(found, [Some(false)], "{version}");
            assert_eq!(counts(&sys), [0; 4], "{version}");
            let told = sys.world().mm.nodes[NodeId::FIRST].kswapd.order;
            let wakes = flags & gfp::KSWAPD_RECLAIM != 0;
            assert_eq!(told, if wakes { 9 } else { 0 }, "{version}");
        }
    }
}

/// Room, a block and fragmentation, by era: free pages, of which `blocks` pageblocks are whole and the rest single; then what the
/// zone is found to be at order 9, with a low watermark of 1000.
#[test]
fn suitability_by_era() {
    use Suitable::{Fragmented, HasBlock, Short};
    for (singles, blocks, expected) in [
        // Low + 1024 are not there.
        (1500, 0, [Short; 3]),
        (2100, 0, [Fragmented; 3]),
        // One block: to 3.18 low + 1024 beside it are asked for; from 4.9 on min, 100, is enough.
        (1200, 1, [Short, HasBlock, HasBlock]),
        (400, 1, [Short, Short, HasBlock]),
        // To 4.3 single pages do not count for a block: one is not enough, three are.
        (3000, 1, [Fragmented, HasBlock, HasBlock]),
        (3000, 3, [HasBlock; 3]),
    ] {
        for (version, expected) in ["v3.18", "v4.4", "v4.9"].into_iter().zip(expected) {
            let (mut world, zone) = emptied(version);
            let first = world.mm.zones[zone]
                .first_managed
                .next_multiple_of(PAGEBLOCK_PAGES);
            for block in 0..blocks {
                world
                    .mm
                    .free_block(first + block * PAGEBLOCK_PAGES, PAGEBLOCK_ORDER);
            }
            let single = |at: u32| first + blocks * PAGEBLOCK_PAGES + 2 * at;
            (0..singles).for_each(|at| world.mm.free_block(single(at), 0));
            let state = &mut world.mm.zones[zone];
            state.watermark = [100, 1000, 1000];
            state.lowmem_reserve = [0; MAX_NR_ZONES];
            let state = &world.mm.zones[zone];
            let found = world
                .mm
                .compaction_suitable(state, PAGEBLOCK_ORDER, ZoneType::High);
            assert_eq!(found, expected, "{version}: {singles} and {blocks} blocks");
        }
    }
}

/// The largest zone with all of its pages in use, in movable pageblocks.
fn emptied(version: &str) -> (World, ZoneId) {
    let mut world = World::of_version(version);
    world.mm.drain_all_pages();
    let zone = world.mm.nodes[NodeId::FIRST].zonelist[0];
    let state = &mut world.mm.zones[zone];
    while state
        .take(&mut world.mm.pages, MigrateType::Movable)
        .is_some()
    {}
    state.pageblocks.fill(MigrateType::Movable);
    (world, zone)
}

/// A block that becomes free while a task captures goes to the task, of its order only, and is counted nowhere.
#[test]
fn a_block_is_captured() {
    use crate::mm::alloc::mmzone::Capture;
    for (list, order, taken) in [
        (MigrateType::Movable, 4, true),
        (MigrateType::Unmovable, 4, false),
        (MigrateType::Unmovable, PAGEBLOCK_ORDER, true),
    ] {
        let (mut world, zone) = emptied("v6.18");
        let first = world.mm.zones[zone]
            .first_managed
            .next_multiple_of(PAGEBLOCK_PAGES);
        let free = world.mm.zones[zone].free;
        let page = None;
        world.mm.zones[zone].compaction.capture = Some(Capture { order, list, page });
        (0..1 << order).for_each(|at| world.mm.free_block(first + at, 0));
        let state = &mut world.mm.zones[zone];
        let captured = state
            .compaction
            .capture
            .take()
            .and_then(|capture| capture.page);
        assert_eq!(captured, taken.then_some(first), "{list:?} {order}");
        let left = if taken { 0 } else { 1 << order };
        assert_eq!(state.free - free, left, "{list:?} {order}");
    }
}

/// From 5.1 on the block that a task has compacted for never is on the lists of free blocks.
#[test]
fn who_compacts_gets_the_block() {
    for (version, taken_from_lists) in [("v5.0", 512), ("v5.1", 0), ("v6.18", 0)] {
        let (mut world, zone) = roomy(version);
        empty_others(&mut world, zone);
        let before: u64 = world.mm.stat.pgalloc.iter().sum();
        let (sys, found) = asked(world, PAGEBLOCK_ORDER, &[HUGE_FAULT]);
        assert_eq!(found, [Some(true)], "{version}");
        assert_eq!(counts(&sys)[..3], [1, 1, 0], "{version}");
        let world = sys.world();
        let taken = world.mm.stat.pgalloc.iter().sum::<u64>() - before;
        assert_eq!(taken, taken_from_lists, "{version}");
    }
}

/// Fragmented memory of a machine whose CPU keeps all of a pageblock's 128 pages to itself when they have moved. From 4.7 to 5.0 a
/// pass that may not wait looks at a pageblock several times, and gives it up where the freed pages have merged with the next free
/// one: that is then within a free block, which only its first frame shows.
fn roomy(version: &str) -> (World, ZoneId) {
    let kernel = Kernel::named(version);
    let machine = Machine::small(512 << 20, 64 << 20);
    fragment(World::new(&machine, kernel, Trace::new(None)))
}

/// Every kernel makes a huge page of fragmented memory, loses no page and makes none.
#[test]
fn every_era_makes_a_block() {
    for version in crate::kernel::versions() {
        let several_looks = (v(4, 7)..=v(5, 0)).contains(version);
        let version = version.to_string();
        let (mut world, zone) = if several_looks {
            roomy(&version)
        } else {
            fragmented(&version)
        };
        empty_others(&mut world, zone);
        let pages = frames(&world).len();
        let free = world.mm.zones[zone].free;
        let (sys, found) = asked(world, PAGEBLOCK_ORDER, &[STRESS]);
        assert_eq!(found, [Some(true)], "{version}");
        assert_eq!(counts(&sys), [1, 1, 0, 0], "{version}");
        let world = &mut *sys.world();
        world.mm.drain_all_pages();
        assert_eq!(frames(world).len(), pages, "{version}");
        assert_eq!(world.mm.zones[zone].free, free - 512, "{version}");
        assert!(world.mm.stat.pgmigrate_success > 0, "{version}");
        invariants::check(world);
    }
}

/// A pass whose allocation belongs in movable pageblocks has what it wants when there is a movable block. An unmovable one of 4
/// pages is content with a movable block of 4 pages from 4.1 on: it could claim the pageblock.
#[test]
fn what_ends_a_pass_by_era() {
    use super::super::control::{Asked, CompactControl, Goal, Mode};
    for (version, order, expected) in [
        ("v3.14", 2, [true, false]),
        ("v3.14", PAGEBLOCK_ORDER, [true, true]),
        ("v4.4", 2, [true, true]),
        ("v4.19", 2, [true, true]),
    ] {
        for (list, ends) in [MigrateType::Movable, MigrateType::Unmovable]
            .into_iter()
            .zip(expected)
        {
            let (mut world, zone) = emptied(version);
            let first = world.mm.zones[zone]
                .first_managed
                .next_multiple_of(PAGEBLOCK_PAGES);
            let blocks = 3;
            let second = first + 2 * blocks * PAGEBLOCK_PAGES;
            (0..blocks).for_each(|at| world.mm.free_block(first + ((2 * at) << order), order));
            let asked = Asked {
                goal: Goal::Block(order),
                mode: Mode::SyncLight,
                class: ZoneType::High,
                list,
            };
            let rules = world.mm.kernel.mechanisms.blocks;
            let state = &mut world.mm.zones[zone];
            state.lowmem_reserve = [0; MAX_NR_ZONES];
            state.watermark = [0; 3];
            let cc = CompactControl::new(state, zone, asked, rules);
            (0..600).for_each(|at| world.mm.free_block(second + 2 * at, 0));
            let state = &world.mm.zones[zone];
            assert_eq!(
                state.compacted(&cc, order),
                ends,
                "{version} {order} {list:?}"
            );
        }
    }
}

/// A folio at the beginning of the zone stays to 6.8. From 6.9 on it moves: as it is if there is a free block for it, which there
/// is for 2 pages, as every fourth page is in use, and else page by page.
#[test]
fn folios_move_from_6_9() {
    for (version, order, moves) in [
        ("v6.8", 1, false),
        ("v6.9", 1, true),
        ("v6.18", 1, true),
        ("v6.8", 2, false),
        ("v6.18", 2, true),
    ] {
        let (mut world, zone) = fragmented(version);
        empty_others(&mut world, zone);
        let head = make_folio(&mut world, order);
        let pages = 1 << order;
        let (sys, found) = asked(world, PAGEBLOCK_ORDER, &[STRESS]);
        assert_eq!(found, [Some(true)], "{version}");
        let world = &mut *sys.world();
        let place = |at: usize| world.mm.vmas[0].ptes[at].frame().expect("it is mapped");
        let first = place(0);
        assert_eq!(first != head, moves, "{version} {order}");
        let whole = order == 1 || !moves;
        let together = (0..pages).all(|at| place(at) == first + at as Pfn);
        assert_eq!(together, whole, "{version} {order}");
        let folio = &world.mm.pages[first];
        assert_eq!(folio.order(), if whole { order } else { 0 }, "{version}");
        assert!(folio.has(flag::LRU | flag::ANON), "{version}");
        invariants::check(world);
    }
}

/// Makes the first pages of the region a folio, at the first place for one.
fn make_folio(world: &mut World, order: usize) -> Pfn {
    let pages: Pfn = 1 << order;
    let used = frames(world);
    let lowest = used.iter().map(|&(_, pfn)| pfn).min().expect("some");
    let head = lowest & !(PAGEBLOCK_PAGES - 1);
    let inside: Vec<usize> = (used
        .iter()
        .filter(|(_, pfn)| (head..head + pages).contains(pfn)))
    .map(|&(index, _)| index)
    .collect();
    for index in inside.into_iter().chain(0..pages as usize) {
        if let Some(pfn) = world.mm.vmas[0].ptes[index].frame() {
            world.mm.vmas[0].ptes[index] = Default::default();
            world.mm.pages[pfn].mapcount = 0;
            world.mm.release_page(pfn);
        }
    }
    world.mm.drain_all_pages();
    let zone = world.mm.pages.zone(head);
    // The block that the frames are a part of.
    let areas = &world.mm.zones[zone].free_area[MigrateType::Movable as usize];
    let (start, large) = (0..areas.len())
        .find_map(|large| {
            let start = head & !((1 << large) - 1);
            world.mm.pages[start]
                .is_free_block(large)
                .then_some((start, large))
        })
        .expect("it is free");
    let area = &mut world.mm.zones[zone].free_area[MigrateType::Movable as usize][large];
    area.remove(&mut world.mm.pages, start);
    world.mm.zones[zone].free -= 1 << large;
    for pfn in (start..start + (1 << large)).filter(|pfn| !(head..head + pages).contains(pfn)) {
        world.mm.free_block(pfn, 0);
    }
    world.mm.pages.make_folio(head, order);
    for at in 0..pages {
        world.mm.map_anon(0, at, head + at, true, true);
    }
    world.mm.pages[head].set(flag::SWAPBACKED);
    world.mm.lru_add(head);
    head
}

/// A machine with two nodes, the first of which has no block free: what an allocation of a huge page from that node alone comes to, by
/// its flags: direct reclaims, and the order that the kswapd of the node is told.
#[test]
fn an_allocation_from_one_node() {
    let light = gfp::TRANSHUGE_LIGHT | gfp::THISNODE;
    let (wakes, waits) = (light | gfp::KSWAPD_RECLAIM, light | gfp::DIRECT_RECLAIM);
    let gives_up = waits | gfp::NORETRY;
    for (version, flags, direct, told) in [
        // GFP_THISNODE gives up, whatever else it may do.
        ("v3.14", gives_up, 0, 0),
        ("v3.14", waits, 1, 0),
        ("v4.0", gives_up, 0, 0),
        ("v4.1", gives_up, 1, 0),
        ("v4.4", gives_up, 1, 0),
        // To 4.5 one that cannot wait wakes nobody.
        ("v4.4", wakes, 0, 0),
        ("v4.5", wakes, 0, 0),
        ("v4.6", wakes, 0, 9),
        ("v4.6", light, 0, 0),
        ("v6.18", wakes, 0, 9),
    ] {
        let world = || {
            let kernel = Kernel::named(version);
            let mut machine = Machine::small(64 << 20, 64 << 20);
            machine.nodes.push(Node { ram: 48 << 20 });
            let mut world = World::new(&machine, kernel, Trace::new(None));
            world.mm.drain_all_pages();
            for at in world.mm.nodes[NodeId::FIRST].zones.clone() {
                let mut used: Vec<Pfn> = Vec::new();
                let state = &mut world.mm.zones[at];
                while let Some(pfn) = state.take(&mut world.mm.pages, MigrateType::Movable) {
                    used.push(pfn);
                }
                used.sort_unstable();
                let every_second = used.iter().step_by(2);
                every_second.for_each(|&pfn| world.mm.free_block(pfn, 0));
            }
            world
        };
        let (sys, found) = asked(world(), PAGEBLOCK_ORDER, &[flags]);
        assert_eq!(found, [Some(false)], "{version}");
        assert_eq!(counts(&sys)[3], direct, "{version} {flags:#x}");
        let world_after = sys.world();
        let orders = world_after.mm.nodes.iter().map(|node| node.kswapd.order);
        let orders: Vec<u32> = orders.collect();
        assert_eq!(orders, [told, 0], "{version} {flags:#x}");
        // Any other allocation takes the block from the other node.
        let (_, found) = asked(world(), PAGEBLOCK_ORDER, &[flags & !gfp::THISNODE]);
        assert_eq!(found, [Some(true)], "{version}");
    }
}

/// Eleven pages are free, two more than the low watermark: too few for the block of eight that the free scanner comes to first,
/// and enough for one of the single pages behind the block, to which the scanner goes on up to 4.7.
#[test]
fn what_is_behind_a_refused_block() {
    use super::super::control::{Asked, CompactControl, Goal, Mode};
    for (version, isolated) in [
        ("v2.6.37", 1),
        ("v4.4", 1),
        ("v4.7", 1),
        ("v4.7+refused_block=ends", 0),
        ("v4.8", 0),
    ] {
        let (mut world, zone) = emptied(version);
        let block = world.mm.zones[zone].last_pageblock();
        world.mm.free_block(block, 3);
        (0..3).for_each(|at| world.mm.free_block(block + 16 + 2 * at, 0));
        let rules = world.mm.kernel.mechanisms.blocks;
        let state = &mut world.mm.zones[zone];
        state.watermark = [0, 9, 9];
        state.lowmem_reserve = [0; MAX_NR_ZONES];
        let asked = Asked {
            goal: Goal::Block(PAGEBLOCK_ORDER),
            mode: Mode::SyncLight,
            class: ZoneType::High,
            list: MigrateType::Movable,
        };
        let mut cc = CompactControl::new(state, zone, asked, rules);
        world.mm.isolate_freepages(&mut cc, 4);
        assert_eq!(cc.freepages.len(), isolated, "{version}");
    }
}
