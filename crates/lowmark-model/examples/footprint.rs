//! Memory that the model needs: runs a machine of RAM_GIB that touches all of its memory and as much
//! again as fits in swap (a quarter of RAM), and prints pages of RAM and the peak of the resident set.
//!
//! One process, one figure: the peak belongs to the process. With 0 GiB the machine has 4 MiB, which
//! shows what the process needs without pages.
//!
//! `cargo run --release -p lowmark-model --example footprint -- RAM_GIB anon|shmem`

#[path = "../benches/cases.rs"]
mod cases;

use cases::{Case, GIB, MIB};
use lowmark_spec::machine::PAGE_SIZE;
use lowmark_spec::workload::{Access, MapKind, Order};
use std::io::Error;

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let kind = match args.get(1).map(String::as_str) {
        Some("anon") => MapKind::AnonPrivate,
        Some("shmem") => MapKind::AnonShared,
        _ => return Err(Error::other("usage: footprint RAM_GIB anon|shmem")),
    };
    let gib: u64 = args[0].parse().map_err(Error::other)?;
    let ram = (gib * GIB).max(4 * MIB);
    let case = Case {
        ram,
        swap: ram / 4,
        // Nine tenths of RAM and swap together: the rest is what watermarks keep free.
        length: (ram + ram / 4) / 10 * 9 / PAGE_SIZE * PAGE_SIZE,
        kind,
        access: Access::Write,
        order: Order::Seq,
        touches: 0,
        populate: true,
        page_cluster: 3,
    };
    let recording = case.run();
    println!(
        "{}\t{}\t{}\t{:?}",
        ram / PAGE_SIZE,
        peak_bytes()?,
        recording.counters["pswpout"],
        recording.outcome
    );
    Ok(())
}

/// `VmHWM` of this process.
fn peak_bytes() -> Result<u64, Error> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: Option<u64> =
        line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| Error::other("no VmHWM in /proc/self/status"))
}
