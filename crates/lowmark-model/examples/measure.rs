//! Runs the cases whose names begin with one of the arguments (or all), each once, and prints for each:
//! name, touches (of dd, pages dirtied), page faults, seconds on the CPU, separated by tabs.
//!
//! Seconds on the CPU, not on the clock: what else runs on the machine makes a run wait, and that is not
//! what is measured.
//!
//! `cargo run --release -p lowmark-model --example measure -- "reclaim anon"`

#[path = "../benches/cases.rs"]
mod cases;

use cases::{Case, GIB, MIB};
use lowmark_spec::workload::{MapKind, Order};
use std::io::Error;

fn main() -> Result<(), Error> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for (name, case) in cases() {
        if wanted.is_empty() || wanted.iter().any(|want| name.starts_with(want)) {
            let start = cpu_seconds()?;
            let recording = case.run();
            let seconds = cpu_seconds()? - start;
            let faults = recording.counters["pgfault"];
            println!("{name}\t{}\t{faults}\t{seconds:.4}", case.touches);
        }
    }
    for writers in [1, 100, 1000] {
        let name = format!("dd {writers}");
        if wanted.is_empty() || wanted.iter().any(|want| name.starts_with(want)) {
            let scenario = cases::dd(writers);
            let start = cpu_seconds()?;
            let dirtied = cases::write(&scenario).counters["nr_dirtied"];
            let seconds = cpu_seconds()? - start;
            println!("{name}\t{dirtied}\t0\t{seconds:.4}");
        }
    }
    Ok(())
}

fn cases() -> Vec<(String, Case)> {
    let growth = |ram: u64, millions: u64| {
        let name = format!("growth {} MiB, {millions} M touches", ram / MIB);
        let order = Order::Seq;
        let case = Case::reclaim(ram, MapKind::AnonPrivate, order, millions * 1_000_000);
        (name, case)
    };
    let own = cases::all()
        .into_iter()
        .map(|(name, case)| (name.to_owned(), case));
    let rams = [128 * MIB, 512 * MIB, 2 * GIB, 8 * GIB, 64 * GIB];
    let with_ram = rams
        .into_iter()
        .flat_map(|ram| [growth(ram, 1), growth(ram, 5)]);
    let with_touches = [1, 2, 4, 8].map(|millions| growth(256 * MIB, millions));
    let zipf = [
        ("zipf 1.0 replay", cases::zipf(1000, false)),
        ("zipf 1.0 swapping", cases::zipf(1000, true)),
        ("zipf 0.8 replay", cases::zipf(800, false)),
        ("zipf 0.8 swapping", cases::zipf(800, true)),
    ]
    .map(|(name, case)| (name.to_owned(), case));
    own.chain(with_ram)
        .chain(with_touches)
        .chain(zipf)
        .collect()
}

/// Time that this process has spent on a CPU.
fn cpu_seconds() -> Result<f64, Error> {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds = schedstat.split(' ').next().unwrap_or_default();
    let nanoseconds: f64 = nanoseconds.parse().map_err(Error::other)?;
    Ok(nanoseconds / 1e9)
}
