//! Runs a workload in a guest and prints what it showed.
//!
//! `cargo run --release -p lowmark-real --example guest -- KERNEL WORKLOAD.toml [EVENTS TRACE [NAME=VALUE…]]`
//!
//! KERNEL is a path, or a version, which is fetched if need be. EVENTS are groups or `group:event`, with
//! commas between them; `-` for none.

use lowmark_real::guest::{self, BUFFER_KB, GuestOptions, KernelImage, Trace, kernels};
use lowmark_spec::{Directory, Overrides, Source, parse};
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kernel, workload, rest @ ..] = arguments.as_slice() else {
        return Err("usage: guest KERNEL WORKLOAD.toml [EVENTS TRACE [NAME=VALUE...]]".into());
    };
    let image = if kernel.contains('/') {
        KernelImage::open(Path::new(kernel))?
    } else {
        kernels::fetch(kernel)?
    };
    let mut options = GuestOptions::new(image);
    if let [events, file, ..] = rest
        && events != "-"
    {
        options.trace = Some(Trace {
            events: events.split(',').map(str::to_owned).collect(),
            file: Some(file.into()),
            buffer_kb: BUFFER_KB,
        });
    }
    let path = Path::new(workload);
    let source = Source {
        name: workload.clone(),
        text: std::fs::read_to_string(path)?,
    };
    let machines = Directory {
        path: path.parent().unwrap_or(Path::new("")).to_owned(),
    };
    let sets = rest.iter().skip(2).filter_map(|set| set.split_once('='));
    let overrides = Overrides {
        set: sets
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        ..Overrides::default()
    };
    for scenario in parse(&source, &machines, &overrides)? {
        let outcome = guest::run(&scenario, &options)?;
        let system = outcome.recording.system.clone().unwrap_or_default();
        println!(
            "{:?} on {} ({}): boot {:.2?}, run {:.2} s, in all {:.2?}, {} events, {:?} lost",
            scenario.params,
            system.release,
            system.executed_by,
            outcome.boot,
            outcome.recording.elapsed_ns as f64 / 1e9,
            outcome.wall,
            outcome.recording.events.len(),
            system.lost_events,
        );
        println!("{:?}", outcome.recording.outcome);
        let moved = outcome
            .recording
            .counters
            .iter()
            .filter(|(_, value)| **value > 0);
        println!(
            "{}",
            moved
                .map(|(n, v)| format!("{n} {v}"))
                .collect::<Vec<_>>()
                .join(", ")
        );
        let tasks = outcome
            .recording
            .tasks
            .iter()
            .filter(|task| task.user_ns + task.system_ns > 0);
        for task in tasks.filter(|task| !task.kthread || task.name.starts_with("kswapd")) {
            println!("{task:?}");
        }
        for phase in &outcome.recording.phases {
            println!("{phase:?}");
        }
        for series in &outcome.recording.series {
            println!("{}: {} samples", series.name, series.samples.len());
        }
        println!("faults {:?}, notes {:?}", outcome.faults, system.notes);
    }
    Ok(())
}
