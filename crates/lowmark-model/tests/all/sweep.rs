//! Every switch alone: a kernel with one variant changed, or with one change of the history that it does not have yet, is
//! refused for a reason, or is a kernel that works.
//!
//! A kernel works if the load ends, kswapd reclaims about as much as without the change, and what holds between any two events holds on a machine with
//! several zones on a node and several nodes. `-- --nocapture` prints what came of each.

use crate::common;
use lowmark_model::kernel::versions::{Change, HISTORY, at};
use lowmark_model::kernel::{DESCRIPTIONS, Kernel, KernelError, versions};
use lowmark_model::{Options, run};
use lowmark_record::Outcome;
use lowmark_spec::{Scenario, Toggle};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Versions of four eras: LRU lists by zone and foreground writeback; pauses; nodes; folios and slabs.
const VERSIONS: [&str; 4] = ["v2.6.36", "v3.14", "v4.9", "v6.18"];

/// With one switch turned, kswapd reclaims this part at least of what it reclaims in the version itself; where its waits
/// get longer, direct reclaimers take over much of it.
const LEAST_SHARE: u64 = 20;

/// Two processes swap on two nodes, the first of which has two zones; two more read a file and write one.
const LOAD: &str = r#"
lowmark = 1
[workload]
name = "sweep"
title = "sweep"
[machine]
use = "small-512m-ssd"
cpus = 2
reserved = "2M"
occupied = "8M"
nodes = ["36M", "12M"]
[kernel]
use = "v3.6"
[file.read]
size = "12M"
[file.written]
size = "6M"
[task.anon]
run = [
  { map = "m", kind = "anon-private", size = "36M" },
  { touch = "m", access = "write" },
  { repeat = 20, do = [{ touch = "m", access = "write", order = "random", count = 1000 }, { sleep = "20ms" }] },
]
[task.shared]
run = [
  { map = "s", kind = "anon-shared", size = "8M" },
  { touch = "s", access = "write", passes = 2 },
]
[task.reader]
run = [{ read = "read" }]
[task.writer]
run = [{ write = "written" }]
"#;

/// What came of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// It ran, and kswapd reclaimed.
    Works,
    /// Two variants do not fit together.
    Needs,
    /// It decides nothing in this kernel.
    Idle,
}

/// Runs the load on a version with some things changed: what came of it, and how many pages kswapd reclaimed.
fn fate(scenario: &Scenario, version: &str, toggles: &[Toggle]) -> Result<(Fate, u64), String> {
    let mut scenario = scenario.clone();
    scenario.kernel.version = version.into();
    scenario.kernel.toggles = toggles.to_vec();
    match Kernel::resolve(&scenario.kernel) {
        Ok(_) => {}
        Err(KernelError::Needs { .. }) => return Ok((Fate::Needs, 0)),
        Err(KernelError::LeftOut { .. } | KernelError::WithoutGenerations { .. }) => {
            return Ok((Fate::Idle, 0));
        }
        Err(error) => return Err(error.to_string()),
    }
    let options = Options {
        events: false,
        check_every: 20_000,
    };
    let recording = run(&scenario, &options, &mut |_| {}).map_err(|error| error.to_string())?;
    let sum = |prefix: &str| -> u64 {
        let counters = recording.counters.iter();
        let own = counters.filter(|(name, _)| name.starts_with(prefix));
        own.map(|(_, count)| count).sum()
    };
    if recording.outcome != Outcome::Completed {
        return Err(format!("{:?}", recording.outcome));
    }
    // The name before 3.4, and since.
    Ok((Fate::Works, sum("kswapd_steal") + sum("pgsteal_kswapd")))
}

/// Does something with each of many things, on both CPUs of a small machine.
fn each<T: Sync>(things: &[T], doing: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(thing) = things.get(next.fetch_add(1, Ordering::Relaxed)) {
                    doing(thing);
                }
            });
        }
    });
}

/// Runs all of these; how many of each version came to which end.
fn sweep(kernels: &[(String, Toggle)]) -> BTreeMap<String, BTreeMap<Fate, Vec<String>>> {
    let scenario = common::scenarios(LOAD.into()).remove(0);
    let found = Mutex::new(BTreeMap::<String, BTreeMap<Fate, Vec<String>>>::new());
    let wrong = Mutex::new(Vec::new());
    let asked: BTreeSet<&str> = kernels
        .iter()
        .map(|(version, _)| version.as_str())
        .collect();
    let own = |version| {
        (
            version,
            fate(&scenario, version, &[]).expect("a release works").1,
        )
    };
    let own: BTreeMap<&str, u64> = asked.into_iter().map(own).collect();
    let judged = |version: &str, toggle: &Toggle| {
        let (fate, reclaimed) = fate(&scenario, version, std::slice::from_ref(toggle))?;
        let own = own[version];
        if fate == Fate::Works && reclaimed < own / LEAST_SHARE {
            return Err(format!(
                "kswapd reclaims {reclaimed} pages, and {own} without it"
            ));
        }
        Ok(fate)
    };
    each(kernels, |(version, toggle)| match judged(version, toggle) {
        Ok(fate) => {
            let mut found = found.lock().expect("nobody panicked");
            let of_version = found.entry(version.clone()).or_default();
            of_version.entry(fate).or_default().push(toggle.to_string());
        }
        Err(error) => {
            let mut wrong = wrong.lock().expect("nobody panicked");
            wrong.push(format!("{version}{toggle}: {error}"));
        }
    });
    let mut wrong = wrong.into_inner().expect("nobody panicked");
    wrong.sort();
    assert_eq!(wrong, Vec::<String>::new());
    found.into_inner().expect("nobody panicked")
}

fn print(found: &BTreeMap<String, BTreeMap<Fate, Vec<String>>>) {
    for (version, fates) in found {
        for (fate, toggles) in fates {
            println!("{version} {fate:?} {}", toggles.len());
            if *fate != Fate::Works {
                toggles.iter().for_each(|toggle| println!("    {toggle}"));
            }
        }
    }
}

#[test]
fn every_variant_alone_works_or_is_refused() {
    let mut kernels = Vec::new();
    for version in VERSIONS {
        let known = versions().iter().find(|known| known.to_string() == version);
        let settings = at(*known.expect("a version")).settings();
        for mechanism in DESCRIPTIONS {
            for (variant, _) in mechanism.variants {
                if !settings.contains(&(mechanism.name, *variant)) {
                    let toggle = Toggle::Set {
                        mechanism: mechanism.name.into(),
                        variant: (*variant).into(),
                    };
                    kernels.push((version.to_owned(), toggle));
                }
            }
        }
    }
    let found = sweep(&kernels);
    print(&found);
    for version in VERSIONS {
        let works = found[version].get(&Fate::Works).map_or(0, Vec::len);
        let all: usize = found[version].values().map(Vec::len).sum();
        // Most switches are independent of all others.
        assert!(works * 2 > all, "{version}: {works} of {all}");
    }
}

#[test]
fn every_change_alone_works_in_the_version_before_it_or_is_refused() {
    let before = |change: &Change| {
        let earlier = versions().iter().take_while(|it| **it < change.version);
        earlier.last().map(|version| version.to_string())
    };
    let alone = |change: &Change| Some((before(change)?, Toggle::Apply(change.name.into())));
    let kernels: Vec<(String, Toggle)> = HISTORY.iter().filter_map(alone).collect();
    let found = sweep(&kernels);
    print(&found);
    let works: usize = found
        .values()
        .filter_map(|of| of.get(&Fate::Works))
        .map(Vec::len)
        .sum();
    assert!(
        works * 4 > kernels.len() * 3,
        "{works} of {}",
        kernels.len()
    );
}
