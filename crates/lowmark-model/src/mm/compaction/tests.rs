use super::kcompactd::do_work;
use crate::ids::{LruvecId, NodeId, ZoneId};
use crate::invariants;
use crate::kernel::{CompactDefer, PageblockCheck};
use crate::mm::alloc::page_alloc::alloc_pages;
use crate::mm::fault::memory::{Backing, Vma};
use crate::mm::frames::page::{FreeList, Pages};
use crate::mm::frames::pte::Pte;
use crate::mm::reclaim::vmscan::MAX_KSWAPD_FAILURES;
use crate::mm::types::{Gfp, Lru, MigrateType, PAGEBLOCK_ORDER, Pfn, flag};
use crate::time::run_until_idle;
use crate::world::{Sys, World};
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

mod eras;

use eras::{STRESS, asked, empty_others};

/// A region that has all the pages of the largest zone, of which every fourth is then left: the last of four, as a pass that may
/// not wait looks for free pages at every 32nd frame.
fn fragmented(version: &str) -> (World, ZoneId) {
    fragment(World::of_version(version))
}

/// The same of a machine.
fn fragment(mut world: World) -> (World, ZoneId) {
    world.mm.drain_all_pages();
    let zone = world.mm.nodes[NodeId::FIRST].zonelist[0];
    let mut frames = Vec::new();
    while let Some(pfn) = world.mm.zones[zone].take(&mut world.mm.pages, MigrateType::Movable) {
        frames.push(pfn);
    }
    let length = frames.len();
    let first = world.mm.mappings.add(0, length as u64).expect("numbers");
    world.mm.vmas.push(Vma {
        backing: Backing::Anon,
        space: 0,
        ptes: vec![Pte::default(); length],
        pmds: Vec::new(),
        first,
        swapra_miss: 0,
        readahead: Default::default(),
        offset: 0,
        file: None,
        parts: Default::default(),
    });
    for (index, &pfn) in frames.iter().enumerate() {
        world.mm.map_anon(0, index as u32, pfn, true, true);
        world.mm.pages[pfn].set(flag::SWAPBACKED);
        world.mm.lru_add(pfn);
    }
    for (index, &pfn) in frames.iter().enumerate() {
        if index % 4 < 3 {
            world.mm.vmas[0].ptes[index] = Pte::default();
            world.mm.pages[pfn].mapcount = 0;
            world.mm.release_page(pfn);
        }
    }
    world.mm.drain_all_pages();
    (world, zone)
}

/// Pages of the region, by their place in it.
fn frames(world: &World) -> Vec<(usize, Pfn)> {
    let ptes = world.mm.vmas[0].ptes.iter().enumerate();
    ptes.filter_map(|(index, pte)| Some((index, pte.frame()?)))
        .collect()
}

/// What kcompactd does for an order.
fn compacted(world: World, order: u32) -> Rc<Sys> {
    let sys = Sys::new(world);
    sys.world().mm.nodes[NodeId::FIRST].kcompactd.max_order = order;
    let task = Rc::clone(&sys);
    let body = Box::pin(async move { do_work(&task, NodeId::FIRST).await });
    sys.world().spawn("kcompactd".into(), false, body);
    run_until_idle(&sys, &mut |_| {});
    sys
}

#[test]
fn pages_move_together_and_stay_whose_they_are() {
    for version in ["v6.1", "v6.18"] {
        let (world, zone) = fragmented(version);
        assert!(!world.mm.zones[zone].has_block(2), "{version}");
        assert_eq!(world.mm.zones[zone].fragmentation_score(), 100);
        let before = frames(&world);
        let free = world.mm.zones[zone].free;
        let sys = compacted(world, PAGEBLOCK_ORDER as u32);
        let world = &mut *sys.world();
        world.mm.drain_all_pages();
        let state = &world.mm.zones[zone];
        assert!(state.has_block(PAGEBLOCK_ORDER), "{version}");
        assert_eq!(
            state.free, free,
            "{version}: pages are neither lost nor made"
        );
        let after = frames(world);
        let pages = |frames: &[(usize, Pfn)]| frames.iter().map(|&(at, _)| at).collect::<Vec<_>>();
        assert_eq!(pages(&before), pages(&after), "{version}");
        let first = world.mm.vmas[0].first;
        for &(index, pfn) in &after {
            let page = &world.mm.pages[pfn];
            assert_eq!((page.owner, page.mapcount), (first + index as u32, 1));
            assert!(page.has(flag::LRU | flag::SWAPBACKED | flag::ANON));
            let pte = world.mm.vmas[0].ptes[index];
            assert!(pte.is_young() && pte.is_dirty(), "{version}");
        }
        // Those that have moved were far down, are further up now, and will be reclaimed last.
        let moved: Vec<(Pfn, Pfn)> = (before.iter().zip(&after))
            .map(|(&(_, from), &(_, to))| (from, to))
            .filter(|(from, to)| from != to)
            .collect();
        assert_eq!(moved.len() as u64, world.mm.stat.pgmigrate_success);
        assert!(moved.len() >= 100 && moved.iter().all(|(from, to)| from < to));
        let lists = &world.mm.lruvecs[LruvecId::from(0)];
        let list: Vec<Pfn> = lists
            .iter(&world.mm.chunks, &world.mm.pages, Lru::InactiveAnon)
            .collect();
        let newest = &list[list.len() - moved.len()..];
        assert!(moved.iter().all(|(_, to)| newest.contains(to)), "{version}");
        invariants::check(world);
    }
}

/// What a task gets of the largest zone that wants a block, and gives up soon.
fn wanted(mut world: World, order: usize) -> (Rc<Sys>, Option<Pfn>) {
    let zone = world.mm.nodes[NodeId::FIRST].zonelist[0];
    for other in world.mm.zones.keys().filter(|&other| other != zone) {
        let other = &mut world.mm.zones[other];
        while other
            .take(&mut world.mm.pages, MigrateType::Unmovable)
            .is_some()
        {}
    }
    let sys = Sys::new(world);
    let (task, found) = (Rc::clone(&sys), Rc::new(Cell::new(None)));
    let result = Rc::clone(&found);
    let body = Box::pin(async move {
        let gfp = Gfp::user(NodeId::FIRST).noretry();
        result.set(alloc_pages(&task, gfp, order).await.ok());
    });
    sys.world().spawn("task".into(), false, body);
    run_until_idle(&sys, &mut |_| {});
    (sys, found.take())
}

#[test]
fn who_wants_a_large_block_compacts_for_it() {
    for order in [4, PAGEBLOCK_ORDER] {
        let (sys, found) = wanted(fragmented("v6.18").0, order);
        let pfn = found.expect("three quarters are free");
        assert_eq!(pfn % (1 << order), 0);
        let world = &mut *sys.world();
        let stat = &world.mm.stat;
        assert_eq!((stat.compact_stall, stat.compact_success), (1, 1));
        // The daemon had no part in it, and nobody reclaimed.
        assert!(stat.compact_migrate_scanned > 0 && stat.pgmigrate_success > 0);
        assert_eq!(
            (
                stat.compact_daemon_migrate_scanned,
                stat.pgsteal_direct.iter().sum::<u64>()
            ),
            (0, 0)
        );
        world.mm.free_pages(pfn, order);
        invariants::check(world);
    }
}

/// One frame more of each pageblock takes as long as a touch, and changes nothing else.
#[test]
fn pageblocks_that_scanners_come_to_take_time() {
    let compacted = |check| {
        let (mut world, _) = fragmented("v4.4");
        world.mm.kernel.mechanisms.blocks.pageblock_check = check;
        let (sys, found) = wanted(world, 4);
        let world = sys.world();
        let scanned = world.mm.stat.compact_migrate_scanned + world.mm.stat.compact_free_scanned;
        (world.sched.now(), scanned, found, world.costs.touch_ns)
    };
    let (first, both) = (
        compacted(PageblockCheck::FirstFrame),
        compacted(PageblockCheck::BothEnds),
    );
    assert_eq!((first.1, first.2), (both.1, both.2));
    assert!(first.0 < both.0);
    assert_eq!((both.0 - first.0) % first.3, 0);
}

/// Compaction that lacks room, or that is put off, is the end of it for a large block; for a small one memory is
/// reclaimed first.
#[test]
fn who_wants_a_block_that_nobody_can_make_does_without() {
    let short = || {
        let (mut world, zone) = fragmented("v6.18");
        for at in world.mm.zones.keys() {
            world.mm.zones[at].watermark = [20_000; 3];
        }
        // Nobody waits for kswapd, which there is none of.
        world.mm.nodes[NodeId::FIRST].kswapd.failures = MAX_KSWAPD_FAILURES;
        (world, zone)
    };
    let (sys, found) = wanted(short().0, PAGEBLOCK_ORDER);
    let stat = &sys.world().mm.stat;
    assert_eq!((found, stat.compact_stall), (None, 0));
    assert_eq!(stat.allocstall.iter().sum::<u64>(), 0);
    let (sys, found) = wanted(short().0, 2);
    let stat = &sys.world().mm.stat;
    assert_eq!((found, stat.compact_stall), (None, 0));
    assert_eq!(stat.allocstall.iter().sum::<u64>(), 1);
    let (mut world, zone) = fragmented("v6.18");
    for at in world.mm.zones.keys() {
        world.mm.zones[at].defer_compaction(PAGEBLOCK_ORDER);
    }
    assert!(world.mm.zones[zone].free > 5000);
    let (sys, found) = wanted(world, PAGEBLOCK_ORDER);
    let stat = &sys.world().mm.stat;
    assert_eq!((found, stat.compact_stall, stat.compact_fail), (None, 1, 1));
    assert_eq!(stat.pgmigrate_success, 0);
}

/// Who may not wait gives a block up with the first page of it that cannot be moved.
#[test]
fn a_block_with_a_page_that_cannot_move_is_left_alone() {
    let (mut world, zone) = fragmented("v6.18");
    // The third page in use of every pageblock is being written.
    let used = frames(&world);
    let block = |at: usize| used[at].1 >> PAGEBLOCK_ORDER;
    for (at, &(_, pfn)) in used.iter().enumerate().skip(2) {
        if block(at) == block(at - 2) && (at < 3 || block(at) != block(at - 3)) {
            world.mm.pages[pfn].set(flag::WRITEBACK);
        }
    }
    let (sys, found) = wanted(world, PAGEBLOCK_ORDER);
    let world = sys.world();
    assert_eq!((found, world.mm.stat.compact_fail), (None, 2));
    assert_eq!(world.mm.stat.pgmigrate_success, 0);
    // It looked at all pageblocks, and at no more than the beginning of each.
    let managed = world.mm.zones[zone].managed;
    let looked_at = managed >> PAGEBLOCK_ORDER..managed / 10;
    assert!(looked_at.contains(&world.mm.stat.compact_migrate_scanned));
}

/// What is short of memory is not compacted, nor what has a block already.
#[test]
fn it_is_done_where_it_can_help() {
    let (mut world, zone) = fragmented("v6.18");
    let class = world.mm.zones[zone].kind;
    assert!(world.mm.needs_compaction(zone, PAGEBLOCK_ORDER, class));
    world.mm.zones[zone].watermark = [4000, 5000, 6000];
    assert_eq!(world.mm.zones[zone].free / 1000, 9);
    assert!(world.mm.needs_compaction(zone, PAGEBLOCK_ORDER, class));
    world.mm.zones[zone].watermark = [8000, 9000, 9500];
    assert!(!world.mm.needs_compaction(zone, PAGEBLOCK_ORDER, class));
    assert!(
        !World::of_version("v6.18")
            .mm
            .needs_compaction(zone, PAGEBLOCK_ORDER, class)
    );
}

/// `fragmentation_index`, by hand: 1000 − (1000 + 1000 · pages / 512) / blocks.
#[test]
fn indices_are_those_of_the_formula() {
    let (mut world, zone) = fragmented("v6.18");
    let state = &mut world.mm.zones[zone];
    while state.free > 1000 {
        state.take(&mut world.mm.pages, MigrateType::Movable);
    }
    let (pages, blocks, suitable) = state.contig_page_info(PAGEBLOCK_ORDER);
    assert_eq!((pages, suitable), (1000, 0));
    let index = 1000 - (1000 + 1953) / blocks as i64;
    assert_eq!(state.fragmentation_index(PAGEBLOCK_ORDER), index);
    assert!((900..1000).contains(&index));
    assert_eq!(state.fragmentation_index(0), -1000);
    while state
        .take(&mut world.mm.pages, MigrateType::Movable)
        .is_some()
    {}
    assert_eq!(state.fragmentation_index(PAGEBLOCK_ORDER), 0);
    assert_eq!(state.fragmentation_score(), 0);
}

/// After a failure one attempt is left out, then three, seven and up to 63; smaller orders are not concerned.
#[test]
fn failures_put_it_off() {
    let (mut world, zone) = fragmented("v6.18");
    let state = &mut world.mm.zones[zone];
    state.compaction_defer_reset(4);
    for left_out in [1, 3, 7, 15, 31, 63, 63] {
        state.defer_compaction(5);
        assert!(!state.compaction_deferred(4, CompactDefer::ByZone));
        let deferred = (0..100)
            .take_while(|_| state.compaction_deferred(6, CompactDefer::ByZone))
            .count();
        assert_eq!(deferred, left_out);
    }
}

#[test]
fn lists_of_free_blocks_rotate_like_a_deque() {
    let mut pages = Pages::new(16, &[]);
    let mut list = FreeList::default();
    let mut plain: VecDeque<Pfn> = VecDeque::new();
    for pfn in 0..6 {
        list.push(&mut pages, pfn, 0, MigrateType::Movable);
        plain.push_front(pfn);
    }
    for pfn in [3, 3, 0, 5, 1, 4] {
        list.rotate_to_head(&mut pages, pfn);
        while plain.front() != Some(&pfn) {
            plain.rotate_left(1);
        }
        assert!(list.iter(&pages).eq(plain.iter().copied()), "head {pfn}");
        let last = (pfn + 2) % 6;
        list.rotate_to_tail(&mut pages, last);
        while plain.back() != Some(&last) {
            plain.rotate_left(1);
        }
        assert!(list.iter(&pages).eq(plain.iter().copied()), "tail {last}");
    }
    while let Some(pfn) = list.pop(&mut pages) {
        assert_eq!(Some(pfn), plain.pop_front());
    }
    assert!(plain.is_empty());
}

/// Pages that a task has unmapped and still holds cannot be moved; from 3.15 on they are not even isolated.
#[test]
fn what_a_task_holds_stays() {
    for (version, isolates) in [("v3.14", true), ("v3.15", false), ("v6.18", false)] {
        let (mut world, zone) = fragmented(version);
        empty_others(&mut world, zone);
        let before: Vec<Pfn> = frames(&world).into_iter().map(|(_, pfn)| pfn).collect();
        let mut gather = world.mm.tlb_gather_mmu();
        let pages = world.mm.vmas[0].pages();
        world.mm.zap_range_into(0, 0..pages, &mut gather);
        let (sys, found) = asked(world, PAGEBLOCK_ORDER, &[STRESS]);
        assert_eq!(found, [Some(false)], "{version}");
        let world = &mut *sys.world();
        assert_eq!(world.mm.stat.compact_isolated > 0, isolates, "{version}");
        let stay = |&pfn: &Pfn| world.mm.pages[pfn].is_gathered();
        assert!(before.iter().all(stay), "{version}");
        world.mm.tlb_flush_mmu(&mut gather);
        invariants::check(world);
    }
}

/// Pages that are locked in memory are moved from 4.1 on, and are locked and on no list as before.
#[test]
fn locked_pages_move() {
    for (version, moves) in [("v4.0", false), ("v4.1", true), ("v6.18", true)] {
        let (mut world, zone) = fragmented(version);
        empty_others(&mut world, zone);
        let pages = world.mm.vmas[0].pages();
        world.mm.set_locked(0, 0..pages, true);
        let before = frames(&world);
        for &(_, pfn) in &before {
            assert!(world.mm.mlock_page(pfn), "{version}");
        }
        let (sys, found) = asked(world, PAGEBLOCK_ORDER, &[STRESS]);
        assert_eq!(found, [Some(moves)], "{version}");
        let world = &mut *sys.world();
        let moved = world.mm.stat.pgmigrate_success;
        assert_eq!(moved > 0, moves, "{version}: {moved}");
        let after = frames(world);
        assert_eq!(after.len(), before.len(), "{version}");
        assert_eq!(before != after, moves, "{version}");
        assert_eq!(world.mm.nr_unevictable, after.len() as u64, "{version}");
        let first = world.mm.vmas[0].first;
        for &(index, pfn) in &after {
            let page = &world.mm.pages[pfn];
            assert!(page.is_unevictable() && !page.has(flag::LRU), "{version}");
            assert_eq!((page.owner, page.mapcount), (first + index as u32, 1));
        }
        world.mm.set_locked(0, 0..pages, false);
        assert_eq!(world.mm.nr_unevictable, 0, "{version}");
        invariants::check(world);
    }
}
