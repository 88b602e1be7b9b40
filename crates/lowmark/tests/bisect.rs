//! Which changes make a difference: puzzles whose solution is known, and kernels that do the same.
//!
//! A puzzle is a kernel and the same with three changes that matter to a small load and twenty that do not. Which matter
//! is judged apart from `bisect`, by plain runs on other boots: without each of the three the figure is clearly another,
//! without the twenty it is not. `LOWMARK_PUZZLES=20` tries twenty puzzles and twenty pairs of kernels that do the same.

mod common;

use common::Place;
use serde_json::Value;

/// Puzzles, and pairs of kernels that do the same, unless `LOWMARK_PUZZLES` says otherwise.
const PUZZLES: usize = 4;
/// Runs by which a puzzle is judged, on boots that `bisect` does not use.
const JUDGING: u64 = 24;
const JUDGING_SEED: u64 = 5000;
/// Changes of a puzzle that do not matter.
const OTHERS: usize = 20;

/// Where the changes of puzzles come from.
struct Setup {
    kernel: &'static str,
    order: &'static str,
    /// Name of the figure, as a row and as a counter; none of time.
    figure: (&'static str, Option<&'static str>),
    /// What may matter; of each list one is taken at most.
    causes: &'static [&'static [&'static str]],
    /// What may matter a little or goes with a cause.
    neither: &'static [&'static str],
}

const SETUPS: [Setup; 5] = [
    Setup {
        kernel: "v3.6",
        order: "random",
        figure: ("Direct pages scanned", Some("pgscan_direct")),
        causes: &[
            &["+swapin_nr_pages", "+swapin_readahead=hugh-new"],
            &["+no-wait-in-balance-pgdat", "+flatten-kswapd-priority-loop"],
            &["+blk-mq-alone"],
            &["+anon-inactive-first"],
            &["+anon-workingset"],
            &["+plugs-in-order"],
        ],
        neither: &[
            "node-lru",
            "vma-readahead",
            "one-counter-of-tags",
            "proportional-scan",
            "proportional-direct-reclaim",
            "anon-not-dirtyable",
            "reserve-first-megabyte",
            "lru-cost-model",
            "scan-balance-counts-work",
            "nonfull-clusters-first",
            "plug-32-requests",
            "flush-large-plugged-requests",
        ],
    },
    Setup {
        kernel: "v4.9",
        order: "random",
        figure: ("Kswapd pages scanned", Some("pgscan_kswapd")),
        causes: &[
            &["+skipped-pages-count"],
            &["+kswapd-keep-awake", "+kswapd-sleep-any-zone"],
            &["+anon-inactive-first"],
            &["+reclaim-throttle"],
            &["+reserve-first-megabyte"],
        ],
        neither: &[
            "kswapd-remembers-class",
            "one-counter-of-tags",
            "blk-mq-alone",
            "scan-control-per-node",
            "skipped-pages-bounded",
            "lru-cost-model",
            "scan-balance-counts-work",
        ],
    },
    Setup {
        kernel: "v3.6",
        order: "random",
        figure: ("Swap Outs", Some("pswpout")),
        causes: &[
            &["+swapin_nr_pages", "+swapin_readahead=hugh-new"],
            &["+anon-workingset"],
            &["+anon-inactive-first"],
            &["+reserve-first-megabyte"],
        ],
        neither: &[
            "only-evict-file-when-plenty",
            "no-wait-in-balance-pgdat",
            "node-lru",
            "flatten-kswapd-priority-loop",
            "vma-readahead",
            "anon-not-dirtyable",
        ],
    },
    Setup {
        kernel: "v4.9",
        order: "seq",
        figure: ("Kswapd pages scanned", Some("pgscan_kswapd")),
        causes: &[
            &["+skipped-pages-count"],
            &["+kswapd-keep-awake", "+kswapd-sleep-any-zone"],
            &["+anon-inactive-first"],
            &["+reclaim-throttle"],
            &["+reserve-first-megabyte"],
        ],
        neither: &[
            "kswapd-remembers-class",
            "one-counter-of-tags",
            "blk-mq-alone",
            "scan-control-per-node",
            "skipped-pages-bounded",
            "lru-cost-model",
            "scan-balance-counts-work",
            "anon-workingset",
        ],
    },
    Setup {
        kernel: "v3.6",
        order: "random",
        figure: ("Elapsed", None),
        causes: &[
            &["+swapin_nr_pages", "+swapin_readahead=hugh-new"],
            &["+blk-mq-alone", "+plugs-in-order"],
            &["+anon-not-dirtyable"],
            &["+anon-workingset"],
        ],
        neither: &[
            "vma-readahead",
            "one-counter-of-tags",
            "reserve-first-megabyte",
            "merge-with-last-plugged",
            "merge-with-newest-plugged",
            "plug-32-requests",
            "flush-large-plugged-requests",
        ],
    },
];

/// Changes that alter the course of a run on v3.6 and none of its figures beyond the noise of 60 boots.
const IDLE: [&str; 8] = [
    "managed-pages",
    "balanced-zones-of-the-request",
    "block-on-immediate-writeback",
    "fair-zone-allocator",
    "reserve-off-free-pages",
    "precise-dirty-ratios",
    "activate-tail-writeback",
    "merge-with-newest-plugged",
];

/// Draws by SplitMix64.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    /// So many of a list, in their order.
    fn some<T: Clone>(&mut self, list: &[T], count: usize) -> Vec<T> {
        let mut left = count.min(list.len());
        let mut chosen = Vec::new();
        for (at, thing) in list.iter().enumerate() {
            if self.below(list.len() - at) < left {
                chosen.push(thing.clone());
                left -= 1;
            }
        }
        chosen
    }
}

fn puzzles() -> usize {
    let asked = std::env::var("LOWMARK_PUZZLES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(PUZZLES)
}

/// A kernel with some things on top; settings stand at the end.
fn kernel(version: &str, changes: &[String]) -> String {
    let (settings, rows): (Vec<_>, Vec<_>) = changes.iter().partition(|it| it.starts_with(','));
    let rows: String = rows.into_iter().cloned().collect();
    let settings: String = settings.into_iter().cloned().collect();
    format!("{version}{rows}{settings}")
}

/// Names of the changes that came after a version.
fn later_changes(place: &Place, version: &str) -> Vec<String> {
    let range = format!("{version}..v6.18");
    let list = place
        .lowmark(&["list", "kernels", &range, "--format", "json"])
        .json();
    let mut names = Vec::new();
    collect(&list, &mut names);
    assert!(names.len() > OTHERS, "{list}");
    names
}

/// Names of all changes in a document.
fn collect(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|it| collect(it, names)),
        Value::Object(map) => match (map.get("name"), map.get("commit")) {
            (Some(Value::String(name)), Some(_)) => names.push(name.clone()),
            _ => map.values().for_each(|it| collect(it, names)),
        },
        _ => {}
    }
}

/// Mean of a figure and its error on boots that `bisect` does not use; none if the model refuses the kernel.
fn measured(place: &Place, setup: &Setup, kernel: &str) -> Option<(f64, f64)> {
    let (order, seed, repeat) = (
        format!("order={}", setup.order),
        JUDGING_SEED.to_string(),
        JUDGING.to_string(),
    );
    let done = place.lowmark(&[
        "run",
        "small.toml",
        "--set",
        &order,
        "--kernel",
        kernel,
        "--seed",
        &seed,
        "--repeat",
        &repeat,
        "--format",
        "json",
        "--quiet",
    ]);
    if done.status != 0 {
        return None;
    }
    let document: Value = serde_json::from_str(&done.stdout).expect("JSON");
    let runs = document["runs"].as_array().expect("runs");
    let figure = |run: &Value| match setup.figure.1 {
        Some(counter) => run["counters"][counter].as_f64().expect("a counter"),
        None => run["elapsed_ns"].as_f64().expect("a time"),
    };
    let values: Vec<f64> = runs.iter().map(figure).collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, (squares / (count - 1.0) / count).sqrt()))
}

/// Whether two means are clearly not the same: by 3 % and five errors at least.
fn differ(a: (f64, f64), b: (f64, f64)) -> bool {
    let apart = (a.0 - b.0).abs();
    apart > 0.03 * b.0 && apart > 5.0 * a.1.hypot(b.1)
}

/// Whether two means are nearly the same: by 2 %, or two errors.
fn alike(a: (f64, f64), b: (f64, f64)) -> bool {
    let apart = (a.0 - b.0).abs();
    apart < 0.02 * b.0 || apart < 2.0 * a.1.hypot(b.1)
}

/// Changes that came later, that the kernel can have alone, and that are no causes.
fn pool(place: &Place, setup: &Setup) -> Vec<String> {
    let is_cause = |name: &String| {
        let mut causes = setup.causes.iter().flat_map(|list| list.iter());
        causes.any(|cause| cause.get(1..) == Some(name)) || setup.neither.contains(&name.as_str())
    };
    let later = later_changes(place, setup.kernel).into_iter();
    later
        .filter(|name| !is_cause(name))
        .map(|name| format!("+{name}"))
        .filter(|own| {
            let kernel = format!("{}{own}", setup.kernel);
            place
                .lowmark(&["run", "small.toml", "--kernel", &kernel, "--quiet"])
                .status
                == 0
        })
        .collect()
}

/// A puzzle, if what was drawn is one: the causes, and all changes.
fn draw(
    place: &Place,
    setup: &Setup,
    pool: &[String],
    draw: &mut Draw,
) -> Option<(Vec<String>, Vec<String>)> {
    let lists = draw.some(setup.causes, 3);
    let causes: Vec<String> = lists
        .iter()
        .map(|list| list[draw.below(list.len())].to_owned())
        .collect();
    // Not all go together.
    let together = |others: &Vec<String>| {
        let kernel = kernel(setup.kernel, others);
        let done = place.lowmark(&["run", "small.toml", "--kernel", &kernel, "--quiet"]);
        done.status == 0
    };
    let mut draws = (0..10).map(|_| draw.some(pool, OTHERS));
    let others = draws.find(together)?;
    let all: Vec<String> = causes.iter().chain(&others).cloned().collect();
    let of = |changes: &[String]| measured(place, setup, &kernel(setup.kernel, changes));
    let without =
        |gone: &String| -> Vec<String> { all.iter().filter(|it| *it != gone).cloned().collect() };
    let whole = of(&all)?;
    let matter = causes
        .iter()
        .all(|cause| of(&without(cause)).is_some_and(|it| differ(it, whole)));
    let little = alike(of(&others)?, of(&[])?) && alike(of(&causes)?, whole);
    (matter && little).then_some((causes, all))
}

/// Names of the causes that are named for a figure.
fn named(place: &Place, setup: &Setup, changes: &[String]) -> Vec<String> {
    let order = format!("order={}", setup.order);
    let to = kernel(setup.kernel, changes);
    let document = place
        .lowmark(&[
            "bisect",
            "small.toml",
            "--set",
            &order,
            "--from",
            setup.kernel,
            "--to",
            &to,
            "--metric",
            setup.figure.0,
            "--seed",
            "1",
            "--format",
            "json",
            "--quiet",
        ])
        .json();
    all_named(&document)
}

fn all_named(document: &Value) -> Vec<String> {
    let metrics = document["bisections"][0]["metrics"].as_array();
    let metrics = metrics.expect("metrics").iter();
    let causes = metrics.flat_map(|it| it["changes"].as_array().expect("changes"));
    let named = causes.filter(|cause| cause["named"] == true);
    let names = named.flat_map(|cause| cause["names"].as_array().expect("names"));
    names
        .map(|name| name.as_str().expect("a name").to_owned())
        .collect()
}

/// At least nine of ten puzzles are solved, and no change is named that does not matter.
#[test]
fn three_changes_among_twenty_others_are_named() {
    let place = Place::new();
    let (mut solved, mut tried, mut wrong) = (0, 0, Vec::new());
    let mut random = Draw(20_260_101);
    let pools = SETUPS.each_ref().map(|setup| pool(&place, setup));
    for attempt in 0..20 * puzzles() {
        if tried == puzzles() {
            break;
        }
        let at = attempt % SETUPS.len();
        let setup = &SETUPS[at];
        let Some((causes, all)) = draw(&place, setup, &pools[at], &mut random) else {
            continue;
        };
        tried += 1;
        let mut found = named(&place, setup, &all);
        let mut expected: Vec<String> = causes.iter().map(|it| it[1..].to_owned()).collect();
        expected.sort();
        found.sort();
        println!(
            "{} {} {expected:?}: {found:?}",
            setup.kernel, setup.figure.0
        );
        solved += usize::from(found == expected);
        wrong.extend(found.into_iter().filter(|name| !expected.contains(name)));
    }
    assert_eq!(tried, puzzles(), "too few puzzles were drawn");
    assert!(solved * 10 >= tried * 9, "{solved} of {tried} are solved");
    assert_eq!(
        wrong,
        Vec::<String>::new(),
        "these are named and do not matter"
    );
}

/// Changes that alter the course of a run and no figure of it: in at most one of twenty searches one is named.
#[test]
fn changes_that_do_nothing_are_not_named() {
    let place = Place::new();
    let mut random = Draw(7);
    let mut wrong = 0;
    for trial in 0..puzzles() {
        let idle = IDLE.map(|name| format!("+{name}"));
        let to = kernel("v3.6", &random.some(&idle, 5));
        let seed = (1 + 100 * trial).to_string();
        let document = place
            .lowmark(&[
                "bisect",
                "small.toml",
                "--set",
                "order=random",
                "--from",
                "v3.6",
                "--to",
                &to,
                "--seed",
                &seed,
                "--format",
                "json",
                "--quiet",
            ])
            .json();
        let named = all_named(&document);
        println!("{to}: {named:?}");
        wrong += usize::from(!named.is_empty());
    }
    assert!(wrong * 20 <= puzzles(), "{wrong} of {}", puzzles());
}
