//! What kswapd remembers between runs and when it may sleep, each variant by hand, and runs over zone lists.
//!
//! Node 0 of the machine has zones DMA (0) and DMA32 (1), node 1 has Normal (2) alone, as on machines with two nodes.
//! Allocations of users ask for class 3. DMA never passes for them: its reserve is larger than the zone.

use super::*;
use crate::ids::{LruvecId, NodeId};
use crate::kernel::Kernel;
use crate::mm::alloc::mmzone::Zone;
use crate::mm::types::{DEF_PRIORITY, Gfp, flag};
use crate::time::run_until_idle;
use crate::trace::Trace;
use lowmark_spec::Machine;
use lowmark_spec::machine::Node as SpecNode;
use std::rc::Rc;

mod blocks;

/// Kernels of the variants vanilla, clear, keepawake and remembers.
const VANILLA: &str = "v4.11";
const FIXCHECK: &str = "v4.11+kswapd_classzone=fixcheck";
const CLEAR_BITS: &str = "v4.11+kswapd_classzone=clear-bits";
const EMPTY: &str = "v4.11+kswapd_classzone=empty-balanced";
const CLEAR: &str = "v4.11+kswapd_classzone=clear";
const KEEPAWAKE: &str = "v4.12";
// That of 5.2; its text no longer says the class.
const REMEMBERS: &str = "v4.12+kswapd_classzone=remembers";
/// The class of users' allocations.
const USER: usize = ZoneType::High as usize;

/// The machine, with nothing short.
fn world(text: &str) -> World {
    let mut machine = Machine::small(64 << 20, 64 << 20);
    machine.nodes.push(SpecNode { ram: 48 << 20 });
    let kernel = Kernel::named(text);
    let trace = Trace::new(Some(kernel.version.release()));
    let mut world = World::new(&machine, kernel, trace);
    for zone in &mut world.mm.zones {
        zone.watermark = [10, 20, 30];
        zone.lowmem_reserve = [0; MAX_NR_ZONES];
        zone.free = 1000;
    }
    zone(&mut world, NodeId::FIRST, ZoneType::Dma).lowmem_reserve = [0, 5000, 5000, 5000];
    let &only = world.mm.nodes[NodeId::from(1)]
        .zones
        .first()
        .expect("it has one");
    world.mm.zones[only].kind = ZoneType::Normal;
    world
}

fn zone(world: &mut World, node: NodeId, kind: ZoneType) -> &mut Zone {
    let of = |zone: &&mut Zone| zone.node == node && zone.kind == kind;
    world.mm.zones.iter_mut().find(of).expect("it is there")
}

fn request(order: u32, class: usize) -> Request {
    Request { order, class }
}

/// Whether kswapd of a node may sleep after a run for a class at order 0.
fn may_sleep(world: &mut World, node: NodeId, class: usize) -> bool {
    world.prepare_sleep(node, request(0, class))
}

/// What an allocation of a class and an order asks of a kswapd that is awake.
fn ask(world: &mut World, node: NodeId, order: u32, class: usize) {
    let zone = world.mm.nodes[node].zones[0];
    let kind = world.mm.zones[zone].kind;
    world.wakeup_kswapd(zone, (0, order), kind, class_type(class));
}

#[test]
fn classes_between_requests() {
    // By variant: the first class; what is read if nobody asked, after a run for users; what a run for users is followed
    // by if nobody asked, and if one asked for class 1; the same for a nap that was cut short.
    let expected = [
        (VANILLA, 0, 0, [0, 1], [USER, USER]),
        (FIXCHECK, 0, 0, [0, 1], [USER, USER]),
        (CLEAR_BITS, 0, 0, [0, 1], [USER, USER]),
        (EMPTY, 0, 0, [0, 1], [USER, USER]),
        (CLEAR, 0, 0, [0, 1], [USER, USER]),
        (KEEPAWAKE, USER, 0, [USER, USER], [USER, USER]),
        (REMEMBERS, USER, USER, [USER, 1], [USER, 1]),
    ];
    for (text, first, unasked, after, nap) in expected {
        assert_eq!(world(text).mm.first_request(), request(0, first), "{text}");
        let done = request(0, USER);
        let mut read = world(text);
        assert_eq!(
            read.take_request(NodeId::FIRST, done),
            request(0, unasked),
            "{text}"
        );
        for (asked, class) in [None, Some(1)].into_iter().zip(after) {
            let mut world = world(text);
            asked
                .into_iter()
                .for_each(|class| ask(&mut world, NodeId::FIRST, 0, class));
            let next = world.mm.look_again(NodeId::FIRST, done, done);
            assert_eq!(next, (request(0, class), 0), "{text} {asked:?}");
            // Nothing is reset there.
            assert_eq!(world.mm.nodes[NodeId::FIRST].kswapd.class, asked, "{text}");
        }
        for (asked, class) in [None, Some(1)].into_iter().zip(nap) {
            let mut world = world(text);
            asked
                .into_iter()
                .for_each(|class| ask(&mut world, NodeId::FIRST, 0, class));
            world.mm.note_interrupted_nap(NodeId::FIRST, done);
            assert_eq!(
                world.mm.nodes[NodeId::FIRST].kswapd.class,
                Some(class),
                "{text} {asked:?}"
            );
        }
        // Requests add up to the highest, and reading them resets that.
        for class in [1, 2, 0] {
            ask(&mut read, NodeId::FIRST, 0, class);
        }
        assert_eq!(read.take_request(NodeId::FIRST, done).class, 2, "{text}");
        assert_eq!(read.mm.nodes[NodeId::FIRST].kswapd.class, None, "{text}");
    }
}

#[test]
fn what_lets_kswapd_sleep() {
    let parts = [FIXCHECK, CLEAR_BITS, EMPTY];
    for text in [VANILLA, CLEAR, KEEPAWAKE, REMEMBERS]
        .into_iter()
        .chain(parts)
    {
        let all = matches!(text, VANILLA | CLEAR_BITS);
        // DMA does not pass for users, which holds up those that ask all zones.
        assert_eq!(
            may_sleep(&mut world(text), NodeId::FIRST, USER),
            !all,
            "{text}"
        );
        let mut short = world(text);
        zone(&mut short, NodeId::FIRST, ZoneType::Dma32).free = 30;
        assert!(!may_sleep(&mut short, NodeId::FIRST, USER), "{text}");
        // For class 0 DMA is all there is, and it is well.
        assert!(may_sleep(&mut short, NodeId::FIRST, 0), "{text}");
        // Node 1 has nothing of class 0: one zone of none never passes, unless that counts as balanced.
        assert_eq!(
            may_sleep(&mut world(text), NodeId::from(1), 0),
            !matches!(text, CLEAR | FIXCHECK),
            "{text}"
        );
        assert!(may_sleep(&mut world(text), NodeId::from(1), USER), "{text}");
        let mut short = world(text);
        zone(&mut short, NodeId::from(1), ZoneType::Normal).free = 30;
        assert!(!may_sleep(&mut short, NodeId::from(1), USER), "{text}");
        zone(&mut short, NodeId::from(1), ZoneType::Normal).free = 31;
        assert!(may_sleep(&mut short, NodeId::from(1), USER), "{text}");
        // Whether a run stops: nothing of class 0 stops it where that counts as balanced.
        let stops = matches!(text, EMPTY | KEEPAWAKE | REMEMBERS);
        assert_eq!(
            world(text).node_balanced(NodeId::from(1), 0, 0),
            stops,
            "{text}"
        );
    }
}

/// Marks node 0 as reclaim does that found it congested, all dirty at the tail, and all under writeback.
fn mark(world: &mut World) {
    zone(world, NodeId::FIRST, ZoneType::Dma).congested = true;
    let lists = &mut world.mm.lruvecs[LruvecId::from(0)];
    (lists.tail_dirty, lists.all_writeback) = (true, true);
}

/// What is left of that.
fn marks(world: &mut World) -> [bool; 3] {
    let congested = zone(world, NodeId::FIRST, ZoneType::Dma).congested;
    let lists = &world.mm.lruvecs[LruvecId::from(0)];
    [congested, lists.tail_dirty, lists.all_writeback]
}

const ALL: [bool; 3] = [true; 3];
const NONE: [bool; 3] = [false; 3];
const WRITEBACK: [bool; 3] = [false, false, true];

#[test]
fn when_a_node_is_no_longer_taken_for_congested() {
    // What is left after somebody found a zone balanced, and after kswapd was allowed to sleep.
    let expected = [
        ("v4.8", WRITEBACK, WRITEBACK),
        ("v4.10", WRITEBACK, WRITEBACK),
        (VANILLA, NONE, NONE),
        (FIXCHECK, NONE, NONE),
        (CLEAR_BITS, ALL, NONE),
        (EMPTY, ALL, NONE),
        (CLEAR, ALL, NONE),
        (KEEPAWAKE, ALL, NONE),
        ("v5.15", ALL, NONE),
        ("v6.18", ALL, NONE),
    ];
    for (text, found, slept) in expected {
        let mut world = world(text);
        mark(&mut world);
        assert!(world.node_balanced(NodeId::FIRST, 0, USER), "{text}");
        assert_eq!(marks(&mut world), found, "{text}");
        mark(&mut world);
        assert!(may_sleep(&mut world, NodeId::FIRST, 0), "{text}");
        assert_eq!(marks(&mut world), slept, "{text}");
    }
}

#[test]
fn marks_of_a_node_that_may_not_sleep() {
    // Up to 4.11 the first zone that passes is enough to forget, though the second does not.
    let left = [
        (VANILLA, NONE),
        (FIXCHECK, NONE),
        (CLEAR_BITS, ALL),
        (CLEAR, NONE),
        (KEEPAWAKE, NONE),
    ];
    for (text, left) in left {
        let mut world = world(text);
        zone(&mut world, NodeId::FIRST, ZoneType::Dma).lowmem_reserve = [0; MAX_NR_ZONES];
        zone(&mut world, NodeId::FIRST, ZoneType::Dma32).free = 30;
        mark(&mut world);
        assert_eq!(
            may_sleep(&mut world, NodeId::FIRST, USER),
            !matches!(text, VANILLA | CLEAR_BITS),
            "{text}"
        );
        assert_eq!(marks(&mut world), left, "{text}");
    }
    // Who gives up on a node forgets nothing.
    let mut hopeless = world(KEEPAWAKE);
    hopeless.mm.nodes[NodeId::FIRST].kswapd.failures = MAX_KSWAPD_FAILURES;
    mark(&mut hopeless);
    assert!(may_sleep(&mut hopeless, NodeId::FIRST, USER));
    assert_eq!(marks(&mut hopeless), ALL);
}

/// The order that it gave up is left to kcompactd; a request for a smaller one after that waits, and the larger one
/// that comes between is what the next run is for.
#[test]
fn an_order_that_was_given_up_is_asked_for_again() {
    for text in [VANILLA, CLEAR, KEEPAWAKE, REMEMBERS, "v6.18"] {
        let mut world = world(text);
        ask(&mut world, NodeId::FIRST, 5, 1);
        let asked = world.take_request(NodeId::FIRST, request(0, 1));
        assert_eq!(asked, request(5, 1), "{text}");
        // balance_pgdat has freed 64 pages, and returns order 0.
        ask(&mut world, NodeId::FIRST, 3, USER);
        let (done, compacts) = world.mm.look_again(NodeId::FIRST, asked, request(0, 1));
        assert_eq!((done, compacts), (request(0, 1), 5), "{text}");
        // It asks for single pages of its own class, of which there are enough.
        assert!(world.prepare_sleep(NodeId::FIRST, request(0, 0)), "{text}");
        ask(&mut world, NodeId::FIRST, 5, USER);
        ask(&mut world, NodeId::FIRST, 3, USER);
        assert_eq!(
            world.take_request(NodeId::FIRST, done),
            request(5, USER),
            "{text}"
        );
        assert_eq!(world.mm.nodes[NodeId::FIRST].kswapd.order, 0, "{text}");
    }
}

/// The classes that kswapd of a node worked for, how often it slept, and how often it did not because a zone was below
/// its high watermark, when Normal or DMA32 of it gets short and stays so, as nothing can be reclaimed. `forgotten`: the
/// waker's class is lost.
fn classes_worked_for(text: &str, node: NodeId, forgotten: bool) -> (Vec<u64>, usize, u64) {
    let sys = Sys::new(world(text));
    let thread = Box::pin(kswapd(Rc::clone(&sys), node));
    sys.world().spawn("kswapd".into(), false, thread);
    let waker = Rc::clone(&sys);
    let body = Box::pin(async move {
        waker.sleep(SECOND).await;
        let world = &mut *waker.world();
        let &last = world.mm.nodes[node].zones.last().expect("it has zones");
        world.mm.zones[last].free = 30;
        if forgotten {
            let kswapd = &mut world.mm.nodes[node].kswapd;
            kswapd.wait.wake_all(&mut world.sched);
        } else {
            ask(world, node, 0, USER);
        }
    });
    sys.world().spawn("waker".into(), false, body);
    run_until_idle(&sys, &mut |_| {});
    let events = sys.world().trace.take();
    let wakes = events.iter().filter(|event| event.kind == Kind::KswapdWake);
    let classes = wakes.filter_map(|event| event.get(Field::Zid)).collect();
    let sleeps = events
        .iter()
        .filter(|event| event.kind == Kind::KswapdSleep);
    let awake = sys.world().mm.stat.kswapd_high_wmark_hit_quickly;
    (classes, sleeps.count(), awake)
}

#[test]
fn a_node_without_low_zones_stays_short() {
    let user = USER as u64;
    // No allocation asked while kswapd worked for users without success: kswapd takes class 0, which has no zone, and sleeps.
    assert_eq!(
        classes_worked_for(VANILLA, NodeId::from(1), false),
        (vec![user], 2, 0)
    );
    // It asks for users' sake first, and takes class 0 only after that.
    assert_eq!(
        classes_worked_for(KEEPAWAKE, NodeId::from(1), false),
        (vec![user, 0], 2, 1)
    );
    // It works for users until it gives up.
    let failures = MAX_KSWAPD_FAILURES as usize;
    assert_eq!(
        classes_worked_for(REMEMBERS, NodeId::from(1), false),
        (vec![user; failures], 2, 15)
    );
}

#[test]
fn a_node_with_low_zones_stays_short() {
    let user = USER as u64;
    // DMA is well for class 0.
    for text in [VANILLA, CLEAR] {
        assert_eq!(
            classes_worked_for(text, NodeId::FIRST, false),
            (vec![user], 2, 0),
            "{text}"
        );
    }
    assert_eq!(
        classes_worked_for(KEEPAWAKE, NodeId::FIRST, false),
        (vec![user, 0], 2, 1)
    );
}

/// A waker that tests the class, and after kswapd has reset it reads it again, stores what says that nobody asked. Such a
/// wake is one nonetheless: kswapd looks after its default class.
#[test]
fn a_class_that_is_forgotten_is_a_wake_still() {
    assert_eq!(
        classes_worked_for(VANILLA, NodeId::FIRST, true),
        (vec![0], 2, 0)
    );
    assert_eq!(
        classes_worked_for(KEEPAWAKE, NodeId::FIRST, true),
        (vec![0], 2, 0)
    );
    // From 5.2 on that is the class of the last run.
    let (classes, sleeps, _) = classes_worked_for(REMEMBERS, NodeId::FIRST, true);
    let failures = MAX_KSWAPD_FAILURES as usize;
    assert_eq!((classes, sleeps), (vec![USER as u64; failures], 2));
}

const ANON: u16 = flag::SWAPBACKED;
const FILE: u16 = 0;

/// Takes pages of a zone for its inactive list: flags decide whether reclaim can free them. Those that were taken first
/// are scanned first.
fn fill(world: &mut World, kind: ZoneType, pages: usize, flags: u16) {
    let list = Gfp::user(NodeId::FIRST).migrate_type();
    for _ in 0..pages {
        let of = |zone: &Zone| zone.node == NodeId::FIRST && zone.kind == kind;
        let at = world.mm.zones.position(of).expect("it is there");
        let pfn = world.mm.zones[at].take(&mut world.mm.pages, list);
        let pfn = pfn.expect("it is free");
        world.mm.pages.make_folio(pfn, 0);
        world.mm.pages[pfn].set(flags);
        world.mm.lru_add(pfn);
    }
}

/// A run of kswapd over zone lists for allocations that could use all zones. What is freed counts at once.
fn zone_run(mut world: World) -> Rc<Sys> {
    for zone in &mut world.mm.zones {
        zone.pcp.keep_nothing();
    }
    let sys = Sys::new(world);
    let task = Rc::clone(&sys);
    let body = Box::pin(async move {
        zones::balance_zones(&task, NodeId::FIRST, request(0, ZoneType::Dma32 as usize)).await;
    });
    sys.world().spawn("kswapd".into(), false, body);
    run_until_idle(&sys, &mut |world| {
        assert!(
            world.mm.stat.pgscan_kswapd.iter().sum::<u64>() < 10_000_000,
            "it never ends"
        );
    });
    sys
}

/// From 3.11 to 4.7 a pass that frees nothing raises the priority, whatever passes before have freed. DMA32 has 40 pages
/// that can be freed, then 200,000 that are locked. A pass scans 1/4096, which is more than the 41 of its high
/// watermark, and so enough not to raise it.
#[test]
fn a_pass_in_vain_raises_the_priority() {
    for text in ["v3.11", "v4.4", "v4.7"] {
        let mut world = World::new(
            &Machine::small(1 << 30, 64 << 20),
            Kernel::named(text),
            Trace::new(None),
        );
        fill(&mut world, ZoneType::Dma32, 40, ANON);
        fill(&mut world, ZoneType::Dma32, 200_000, ANON | flag::LOCKED);
        zone(&mut world, NodeId::FIRST, ZoneType::Dma).lowmem_reserve = [0; MAX_NR_ZONES];
        let short = zone(&mut world, NodeId::FIRST, ZoneType::Dma32);
        // Whatever is freed, it is never enough.
        short.lowmem_reserve = [5000; MAX_NR_ZONES];
        (short.watermark, short.free) = ([10, 20, 41], 0);
        let sys = zone_run(world);
        let stat = &sys.world().mm.stat;
        let passes: u64 = (1..=DEF_PRIORITY).map(|priority| 200_000 >> priority).sum();
        assert_eq!(
            stat.pgscan_kswapd.iter().sum::<u64>(),
            (200_040 >> DEF_PRIORITY) + passes,
            "{text}"
        );
        assert_eq!(
            (passes, stat.pgsteal_kswapd.iter().sum::<u64>()),
            (199_948, 40),
            "{text}"
        );
    }
}

/// A zone below the one that is short is reclaimed up to a gap above its high watermark: low, 20 pages, as that is less
/// than a hundredth of it.
#[test]
fn lower_zones_are_kept_a_gap_above_high() {
    for text in ["v3.8", "v3.11", "v4.4", "v4.7"] {
        for (free, left, scanned) in [(50, 51, 1), (51, 51, 0)] {
            let mut world = world(text);
            fill(&mut world, ZoneType::Dma, 64, FILE);
            let lower = zone(&mut world, NodeId::FIRST, ZoneType::Dma);
            assert!(lower.size() > 2000);
            (lower.lowmem_reserve, lower.free) = ([0; MAX_NR_ZONES], free);
            // One page of it is freed when the priority says so, and then it is short no more.
            fill(&mut world, ZoneType::Dma32, 64, ANON);
            zone(&mut world, NodeId::FIRST, ZoneType::Dma32).free = 30;
            let sys = zone_run(world);
            let world = &mut *sys.world();
            assert_eq!(
                zone(world, NodeId::FIRST, ZoneType::Dma32).free,
                31,
                "{text}"
            );
            assert_eq!(
                zone(world, NodeId::FIRST, ZoneType::Dma).free,
                left,
                "{text}"
            );
            assert_eq!(
                world.mm.stat.pgscan_kswapd.iter().sum::<u64>(),
                1 + scanned,
                "{text}"
            );
        }
    }
}

/// To 3.8 zones have to be well for allocations that could use the end zone: DMA keeps 5,000 pages back from those, has
/// less than min for them, and that is why kswapd does not wait, though all zones are at their watermarks.
#[test]
fn zones_are_judged_for_the_end_zone() {
    for (text, skipped) in [("v3.0", 1), ("v3.8", 1), ("v3.8+balanced_zones=request", 0)] {
        let mut world = world(text);
        fill(&mut world, ZoneType::Dma, 64, ANON | flag::LOCKED);
        zone(&mut world, NodeId::FIRST, ZoneType::Dma).free = 1000;
        // At priority 9 one of them is scanned, and freed.
        fill(&mut world, ZoneType::Dma32, 512, ANON);
        zone(&mut world, NodeId::FIRST, ZoneType::Dma32).free = 30;
        let sys = zone_run(world);
        let stat = &sys.world().mm.stat;
        assert_eq!(stat.pgscan_kswapd.iter().sum::<u64>(), 1, "{text}");
        assert_eq!(stat.kswapd_skip_congestion_wait, skipped, "{text}");
    }
}

/// kswapd of a zone kernel is woken for a block of 8 pages, and 20 ms later, while it naps, for single pages. Nothing is short. A
/// nap that is cut short leaves no order behind, as it does from 4.8 on.
#[test]
fn a_nap_cut_short_leaves_no_order_behind() {
    for text in ["v2.6.37", "v3.4", "v4.4"] {
        let sys = Sys::new(world(text));
        let thread = Box::pin(kswapd(Rc::clone(&sys), NodeId::FIRST));
        sys.world().spawn("kswapd".into(), false, thread);
        let waker = Rc::clone(&sys);
        let body = Box::pin(async move {
            waker.sleep(150 * MSEC).await;
            for order in [3, 0] {
                waker.sleep(20 * MSEC).await;
                let world = &mut *waker.world();
                let kswapd = &mut world.mm.nodes[NodeId::FIRST].kswapd;
                kswapd.order = order;
                kswapd.wait.wake_all(&mut world.sched);
            }
        });
        sys.world().spawn("waker".into(), false, body);
        run_until_idle(&sys, &mut |_| {});
        assert_eq!(
            sys.world().mm.stat.kswapd_low_wmark_hit_quickly,
            1,
            "{text}"
        );
        let events = sys.world().trace.take();
        let wakes = events.iter().filter(|event| event.kind == Kind::KswapdWake);
        let orders: Vec<u64> = wakes.filter_map(|event| event.get(Field::Order)).collect();
        assert_eq!(orders, [3, 0], "{text}");
    }
}
