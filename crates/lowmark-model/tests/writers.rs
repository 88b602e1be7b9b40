//! Four writers to a slow disk, against a guest of 6.18 that did the same: how long it took, and how its
//! writers were held back. The figures are those of the capture `vm-6.18-writers-4x48m-20MBps-db16m`.

use lowmark_model::{Options, run};
use lowmark_record::{Event, Field, Kind, Outcome};
use lowmark_spec::{BuiltIn, Overrides, Source, parse};

const WORKLOAD: &str = r#"
lowmark = 1
[workload]
name = "writers"
[machine]
use = "guest-512m"
[machine.device.vdb]
kind = "ssd"
rotational = true
size = "2G"
position_read = "0ns"
position_write = "0ns"
command_read = "60us"
command_write = "60us"
rate = "20971520B/s"
elevator = "noop"
[machine.filesystem.slow]
kind = "ext4"
device = "vdb"
[kernel]
use = "v6.18"
sysctl = { dirty_bytes = 16777216, dirty_background_bytes = 4194304 }
[file.out]
fs = "slow"
exists = false
copies = 4
[task.writer]
processes = 4
run = [{ append = "out$idx", block = "64K", count = 768 }]
"#;

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

#[test]
fn four_writers_are_held_back_as_by_6_18() {
    let source = Source {
        name: "writers.toml".into(),
        text: WORKLOAD.into(),
    };
    let scenario = match parse(&source, &BuiltIn, &Overrides::default()) {
        Ok(mut scenarios) => scenarios.remove(0),
        Err(error) => panic!("{}", error.render_plain()),
    };
    let options = Options {
        events: true,
        check_every: 0,
    };
    let recording = run(&scenario, &options, &mut |_| {}).expect("the model can run it");
    assert_eq!(recording.outcome, Outcome::Completed);
    let looks: Vec<Event> = recording
        .events
        .iter()
        .filter(|event| event.kind == Kind::BalanceDirtyPages)
        .collect();
    let pauses: Vec<u64> = looks
        .iter()
        .filter_map(|event| event.signed(Field::Pause))
        .filter(|&pause| pause > 0)
        .map(|pause| pause as u64)
        .collect();
    let judge = |what: &str, model: u64, kernel: u64, percent: u64| {
        let error = model.abs_diff(kernel) * 100 / kernel;
        assert!(error <= percent, "{what}: {model}, of the kernel {kernel}");
    };
    let median_of = |field| {
        median(
            looks
                .iter()
                .map(|look| look.get(field).unwrap_or(0))
                .collect(),
        )
    };
    judge("looks", looks.len() as u64, 1_911, 5);
    judge("elapsed ms", recording.elapsed_ns / 1_000_000, 8_757, 5);
    judge("pause ms", median(pauses), 28, 15);
    // This close to the limit 16 dirty pages more or less, which is a step of these writers, are a third of the rate.
    let rate = median_of(Field::TaskRatelimit);
    judge("task_ratelimit", rate, 11_024, 20);
    judge("pages between looks", median_of(Field::Dirtied), 32, 0);
    judge("dirty", median_of(Field::Dirty), 4_032, 2);
}
