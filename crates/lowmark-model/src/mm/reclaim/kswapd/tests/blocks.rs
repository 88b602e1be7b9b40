//! What kswapd does for a huge page by era, of memory in which every second page is free: there are pages enough, and no block.

use super::*;
use crate::mm::alloc::mmzone::Zone;
use crate::mm::types::{MigrateType, PAGEBLOCK_ORDER, Pfn};

const ORDER: u32 = PAGEBLOCK_ORDER as u32;

/// Every second page of the largest zone is in use and can be reclaimed. ZONE_DMA, less than a quarter of the node, has none.
fn halved(text: &str) -> World {
    let machine = Machine::small(256 << 20, 64 << 20);
    let mut world = World::new(&machine, Kernel::named(text), Trace::new(None));
    world.mm.drain_all_pages();
    let largest = world.mm.nodes[NodeId::FIRST].zonelist[0];
    for at in world.mm.zones.keys() {
        let mut used: Vec<Pfn> = Vec::new();
        while let Some(pfn) = world.mm.zones[at].take(&mut world.mm.pages, MigrateType::Movable) {
            used.push(pfn);
        }
        let state: &mut Zone = &mut world.mm.zones[at];
        state.pageblocks.fill(MigrateType::Movable);
        state.pcp.keep_nothing();
        if at == largest {
            used.sort_unstable();
            for pair in used.chunks(2) {
                world.mm.free_block(pair[0], 0);
                for &pfn in &pair[1..] {
                    world.mm.pages.make_folio(pfn, 0);
                    world.mm.pages[pfn].set(ANON);
                    world.mm.lru_add(pfn);
                }
            }
        }
    }
    world
}

/// A run of kswapd for huge pages, and what it says that it has done.
fn run_for_blocks(text: &str) -> (Rc<Sys>, Request) {
    let sys = Sys::new(halved(text));
    let (task, done) = (Rc::clone(&sys), Rc::new(std::cell::Cell::new(None)));
    let result = Rc::clone(&done);
    let body = Box::pin(async move {
        let by_node = task.world().mm.balances_nodes();
        let asked = request(ORDER, ZoneType::Dma32 as usize);
        result.set(Some(if by_node {
            node::balance_node(&task, NodeId::FIRST, asked).await
        } else {
            zones::balance_zones(&task, NodeId::FIRST, asked).await
        }));
    });
    sys.world().spawn("kswapd".into(), false, body);
    run_until_idle(&sys, &mut |_| {});
    (sys, done.take().expect("it has ended"))
}

/// To 3.3 kswapd reclaims until there is the block; 3.3 then finds single pages short in ZONE_DMA, and begins anew for them. From 3.4 on it does not, and to 3.8 it tries to move pages, which here belong
/// to nobody. In 3.9 and 3.10 zones have to have the block for that: a run that frees nothing ends with the block given up. From 3.11
/// to 4.5 kswapd compacts only after reclaim, which there was none of. From 4.6 on it leaves that to kcompactd, and from 4.8 on it
/// reclaims twice the block first.
#[test]
fn what_kswapd_does_for_a_huge_page() {
    for (text, reclaims, compacts, order) in [
        ("v2.6.37", 256..10_000, false, ORDER),
        ("v3.3", 256..10_000, false, 0),
        ("v3.7", 0..1, true, ORDER),
        ("v3.8", 0..1, true, ORDER),
        ("v3.10", 0..1, false, 0),
        ("v3.11", 0..1, false, ORDER),
        ("v4.4", 0..1, false, ORDER),
        ("v4.6", 0..1, false, ORDER),
        ("v4.8", 1024..2048, false, 0),
        // Its passes are shorter, and it sees the block as soon as it is there.
        ("v6.18", 256..1024, false, ORDER),
    ] {
        let (sys, done) = run_for_blocks(text);
        let stat = &sys.world().mm.stat;
        let reclaimed = stat.pgsteal_kswapd.iter().sum::<u64>();
        assert!(reclaims.contains(&reclaimed), "{text}: {reclaimed}");
        assert_eq!(stat.compact_isolated > 0, compacts, "{text}");
        assert_eq!(done.order, order, "{text}");
    }
}

/// An allocation that asks for a huge page finds that there is none, in every era; what kswapd may sleep by differs.
#[test]
fn what_kswapd_wakes_and_sleeps_by() {
    for (text, sleeps) in [
        ("v3.3", false),
        ("v3.14", false),
        ("v4.4", false),
        ("v4.6", true),
    ] {
        let mut world = halved(text);
        let asked = request(ORDER, ZoneType::Dma32 as usize);
        assert_eq!(world.prepare_sleep(NodeId::FIRST, asked), sleeps, "{text}");
        let largest = world.mm.nodes[NodeId::FIRST].zonelist[0];
        assert!(!world.mm.zone_has_block(largest, ORDER), "{text}");
        assert!(world.mm.zone_has_block(largest, 0), "{text}");
    }
}

/// Where compaction lacks room a zone is not balanced for a block, whatever blocks it has, to 4.5; from 4.6 on it has to have as many
/// single pages.
#[test]
fn a_zone_that_lacks_room_is_reclaimed() {
    for text in ["v3.7", "v4.4", "v4.6"] {
        for (high, lacks) in [(20_000, false), (40_000, true)] {
            let mut world = halved(text);
            let largest = world.mm.nodes[NodeId::FIRST].zonelist[0];
            let state = &mut world.mm.zones[largest];
            state.watermark = [high - 2, high - 1, high];
            state.lowmem_reserve = [0; MAX_NR_ZONES];
            assert!((25_000..35_000).contains(&state.free), "{}", state.free);
            let sys = Sys::new(world);
            let task = Rc::clone(&sys);
            let body = Box::pin(async move {
                let asked = request(ORDER, ZoneType::Dma32 as usize);
                zones::balance_zones(&task, NodeId::FIRST, asked).await;
            });
            sys.world().spawn("kswapd".into(), false, body);
            run_until_idle(&sys, &mut |_| {});
            let reclaimed: u64 = sys.world().mm.stat.pgsteal_kswapd.iter().sum();
            assert_eq!(reclaimed > 0, lacks, "{text} {high}");
        }
    }
}

/// ZONE_DMA has no room for compaction, and 10 ms later it has: to 3.6 kswapd of 3.4 runs again and again until then, though the
/// node is balanced. From 3.7 on it does not.
#[test]
fn a_zone_without_room_keeps_kswapd_running() {
    for (text, stays) in [("v3.4", true), ("v3.6", true), ("v3.7", false)] {
        let world = halved(text);
        let dma = |zone: &Zone| zone.kind == ZoneType::Dma;
        let dma = world.mm.zones.position(dma).expect("it has one");
        let state = &world.mm.zones[dma];
        assert!(state.free < 10, "{text}");
        let used = state.first_managed..state.first_managed + state.managed as Pfn;
        let sys = Sys::new(world);
        let (task, other) = (Rc::clone(&sys), Rc::clone(&sys));
        let body = Box::pin(async move {
            let asked = request(ORDER, ZoneType::Dma32 as usize);
            zones::balance_zones(&task, NodeId::FIRST, asked).await;
        });
        sys.world().spawn("kswapd".into(), false, body);
        let frees = Box::pin(async move {
            other.sleep(10 * MSEC).await;
            for pfn in used {
                other.world().mm.free_block(pfn, 0);
            }
        });
        sys.world().spawn("frees".into(), false, frees);
        run_until_idle(&sys, &mut |_| {});
        let runs = sys.world().mm.stat.pageoutrun;
        assert_eq!(runs > 100, stays, "{text}: {runs}");
    }
}
