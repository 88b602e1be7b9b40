//! Guests: how they fail, with programs that stand for QEMU, and how they run, where QEMU and kernels are.
//!
//! `lowmark kernels fetch 6.1 6.18` and bin/install-guest-tools.sh bring what the second part needs;
//! without it those tests say that they judge nothing, which `LOWMARK_CI=1` makes an error.

#[path = "../../../tests/needed.rs"]
mod needed;

use lowmark_real::guest::{
    self, Accel, BUFFER_KB, GuestError, GuestOptions, GuestOutcome, KernelImage, Trace,
};
use lowmark_record::{Outcome, System};
use lowmark_spec::machine::WriteErrors;
use lowmark_spec::workload::{Op, Stmt};
use lowmark_spec::{BuiltIn, Overrides, Scenario, Source, parse};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use tempfile::TempDir;

/// One guest at a time: they are slow enough alone.
static GUESTS: Mutex<()> = Mutex::new(());

fn scenario(text: &str) -> Scenario {
    let source = Source {
        name: "w.toml".into(),
        text: text.to_owned(),
    };
    let scenarios = parse(&source, &BuiltIn, &Overrides::default());
    let scenarios = scenarios.unwrap_or_else(|error| panic!("{}", error.render_plain()));
    scenarios.into_iter().next().expect("one run")
}

/// A machine with this RAM and swap, and one task.
fn workload(ram: &str, swap: &str, run: &str) -> Scenario {
    let swap = match swap {
        "" => String::new(),
        size => format!("swap = {{ device = \"sda\", size = \"{size}\" }}\n"),
    };
    scenario(&format!(
        r#"
lowmark = 1
[workload]
name = "w"
[machine]
ram = "{ram}"
cpus = 1
{swap}device.sda = {{
  kind = "ssd", size = "4G", position_read = "100us", position_write = "0ns", command_read = "20us",
  command_write = "20us", rate = "500MB/s",
}}
filesystem.data = {{ kind = "ext4", device = "sda" }}
[kernel]
use = "v6.18"
{run}
"#
    ))
}

const SLEEP: &str = "[task.main]\nrun = [{ sleep = \"1ms\" }]\n";

/// What stands for a kernel image as far as its header is looked at.
fn bz_image(directory: &Path) -> KernelImage {
    let mut bytes = vec![0; 1024];
    bytes[0x202..0x206].copy_from_slice(b"HdrS");
    bytes[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
    bytes[0x300..0x309].copy_from_slice(b"6.99-test");
    let path = directory.join("bzImage");
    std::fs::write(&path, bytes).expect("written");
    KernelImage::open(&path).expect("an image by its header")
}

/// Runs a scenario with a shell script in place of QEMU; the error, and what was left behind.
fn with_script(script: &str, scenario: &Scenario, limit: Duration) -> (GuestError, Vec<PathBuf>) {
    let directory = tempfile::tempdir().expect("a directory");
    let scratch = directory.path().join("scratch");
    std::fs::create_dir(&scratch).expect("a directory");
    let qemu = directory.path().join("qemu");
    std::fs::write(&qemu, format!("#!/bin/sh\n{script}\n")).expect("written");
    std::fs::set_permissions(&qemu, std::fs::Permissions::from_mode(0o755)).expect("permitted");
    let options = GuestOptions {
        qemu: Some(qemu),
        runner: Some(env!("CARGO_BIN_EXE_lowmark-runner").into()),
        accel: Some(Accel::Tcg),
        timeout: limit,
        scratch: Some(scratch.clone()),
        ..GuestOptions::new(bz_image(directory.path()))
    };
    let error = guest::run(scenario, &options).expect_err("it cannot work");
    let left = std::fs::read_dir(&scratch).expect("a directory");
    (
        error,
        left.map(|entry| entry.expect("readable").path()).collect(),
    )
}

fn failure(script: &str) -> GuestError {
    let scenario = workload("128M", "64M", SLEEP);
    let (error, left) = with_script(script, &scenario, Duration::from_secs(20));
    assert_eq!(left, Vec::<PathBuf>::new());
    error
}

#[test]
fn a_qemu_that_fails_says_why() {
    let error = failure("echo 'cannot set up guest memory' >&2; exit 1");
    assert!(matches!(&error, GuestError::QemuFailed { said, .. } if said.contains("guest memory")));
    let error = failure("echo 'booting now'; kill -9 $$");
    assert!(matches!(&error, GuestError::QemuKilled { signal: 9, .. }));
    assert!(error.to_string().contains("booting now"), "{error}");
}

#[test]
fn a_kernel_that_breaks_is_quoted() {
    let error =
        failure("echo '[1.0] BUG: unable to handle'; echo '[1.1] Kernel panic - not syncing'");
    assert!(
        matches!(&error, GuestError::Crashed { what, .. } if what.contains("unable to handle"))
    );
    let error = failure("echo '[0.4] Kernel panic - not syncing: System is deadlocked on memory'");
    assert!(
        matches!(error, GuestError::RamTooSmall { ram_mb: 128, .. }),
        "{error}"
    );
    let error = failure(
        "echo 'lowmark-runner: the disk swap0 did not appear: does the kernel have its virtio driver?'",
    );
    assert!(matches!(error, GuestError::NoVirtio { .. }), "{error}");
    let error = failure("exit 0");
    assert!(matches!(error, GuestError::NoResult { .. }), "{error}");
}

#[test]
fn the_time_is_limited_and_qemu_does_not_survive_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let pid = directory.path().join("pid");
    let script = format!("echo $$ > {}; echo waiting; exec sleep 1000", pid.display());
    let scenario = workload("128M", "", SLEEP);
    let (error, left) = with_script(&script, &scenario, Duration::from_millis(500));
    assert!(matches!(error, GuestError::TimedOut { .. }), "{error}");
    assert!(
        error.to_string().contains("0.500 s") && error.to_string().contains("waiting"),
        "{error}"
    );
    assert_eq!(left, Vec::<PathBuf>::new());
    let pid = std::fs::read_to_string(pid).expect("it ran");
    assert!(
        !Path::new("/proc").join(pid.trim()).exists(),
        "{pid} still runs"
    );
}

#[test]
fn a_disk_that_fails_outweighs_what_follows() {
    let lost =
        "echo '[9.1] I/O error, dev vda, sector 8 op 0x1:(WRITE)'; echo '[9.2] Kernel panic'";
    for script in [lost.to_owned(), format!("{lost}; exec sleep 60")] {
        let scenario = workload("128M", "64M", SLEEP);
        let (error, left) = with_script(&script, &scenario, Duration::from_secs(2));
        assert!(
            matches!(&error, GuestError::DisksLost { problem, .. } if problem.contains("vda, sector 8")),
            "{error}"
        );
        assert!(error.started());
        assert_eq!(left, Vec::<PathBuf>::new());
    }
}

#[test]
fn what_is_missing_is_said_before_anything_starts() {
    let image = |path: &str| KernelImage::find(path).expect_err("no kernel");
    assert!(matches!(
        image("/nowhere/bzImage"),
        GuestError::NoImage { version: None, .. }
    ));
    let unknown = image("1.2");
    assert!(
        unknown.to_string().contains("lowmark kernels fetch 1.2"),
        "{unknown}"
    );
    let own = std::env::current_exe().expect("this program");
    let error = KernelImage::open(&own).expect_err("no kernel");
    assert!(error.to_string().contains("not vmlinux"), "{error}");

    let script = "exit 7";
    let limit = Duration::from_secs(5);
    let mut full = workload("128M", "64M", SLEEP);
    full.machine.swap[0].size = 1 << 60;
    let (error, left) = with_script(script, &full, limit);
    assert!(matches!(error, GuestError::DiskFull { .. }), "{error}");
    assert_eq!(left, Vec::<PathBuf>::new());

    let mut odd = workload(
        "128M",
        "",
        "[task.main]\nrun = [{ alloc = \"a\", order = 3 }]\n",
    );
    let toggle = lowmark_spec::Toggle::Remove("swapin_nr_pages".into());
    odd.kernel.toggles.push(toggle);
    let (error, _) = with_script(script, &odd, limit);
    let text = error.to_string();
    assert!(
        text.contains("alloc") && text.contains("-swapin_nr_pages: a real kernel"),
        "{text}"
    );

    let directory = tempfile::tempdir().expect("a directory");
    let options = GuestOptions {
        qemu: Some("/nowhere/qemu".into()),
        runner: Some(env!("CARGO_BIN_EXE_lowmark-runner").into()),
        accel: Some(Accel::Tcg),
        ..GuestOptions::new(bz_image(directory.path()))
    };
    let error = guest::run(&workload("128M", "", SLEEP), &options).expect_err("no QEMU");
    assert!(
        error.to_string().contains("install-guest-tools.sh"),
        "{error}"
    );

    std::fs::write(directory.path().join("config"), "CONFIG_VIRTIO_PCI=y\n").expect("written");
    let options = GuestOptions {
        qemu: Some("/nowhere/qemu".into()),
        ..GuestOptions::new(bz_image(directory.path()))
    };
    let error = guest::run(&workload("128M", "", SLEEP), &options).expect_err("no drivers");
    assert!(
        error
            .to_string()
            .contains("lacks virtio_blk, virtio_console"),
        "{error}"
    );
}

// Below this line a real kernel boots.

/// A guest with this kernel, or the reason why there is none.
fn real(version: &str) -> Option<GuestOptions> {
    let check = lowmark_real::doctor::guests()
        .into_iter()
        .find(|check| check.name == "QEMU");
    let qemu = check.filter(|check| check.state != lowmark_real::doctor::State::Good);
    if let Some(check) = qemu {
        needed::absent(&check.detail);
        return None;
    }
    match KernelImage::find(version) {
        Ok(image) => Some(GuestOptions {
            runner: Some(env!("CARGO_BIN_EXE_lowmark-runner").into()),
            timeout: Duration::from_secs(300),
            ..GuestOptions::new(image)
        }),
        Err(error) => {
            needed::absent(error);
            None
        }
    }
}

fn alone() -> std::sync::MutexGuard<'static, ()> {
    GUESTS
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn traced(options: &GuestOptions, scenario: &Scenario) -> (GuestOutcome, String, TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("trace.txt");
    let options = GuestOptions {
        trace: Some(Trace {
            events: vec!["vmscan:*".into()],
            file: Some(file.clone()),
            buffer_kb: BUFFER_KB,
        }),
        ..options.clone()
    };
    let outcome = guest::run(scenario, &options).unwrap_or_else(|error| panic!("{error}"));
    let text = std::fs::read_to_string(file).expect("a trace");
    (outcome, text, directory)
}

fn system(outcome: &GuestOutcome) -> &System {
    outcome.recording.system.as_deref().expect("a guest")
}

/// Sum of a field over the lines of an event, of tasks with this prefix.
fn sum(trace: &str, event: &str, field: &str, task: &str) -> u64 {
    let lines = trace
        .lines()
        .filter(|line| line.contains(event) && line.trim_start().starts_with(task));
    let values = lines.filter_map(|line| {
        let value = line.split(field).nth(1)?.split_whitespace().next()?;
        value.parse::<u64>().ok()
    });
    values.sum()
}

const SWAP: &str = r#"
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "110M" },
  { phase = "fill" },
  { touch = "m", access = "write" },
  { phase = "again" },
  { sample = "pass", do = [{ touch = "m", access = "verify" }] },
]
"#;

/// The identities that real traces obey, on both kernels: the sums of the trace are the changes of vmstat.
#[test]
fn the_trace_and_vmstat_agree() {
    let _alone = alone();
    for version in ["6.1", "6.18"] {
        let Some(options) = real(version) else {
            continue;
        };
        let (outcome, trace, _directory) = traced(&options, &workload("128M", "256M", SWAP));
        let counters = &outcome.recording.counters;
        let system = system(&outcome);
        println!(
            "{} by {}: boot {:.2?}, run {:.2} s, in all {:.2?}, pswpin {}",
            system.release,
            system.executed_by,
            outcome.boot,
            outcome.recording.elapsed_ns as f64 / 1e9,
            outcome.wall,
            counters["pswpin"],
        );
        assert_eq!(outcome.recording.outcome, Outcome::Completed);
        assert_eq!(system.lost_events, Some(0));
        let of = |names: &[&str]| names.iter().map(|name| counters[*name]).sum::<u64>();
        let shrink = |field, task| sum(&trace, "mm_vmscan_lru_shrink_inactive:", field, task);
        assert!(counters["pswpout"] > 0 && counters["pswpin"] > 0);
        assert_eq!(
            shrink("nr_scanned=", ""),
            of(&["pgscan_anon", "pgscan_file"])
        );
        assert_eq!(
            shrink("nr_reclaimed=", ""),
            of(&["pgsteal_anon", "pgsteal_file"])
        );
        assert_eq!(shrink("nr_scanned=", "kswapd"), counters["pgscan_kswapd"]);
        assert_eq!(
            shrink("nr_reclaimed=", "kswapd"),
            counters["pgsteal_kswapd"]
        );
        let begins = trace
            .lines()
            .filter(|line| line.contains("mm_vmscan_direct_reclaim_begin:"));
        let stalls: u64 = counters
            .iter()
            .filter(|(name, _)| name.starts_with("allocstall"))
            .map(|(_, v)| v)
            .sum();
        assert_eq!(begins.count() as u64, stalls);
        let writes = trace
            .lines()
            .filter(|line| line.contains("mm_vmscan_write_"));
        assert!(counters["nr_vmscan_write"].abs_diff(writes.count() as u64) <= 45);

        // And the rest of the recording.
        let recording = &outcome.recording;
        let labels: Vec<&str> = recording
            .phases
            .iter()
            .map(|phase| phase.label.as_str())
            .collect();
        assert_eq!(labels, ["fill", "again"]);
        assert_eq!(recording.series[0].samples.len(), 1);
        assert!(
            recording
                .gauges
                .names
                .iter()
                .any(|name| name == "nr_free_pages")
        );
        assert!(
            recording
                .tasks
                .iter()
                .any(|task| task.name == "main" && task.system_ns > 0)
        );
        assert!(
            recording
                .tasks
                .iter()
                .any(|task| task.name == "kswapd0" && task.system_ns > 0)
        );
        for file in [
            "proc/zoneinfo",
            "proc/buddyinfo",
            "proc/pressure/memory",
            "proc/sys/vm/swappiness",
        ] {
            assert!(system.before.contains_key(file), "{file}");
            assert!(system.after.contains_key(file), "{file}");
        }
        assert_eq!(
            system.before["sys/kernel/mm/lru_gen/enabled"].trim(),
            "0x0000"
        );
        let huge = &system.before["sys/kernel/mm/transparent_hugepage/enabled"];
        assert!(huge.contains("[never]"), "{huge}");
    }
}

#[test]
fn files_nodes_settings_and_a_cgroup() {
    let _alone = alone();
    let Some(options) = real("6.18") else {
        return;
    };
    let mut scenario = workload(
        "256M",
        "128M",
        r#"
[file.data]
kind = "random"
size = "40M"
[file.out]
size = "8M"
exists = false
[cgroup.box]
max = "48M"
[task.reader]
processes = 2
cgroup = "box"
run = [
  { read = "data", block = "64K" },
  { map = "f", kind = "file-shared", file = "data", size = "40M" },
  { touch = "f", access = "read" },
  { map = "h", kind = "anon-private", size = "8M", advice = "hugepage" },
  { touch = "h", access = "write" },
  { sample = "probe", do = [{ probe = "h", offset = "4M", what = "huge" }] },
]
[task.writer]
threads = 2
run = [
  { write = "out", block = "1M" },
  { fsync = "out" },
  { read = "out", block = "1M", direct = true },
  { sysctl = "swappiness", value = 10 },
]
"#,
    );
    scenario.machine.nodes = vec![scenario.machine.nodes[0].clone(); 2];
    scenario.machine.cpus = 2;
    for body in &mut scenario.workload.tasks[0].instances {
        let op = Op::Node { node: 1 };
        body.insert(0, Stmt { line: 0, op });
    }
    scenario
        .kernel
        .sysctl
        .insert("dirty_bytes".into(), "8388608".into());
    scenario
        .kernel
        .sysctl
        .insert("thp.enabled".into(), "madvise".into());
    let outcome = guest::run(&scenario, &options).unwrap_or_else(|error| panic!("{error}"));
    let after = &system(&outcome).after;
    assert_eq!(after["proc/sys/vm/dirty_bytes"].trim(), "8388608");
    assert_eq!(after["proc/sys/vm/swappiness"].trim(), "10");
    assert!(after["proc/zoneinfo"].contains("Node 1"));
    assert!(after["sys/fs/cgroup/box/memory.events"].contains("max "));
    assert!(
        outcome.recording.counters["cgroup/box/memory.events.max"] > 0,
        "the limit is felt: {:?}",
        after["sys/fs/cgroup/box/memory.events"]
    );
    let names: Vec<&str> = outcome
        .recording
        .series
        .iter()
        .map(|s| s.name.as_str())
        .collect();
    assert!(
        names
            .iter()
            .all(|name| ["probe-huge", "probe-base"].contains(name)),
        "{names:?}"
    );
    let writers = outcome
        .recording
        .tasks
        .iter()
        .filter(|task| task.name == "writer");
    assert_eq!(writers.count(), 2);
}

const BLOCKS: &str = r#"
[fileset.object]
files = 6
size = "8K"
exists = false
[task.make]
run = [
  { build = 6, do = [
    { map = "heap", kind = "anon-private", size = "2M" },
    { touch = "heap", access = "write" },
    { sample = "process", do = [{ burn = "2ms" }] },
    { write = "object" },
  ] },
]
[task.main]
run = [
  { alloc = "a", order = 9, gfp = "hugetlb", count = 80, pace = "2ms", series = "first" },
  { phase = "full" },
  { alloc = "a", order = 9, gfp = "hugetlb", count = 3, series = "full" },
  { free = "a" },
  { wait = "make" },
  { alloc = "a", order = 9, gfp = "hugetlb", count = 10, series = "again" },
]
"#;

/// What an `alloc` says of its attempts is what the kernel counted: pages that its pool got and did not get. They are held until
/// they are given back, and the pool is empty after the run. Processes of a build are forked: the kernel counts their faults.
#[test]
fn blocks_are_pages_of_the_pool_and_processes_are_forked() {
    let _alone = alone();
    for version in ["6.1", "6.18"] {
        let Some(options) = real(version) else {
            continue;
        };
        let scenario = workload("128M", "64M", BLOCKS);
        let outcome = guest::run(&scenario, &options).unwrap_or_else(|error| panic!("{error}"));
        let recording = &outcome.recording;
        let samples = |name: &str| {
            let mut series = recording.series.iter();
            let found = series.find(|series| series.name == name);
            found.map_or(0, |series| series.samples.len() as u64)
        };
        let got = ["first", "full", "again"].map(samples);
        let failed = ["first-failed", "full-failed", "again-failed"].map(samples);
        println!("{version}: got {got:?}, in vain {failed:?}");
        assert_eq!(got[0] + failed[0], 80);
        assert_eq!((got[1] + failed[1], got[2] + failed[2]), (3, 10));
        assert!(got[0] >= 12 && failed[0] > 0, "160 MB are not there");
        assert!(got[1] < 3, "what is held is not there again");
        assert_eq!(got[2], 10, "what was given back is");
        let counted = |name: &str| recording.counters[name];
        assert_eq!(counted("htlb_buddy_alloc_success"), got.iter().sum::<u64>());
        assert_eq!(counted("htlb_buddy_alloc_fail"), failed.iter().sum::<u64>());
        let meminfo = &system(&outcome).after["proc/meminfo"];
        let pool = meminfo
            .lines()
            .find_map(|line| line.strip_prefix("HugePages_Total:"));
        assert_eq!(pool.map(str::trim), Some("0"));
        assert_eq!(samples("process"), 6);
        assert!(counted("pgfault") > 6 * 512, "each has a heap of its own");
        let make = recording.tasks.iter().filter(|task| task.name == "make");
        assert_eq!(make.count(), 1, "processes are their parent's");
    }
}

#[test]
fn memory_that_runs_out_is_an_outcome() {
    let _alone = alone();
    let Some(options) = real("6.18") else {
        return;
    };
    let run = "[task.main]\nrun = [\n  { map = \"m\", kind = \"anon-private\", size = \"200M\" },\n  \
        { touch = \"m\", access = \"write\" },\n]\n";
    let mut scenario = workload("128M", "", run);
    // So that the mapping itself is not refused.
    scenario
        .kernel
        .sysctl
        .insert("overcommit_memory".into(), "1".into());
    let outcome = guest::run(&scenario, &options).unwrap_or_else(|error| panic!("{error}"));
    match &outcome.recording.outcome {
        Outcome::OutOfMemory { task, verdict, .. } => {
            assert_eq!(task, "main");
            assert!(verdict.contains("OOM killer"), "{verdict}");
        }
        other => panic!("{other:?}"),
    }
    assert!(
        outcome
            .console
            .iter()
            .any(|line| line.contains("Out of memory")),
        "the console says so too"
    );
}

#[test]
fn too_little_ram_and_no_drivers_are_told_apart() {
    let _alone = alone();
    let Some(mut options) = real("6.18") else {
        return;
    };
    options.timeout = Duration::from_secs(60);
    let error = guest::run(&workload("24M", "", SLEEP), &options).expect_err("too small");
    assert!(
        matches!(error, GuestError::RamTooSmall { ram_mb: 24, .. }),
        "{error}"
    );
    options.image.modules = None;
    options.image.config = None;
    let error = guest::run(&workload("128M", "64M", SLEEP), &options).expect_err("no virtio_blk");
    assert!(matches!(error, GuestError::NoVirtio { .. }), "{error}");
}

#[test]
fn a_host_that_cannot_write_the_disks_is_told() {
    let _alone = alone();
    let Some(mut options) = real("6.18") else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let scratch = directory.path().join("scratch");
    std::fs::create_dir(&scratch).expect("a directory");
    // As a disk that runs full: the host's write fails, at 8 MiB of each file.
    let qemu = guest::find_qemu().expect("it is there");
    let limited = directory.path().join("qemu");
    let script = format!(
        "#!/bin/sh\ntrap '' XFSZ\nulimit -f 16384\nexec '{}' \"$@\"\n",
        qemu.display()
    );
    std::fs::write(&limited, script).expect("written");
    std::fs::set_permissions(&limited, std::fs::Permissions::from_mode(0o755)).expect("permitted");
    options.qemu = Some(limited);
    options.scratch = Some(scratch.clone());
    let run = "[task.main]\nrun = [\n  { map = \"m\", kind = \"anon-private\", size = \"160M\" },\n  \
        { touch = \"m\", access = \"write\" },\n]\n";
    let error = guest::run(&workload("128M", "256M", run), &options).expect_err("swap is lost");
    let text = error.to_string();
    assert!(
        matches!(&error, GuestError::DisksLost { problem, .. } if problem.contains("WRITE")),
        "{text}"
    );
    assert!(text.contains("ulimit -f"), "{text}");
    let left = std::fs::read_dir(&scratch).expect("a directory");
    assert_eq!(left.count(), 0, "nothing is left behind");
}

#[test]
fn a_statement_that_fails_in_a_guest_has_its_line() {
    let _alone = alone();
    let Some(options) = real("6.18") else {
        return;
    };
    let run = "[task.main]\nrun = [{ sysctl = \"no_such_setting\", value = 1 }]\n";
    let error = guest::run(&workload("128M", "", run), &options).expect_err("no such setting");
    assert!(matches!(error, GuestError::WorkloadFailed { .. }));
    assert!(error.to_string().contains("no_such_setting"), "{error}");
}

#[test]
fn devices_that_a_guest_does_not_have_are_refused() {
    let mut scenario = workload("256M", "64M", SLEEP);
    assert!(guest::check(&scenario).is_ok());
    let device = &mut scenario.machine.devices[0];
    device.members = 12;
    device.write_errors = Some(WriteErrors {
        start: 0,
        size: 4096,
        after: 0,
        every: 1,
        count: 1,
    });
    let refusal = guest::check(&scenario)
        .expect_err("it has neither")
        .to_string();
    assert!(
        refusal.contains("with members") && refusal.contains("with write_errors"),
        "{refusal}"
    );
}
