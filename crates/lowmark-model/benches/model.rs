//! Cost of the model: touches of resident pages, faults under steady reclaim, growth with RAM and with
//! touches, writers that the dirty limits hold back.
//!
//! `cargo bench -p lowmark-model` (or `make bench`, which also runs the peers).

mod cases;

use cases::{Case, GIB, MIB, faults};
use divan::Bencher;
use divan::counter::ItemsCount;
use lowmark_spec::workload::{MapKind, Order};

fn main() {
    divan::main();
}

/// Names of the cases of [`cases::all`] that begin with `prefix`.
fn names(prefix: &'static str) -> impl Iterator<Item = &'static str> {
    let all = cases::all().into_iter().map(|(name, _)| name);
    all.filter(move |name| name.starts_with(prefix))
}

fn named(name: &str) -> Case {
    let all = cases::all();
    let found = all.iter().find(|(known, _)| *known == name);
    found.expect("the name comes from the list").1
}

/// Everything fits; items are touches.
#[divan::bench(args = names("resident"), sample_count = 10, sample_size = 1)]
fn resident(bencher: Bencher, name: &str) {
    let case = named(name);
    bencher
        .counter(ItemsCount::new(case.touches))
        .bench_local(|| case.run());
}

/// 300 MiB in 256 MiB, all written, all swapped; items are page faults.
#[divan::bench(args = names("reclaim"), sample_count = 10, sample_size = 1)]
fn reclaim(bencher: Bencher, name: &str) {
    bench_faults(bencher, &named(name));
}

/// As many touches beyond the first pass on machines of 128 MiB to 8 GiB; items are page faults, those
/// of the first pass too, so the rate is flat if the cost of a fault does not depend on RAM.
#[divan::bench(args = [128, 512, 2048, 8192], sample_count = 5, sample_size = 1)]
fn growth_with_ram_mib(bencher: Bencher, ram_mib: u64) {
    bench_faults(bencher, &sequential(ram_mib * MIB, 1 << 22));
}

/// The same on a machine of 64 GiB, once.
#[divan::bench(sample_count = 1, sample_size = 1)]
fn growth_with_ram_64_gib(bencher: Bencher) {
    bench_faults(bencher, &sequential(64 * GIB, 1 << 22));
}

/// More touches on the same machine; items are page faults.
#[divan::bench(args = [1, 2, 4, 8], sample_count = 5, sample_size = 1)]
fn growth_with_touches_million(bencher: Bencher, millions: u64) {
    bench_faults(bencher, &sequential(256 * MIB, millions << 20));
}

/// Writers that are held back for a minute by the dirty limits; items are pages that became dirty.
#[divan::bench(args = [1, 100, 1000], sample_count = 3, sample_size = 1)]
fn throttled_writers(bencher: Bencher, writers: u32) {
    let scenario = cases::dd(writers);
    let items = cases::write(&scenario).counters["nr_dirtied"];
    bencher
        .counter(ItemsCount::new(items))
        .bench_local(|| cases::write(&scenario));
}

fn sequential(ram: u64, touches: u64) -> Case {
    Case::reclaim(ram, MapKind::AnonPrivate, Order::Seq, touches)
}

/// The number of faults is not known before the run, but it is the same in every run.
fn bench_faults(bencher: Bencher, case: &Case) {
    let items = faults(&case.run());
    bencher
        .counter(ItemsCount::new(items))
        .bench_local(|| case.run());
}
