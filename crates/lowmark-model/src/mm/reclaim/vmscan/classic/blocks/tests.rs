//! Walks through blocks, worked out by hand.

use super::*;
use crate::ids::NodeId;
use crate::kernel::Kernel;
use crate::mm::types::{DEF_PRIORITY, Gfp, ZoneType};
use crate::trace::Trace;
use crate::world::World;
use lowmark_record::{Event, Field, Kind};
use lowmark_spec::Machine;

/// A block of eight pages, its first page, and where it lies. The page at 4 is the oldest of the inactive pages of files.
///
/// | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
/// |---|---|---|---|---|---|---|---|
/// | inactive file | active file | the kernel's | inactive anon | inactive file | free | inactive file, dirty | inactive file |
fn block(kernel: &str, compaction: bool) -> (World, Target, Pfn) {
    let mut kernel = Kernel::named(kernel);
    kernel.coverage.compaction = compaction;
    let trace = Trace::new(Some(kernel.version.release()));
    let mut world = World::new(&Machine::small(64 << 20, 64 << 20), kernel, trace);
    let gfp = Gfp::user(NodeId::FIRST);
    let first = world.alloc_pages_nowait(gfp, 3).expect("a block");
    let mm = &mut world.mm;
    for (at, flags) in [
        (4, 0),
        (0, 0),
        (1, flag::ACTIVE),
        (3, flag::SWAPBACKED),
        (6, flag::DIRTY),
        (7, 0),
    ] {
        let page = &mut mm.pages[first + at];
        page.reset();
        page.set(flags);
        mm.lru_add(first + at);
    }
    mm.free_block(first + 5, 0);
    let zone = mm.pages.zone(first);
    let lruvec = mm.zones[zone].lruvec;
    (world, Target { lruvec, zone }, first)
}

/// What a batch of one page of files comes to for a block of order 3, at a priority: places in the block of the pages taken,
/// pages scanned, and the walk.
fn walk(kernel: &str, compaction: bool, priority: u32) -> (Vec<Pfn>, Event) {
    let (mut world, target, first) = block(kernel, compaction);
    let mut sc = ScanControl::new(false, 32, 3, ZoneType::High);
    sc.priority = priority;
    world.mm.begin_pass(&mut sc);
    world.mm.begin_batch(&mut sc);
    let mut batch = Batch::new();
    let isolated = world.isolate(target, Lru::InactiveFile, 1, &sc, &mut batch);
    assert_eq!(isolated.taken, batch.len() as u64);
    assert_eq!(isolated.by_kind.iter().sum::<u64>(), isolated.taken);
    assert_eq!(world.mm.lruvecs[target.lruvec].isolated, isolated.by_kind);
    let event = world.trace.take().iter().next().expect("an event");
    assert_eq!(event.kind, Kind::LruIsolate);
    assert_eq!(event.get(Field::NrScanned), Some(isolated.scanned));
    // All of them go back to where they were, or what is inactive now.
    world.mm.clear_active_flags(&batch);
    world.mm.put_back(target, &batch, isolated.by_kind);
    assert_eq!(world.mm.lruvecs[target.lruvec].isolated, [0, 0]);
    let places = batch.iter().map(|pfn| pfn - first).collect();
    (places, event)
}

/// What the tracepoint says of a walk: pages taken, dirty ones, failures; and the mode.
fn contig(event: &Event) -> [Option<u64>; 4] {
    [
        event.get(Field::ContigTaken),
        event.get(Field::ContigDirty),
        event.get(Field::ContigFailed),
        event.get(Field::IsolateMode),
    ]
}

/// Low enough for lumpy reclaim of eight pages.
const URGENT: u32 = DEF_PRIORITY - 3;

#[test]
fn lumpy_reclaim_of_2_6_36_takes_all_that_is_on_a_list() {
    let (places, event) = walk("v2.6.36", false, URGENT);
    assert_eq!(places, [4, 0, 1, 3, 6, 7]);
    // The page of the kernel is the one that is in use and not to be had; ISOLATE_BOTH is 2.
    assert_eq!(contig(&event), [Some(5), Some(1), Some(1), Some(2)]);
    // Not yet urgent: only pages of the list that is scanned, and what is not to be had is no failure.
    let (places, event) = walk("v2.6.36", false, DEF_PRIORITY);
    assert_eq!(places, [4, 0, 6, 7]);
    assert_eq!(contig(&event), [Some(3), Some(1), Some(0), Some(0)]);
}

#[test]
fn from_2_6_37_on_a_walk_ends_at_the_first_page_that_is_not_to_be_had() {
    let (places, event) = walk("v2.6.37", false, URGENT);
    assert_eq!(places, [4, 0, 1]);
    assert_eq!(contig(&event), [Some(2), Some(0), Some(1), Some(2)]);
    let (places, event) = walk("v2.6.37", false, DEF_PRIORITY);
    assert_eq!(places, [4, 0]);
    assert_eq!(contig(&event), [Some(1), Some(0), Some(1), Some(0)]);
    // Without that patch the search goes on.
    let (places, _) = walk("v2.6.37-stop-neighbour-search", false, URGENT);
    assert_eq!(places, [4, 0, 1, 3, 6, 7]);
}

#[test]
fn with_compaction_3_3_walks_still_and_3_4_does_not() {
    // ISOLATE_INACTIVE is 1 from 3.2 on, and both lists are 3.
    for priority in [DEF_PRIORITY, URGENT] {
        let (places, event) = walk("v3.3", true, priority);
        assert_eq!(places, [4, 0]);
        assert_eq!(contig(&event), [Some(1), Some(0), Some(1), Some(1)]);
        let (places, event) = walk("v3.4", true, priority);
        assert_eq!(places, [4]);
        assert_eq!(contig(&event), [Some(0), Some(0), Some(0), Some(1)]);
        // The commit without its first half.
        let (places, _) = walk("v3.4+block_walk=to-first-other", true, priority);
        assert_eq!(places, [4, 0]);
    }
    // A kernel without compaction has lumpy reclaim, when that is urgent.
    let (places, event) = walk("v3.4", false, URGENT);
    assert_eq!(places, [4, 0, 1]);
    assert_eq!(contig(&event), [Some(2), Some(0), Some(1), Some(3)]);
    let (places, _) = walk("v3.4", false, DEF_PRIORITY);
    assert_eq!(places, [4]);
}

#[test]
fn from_3_5_on_there_is_neither_a_walk_nor_a_word_of_it() {
    for compaction in [false, true] {
        let (places, event) = walk("v3.5", compaction, URGENT);
        assert_eq!(places, [4]);
        assert_eq!(contig(&event), [None, None, None, Some(0)]);
    }
    let removed = "v3.4+no-lumpy-reclaim";
    assert_eq!(walk(removed, false, URGENT).0, [4]);
}

/// What of a block lies in another zone is left, and so is what would need swap when there is none.
#[test]
fn what_is_pointless_is_left() {
    let (mut world, target, first) = block("v2.6.36", false);
    let mut sc = ScanControl::new(false, 32, 9, ZoneType::High);
    world.mm.begin_pass(&mut sc);
    let neighbour =
        |world: &World, at: Pfn| world.mm.neighbour(target, at, Lru::InactiveFile, true);
    assert_eq!(neighbour(&world, first + 3), Neighbour::Taken);
    assert_eq!(neighbour(&world, first + 5), Neighbour::Free(1));
    assert_eq!(neighbour(&world, first + 2), Neighbour::NotToBeHad);
    let elsewhere = (0..world.mm.pages.len()).find(|&at| world.mm.pages.zone(at) != target.zone);
    let elsewhere = elsewhere.expect("a zone besides");
    assert_eq!(neighbour(&world, elsewhere), Neighbour::Pointless);
    assert_eq!(
        neighbour(&world, world.mm.pages.len()),
        Neighbour::Pointless
    );
    // A page on the list of a CPU is free, although nothing marks it as a free block.
    let held = world
        .alloc_page_fast(Gfp::user(NodeId::FIRST))
        .expect("a page");
    assert_eq!(neighbour(&world, held), Neighbour::NotToBeHad);
    world.mm.free_page(held);
    assert_eq!(neighbour(&world, held), Neighbour::Free(1));
}
