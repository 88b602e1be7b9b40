//! Recordings of this very system, and rings that stay small.

use super::*;
use lowmark_record::{CounterLog, Recording};
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

fn options(places: &Path) -> Options {
    Options {
        level: Level::Counters,
        ring: None,
        cgroups: Vec::new(),
        command: Vec::new(),
        spool: std::env::temp_dir(),
        places: Some(Places(vec![places.to_owned()])),
        roots: Roots::default(),
    }
}

fn log<'a>(recording: &'a Recording, file: &str) -> &'a CounterLog {
    let system = recording.system.as_ref().expect("a system");
    system
        .history_of(file)
        .unwrap_or_else(|| panic!("no {file}"))
}

#[test]
fn this_system_is_recorded_and_read_back() {
    let place = tempfile::tempdir().expect("a directory");
    let mut session = Session::begin(options(place.path())).expect("begun");
    let (_sender, orders): (Sender<Order>, _) = channel();
    let length = Duration::from_millis(1_250);
    session
        .run(Some(length), &orders, &mut |_| panic!("nobody asked"))
        .expect("run");
    let recording = session.finish().expect("ended").recording().expect("read");
    let dir = place.path().join("host.rec");
    recording.write(&dir).expect("written");
    let read = Recording::read(&dir).expect("read");

    assert_eq!(read.run.backend, "host");
    assert!(read.elapsed_ns >= 1_250_000_000);
    let vmstat = log(&read, "proc/vmstat");
    let times: Vec<u64> = vmstat
        .values("pgfault")
        .into_iter()
        .map(|(time, _)| time)
        .collect();
    assert!(times.is_sorted());
    assert_eq!((times[0], times.last()), (0, Some(&read.elapsed_ns)));
    let recorder = read
        .system
        .as_ref()
        .and_then(|system| system.recorder.clone())
        .expect("told");
    // A busy machine may leave out some, which it counts; a slow one looks at a file less often.
    assert!(recorder.looks >= times.len() as u64 && times.len() >= 2);
    assert!(recorder.looks + recorder.missed_looks >= 12, "{recorder:?}");
    assert!(recorder.cpu_ns > 0 && recorder.cpu_ns < recorder.wall_ns);
    assert!(recorder.began_unix_ns > 1_500_000_000_000_000_000);

    // The whole is the sum of its parts, and the snapshots around it hold the rest.
    let faults = vmstat.values("pgfault");
    let grown = faults[faults.len() - 1].1 - faults[0].1;
    assert_eq!(read.counters["pgfault"], grown);
    assert_eq!(
        read.state.get("nr_free_pages"),
        vmstat.last("nr_free_pages").as_ref()
    );
    assert!(read.counters.contains_key("pswpin") && !read.counters.contains_key("nr_free_pages"));
    assert!(read.gauges.names.contains(&"nr_free_pages".to_owned()));
    let system = read.system.as_ref().expect("a system");
    assert!(system.vmstat.names.contains(&"pgfault".to_owned()));
    for file in [
        "proc/vmstat",
        "proc/swaps",
        "proc/cmdline",
        "proc/zoneinfo",
        "proc/sys/vm/swappiness",
    ] {
        assert!(
            system.before.contains_key(file) && system.after.contains_key(file),
            "{file}"
        );
    }
    let total = log(&read, "proc/meminfo").last("MemTotal").expect("memory");
    assert!(log(&read, "proc/meminfo").last("MemFree") <= Some(total));
    let zones = log(&read, "proc/zoneinfo");
    assert!(zones.names().iter().any(|name| name.ends_with("/free")));
    assert!(!system.before.contains_key("proc/sys/vm/stat_refresh"));
}

/// A ring of a second that runs for three holds the last second, in order, from a first look that is whole.
#[test]
fn a_ring_holds_the_last_of_it() {
    let place = tempfile::tempdir().expect("a directory");
    let options = Options {
        ring: Some(Duration::from_secs(1)),
        ..options(place.path())
    };
    let mut session = Session::begin(options).expect("begun");
    let (sender, orders) = channel();
    sender.send(Order::Capture).expect("heard");
    let mut captures = Vec::new();
    let length = Duration::from_secs(3);
    session
        .run(Some(length), &orders, &mut |capture| captures.push(capture))
        .expect("run");
    assert_eq!(captures.len(), 1);
    captures.push(session.capture().expect("captured"));
    for (capture, cut) in captures.into_iter().zip([false, true]) {
        assert_eq!(capture.cut, cut);
        let recording = capture.recording().expect("read");
        let vmstat = log(&recording, "proc/vmstat");
        let times: Vec<u64> = vmstat.looks().map(|look| look.time_ns).collect();
        assert!(times.is_sorted() && times.last() == Some(&recording.elapsed_ns));
        assert!(
            recording.elapsed_ns <= 1_000_000_000,
            "{}",
            recording.elapsed_ns
        );
        let first = vmstat.looks().next().expect("a look");
        assert_eq!(first.changes.len(), vmstat.names().len());
        let system = recording.system.as_ref().expect("a system");
        let before = &system.before["proc/vmstat"];
        let free = vmstat.values("nr_free_pages")[0].1;
        assert!(!cut || before.contains(&format!("nr_free_pages {free}\n")));
        assert_eq!(system.before.contains_key("proc/meminfo"), !cut);
        assert!(system.before.contains_key("proc/sys/vm/swappiness"));
    }
    // What is held of the past is no more than a second and what housekeeping has not come to yet.
    let held: Vec<usize> = session.counters.logs().map(CounterLog::len).collect();
    assert!(held.iter().all(|looks| *looks <= 24), "{held:?}");
}

#[test]
fn it_ends_when_it_is_told_to() {
    let place = tempfile::tempdir().expect("a directory");
    let mut session = Session::begin(options(place.path())).expect("begun");
    let (sender, orders) = channel();
    let began = Instant::now();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        sender.send(Order::Stop)
    });
    session.run(None, &orders, &mut |_| {}).expect("run");
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_system_without_some_files_is_recorded_without_them() {
    let place = tempfile::tempdir().expect("a directory");
    let roots = Roots {
        proc: place.path().join("proc"),
        sys: place.path().join("sys"),
    };
    let with = |roots: &Roots| Options {
        roots: roots.clone(),
        ..options(place.path())
    };
    let error = Session::begin(with(&roots))
        .expect_err("no vmstat")
        .to_string();
    assert!(error.contains("proc/vmstat"), "{error}");
    std::fs::create_dir(&roots.proc).expect("made");
    std::fs::write(roots.proc.join("vmstat"), "pgfault 7\nnr_free_pages 3\n").expect("written");
    let session = Session::begin(with(&roots)).expect("begun");
    let remarks = session.remarks().join("\n");
    assert!(
        remarks.contains("pressure/memory is not recorded: this kernel counts no pressure"),
        "{remarks}"
    );
    assert!(remarks.contains("zoneinfo is not recorded"), "{remarks}");
    let recording = session.finish().expect("ended").recording().expect("read");
    assert_eq!(recording.state["nr_free_pages"], 3);
    assert_eq!(recording.counters["pgfault"], 0);
}

#[test]
fn paths_of_cgroups_are_those_of_the_system() {
    assert_eq!(
        cgroup(Path::new("system.slice/x")),
        "sys/fs/cgroup/system.slice/x"
    );
    assert_eq!(cgroup(Path::new("/sys/fs/cgroup/a/")), "sys/fs/cgroup/a");
    assert_eq!(cgroup(Path::new("/mnt/cgroup2/a")), "mnt/cgroup2/a");
}
