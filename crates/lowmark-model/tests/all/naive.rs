//! The model against theory and against a naive model of a few plain lines that shares no code with it.

use lowmark_model::{Options, example_scenario, run};
use lowmark_record::{Outcome, Recording};
use lowmark_spec::Scenario;
use lowmark_spec::machine::{Arch, Machine, PAGE_SIZE};
use lowmark_spec::random::Stream;
use lowmark_spec::workload::{Amount, MapKind, Op, Order};
use std::collections::{HashSet, VecDeque};

/// One process that touches `pages` pages `touches` times in the order given, on 128 MiB.
fn scenario(pages: u64, order: Order, touches: u64) -> Scenario {
    let mut scenario = example_scenario();
    // One zone: with two, the lower one's reserve keeps its pages out of the turnover.
    scenario.machine = Machine {
        arch: Arch::Ppc64,
        ..Machine::small(128 << 20, 512 << 20)
    };
    scenario
        .kernel
        .sysctl
        .insert("page_cluster".into(), "0".into());
    for stmt in &mut scenario.workload.tasks[0].instances[0] {
        match &mut stmt.op {
            Op::Map { length, kind, .. } => {
                *length = pages * PAGE_SIZE;
                *kind = MapKind::AnonPrivate;
            }
            Op::Touch { what, .. } => {
                what.order = order;
                what.amount = Amount::Count(touches);
            }
            _ => {}
        }
    }
    scenario
}

fn record(scenario: &Scenario) -> Recording {
    let recording = run(scenario, &Options::default(), &mut |_| {}).expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed);
    recording
}

/// First in, first out over `frames` frames: misses, and what is resident at the end.
fn fifo(frames: usize, pages: impl Iterator<Item = u64>) -> (u64, HashSet<u64>) {
    let (mut queue, mut resident, mut misses) = (VecDeque::new(), HashSet::new(), 0);
    for page in pages {
        if resident.contains(&page) {
            continue;
        }
        misses += 1;
        if queue.len() == frames {
            let oldest = queue.pop_front().expect("the queue is full");
            resident.remove(&oldest);
        }
        queue.push_back(page);
        resident.insert(page);
    }
    (misses, resident)
}

#[test]
fn what_fits_faults_once_per_page() {
    for order in [Order::Seq, Order::Reverse, Order::Stride(7)] {
        let recording = record(&scenario(4096, order, 5 * 4096));
        assert_eq!(recording.counters["pgfault"], 4096, "{order:?}");
        assert_eq!(recording.counters["pgmajfault"], 0);
        assert_eq!(recording.counters["pswpout"], 0);
    }
}

#[test]
fn a_cycle_larger_than_memory_misses_always() {
    let (pages, passes) = (40_000, 6);
    let recording = record(&scenario(pages, Order::Seq, passes * pages));
    // LRU, FIFO and anything like them evict just what is needed next.
    let (misses, _) = fifo(30_000, (0..passes * pages).map(|touch| touch % pages));
    assert_eq!(misses, passes * pages);
    let faults = recording.counters["pgfault"];
    assert!(
        faults <= misses && faults * 100 >= misses * 97,
        "{faults} faults, {misses} expected"
    );
    let majors = recording.counters["pgmajfault"];
    assert!(
        majors >= (passes - 1) * pages * 96 / 100,
        "{majors} major faults"
    );
    assert_eq!(
        recording.counters["pswpin"], majors,
        "page_cluster 0 reads what faults"
    );
}

#[test]
fn uniform_touches_hit_in_proportion_to_what_is_resident() {
    let (pages, touches) = (40_000u64, 1_600_000u64);
    let recording = record(&scenario(pages, Order::Random, touches));
    let lists = ["nr_inactive_anon", "nr_active_anon"].map(|name| recording.state[name]);
    assert_eq!(
        lists.iter().sum::<u64>(),
        0,
        "memory is given back at the end"
    );
    // With uniform touches every policy that holds R pages misses alike. R is RAM less what kswapd keeps
    // free: between its low and high watermark, 452 and 543 pages (min_free_kbytes = isqrt(131072 · 16)).
    let resident = 32_768 - 500;
    let mut stream = Stream::new(0, "naive", 0);
    let (expected, held) = fifo(resident, (0..touches).map(|_| stream.below(pages)));
    assert_eq!(held.len(), resident);
    // The first touch of a page is no major fault.
    let naive = expected - pages;
    let majors = recording.counters["pgmajfault"];
    assert!(
        majors.abs_diff(naive) * 100 < naive * 6,
        "{majors} major faults, naive {naive}"
    );
}

#[test]
fn the_same_seed_gives_the_same_recording() {
    let mut scenario = scenario(40_000, Order::Random, 200_000);
    let first = record(&scenario);
    assert_eq!(first, record(&scenario));
    scenario.seed = 1;
    assert_ne!(first.counters, record(&scenario).counters);
}
