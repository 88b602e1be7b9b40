//! Which changes make a difference: puzzles whose solution is known, and kernels that do the same.
//!
//! A puzzle is a kernel and the same with three changes that matter to a small load and twenty that do not. Which matter
//! is judged apart from `bisect`, by plain runs on other boots: with each of the three alone, and without each of them, the
//! figure is clearly another; with the twenty alone, and without them, it is not. `LOWMARK_PUZZLES=20` tries twenty puzzles
//! and twenty pairs of kernels that do the same.

mod common;

use common::Place;
use serde_json::Value;

/// Puzzles, and pairs of kernels that do the same, unless `LOWMARK_PUZZLES` says otherwise.
const PUZZLES: usize = 1;
/// As many puzzles as show how often one is solved.
const TWENTY: usize = 20;
/// Changes of a puzzle that matter.
const CAUSES: usize = 3;
/// Runs by which a puzzle is judged, on boots that `bisect` does not use.
const JUDGING: u64 = 24;
const JUDGING_SEED: u64 = 5000;
/// The kernel of all puzzles.
const KERNEL: &str = "v3.6";
/// Changes of a puzzle that do not matter.
const OTHERS: usize = 20;

/// Where the changes of puzzles come from.
struct Setup {
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
        order: "random",
        figure: ("Direct pages scanned", Some("pgscan_direct")),
        causes: &[
            &["+swapin_nr_pages", "+swapin_readahead=hugh-new"],
            &["+no-wait-in-balance-pgdat", "+flatten-kswapd-priority-loop"],
            &["+blk-mq-alone"],
            &["+anon-inactive-first"],
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
            "anon-workingset",
        ],
    },
    Setup {
        order: "seq",
        figure: ("Direct pages scanned", Some("pgscan_direct")),
        causes: &[
            &["+no-wait-in-balance-pgdat", "+flatten-kswapd-priority-loop"],
            &["+blk-mq-alone"],
            &["+anon-inactive-first"],
            &["+plugs-in-order"],
            &["+anon-not-dirtyable"],
        ],
        neither: &[
            "node-lru",
            "one-counter-of-tags",
            "only-evict-file-when-plenty",
            "vma-readahead",
            "reserve-first-megabyte",
            "nonfull-clusters-first",
            "scan-balance-counts-work",
            "lru-cost-model",
            "activate-tail-writeback",
            "anon-workingset",
        ],
    },
    Setup {
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
    Setup {
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
        order: "seq",
        figure: ("Elapsed", None),
        causes: &[
            &["+fair-zone-allocator"],
            &["+anon-not-dirtyable"],
            &["+swap-slot-cache"],
            &["+only-evict-file-when-plenty"],
            &["+flatten-kswapd-priority-loop"],
            &["+node-lru"],
        ],
        neither: &[
            "no-wait-in-balance-pgdat",
            "vma-readahead",
            "blk-mq-alone",
            "one-counter-of-tags",
            "lru-cost-model",
            "scan-balance-counts-work",
            "reserve-first-megabyte",
            "swap-clusters-free-first",
            "nonfull-clusters-first",
            "plugs-in-order",
            "plug-32-requests",
            "flush-large-plugged-requests",
            "proportional-scan",
            "proportional-direct-reclaim",
            "anon-inactive-first",
            "anon-workingset",
            "ssd-clusters",
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

/// A counter, or, where the kernel counts by zone, the sum of those of all zones.
fn sum_of(counters: &Value, name: &str) -> f64 {
    let of_zone = |key: &str| {
        let zone = key
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('_'));
        zone.is_some_and(|zone| ["dma", "dma32", "normal", "high"].contains(&zone))
    };
    let counters = counters.as_object().expect("counters");
    let found: Vec<f64> = counters
        .iter()
        .filter(|(key, _)| *key == name || of_zone(key))
        .map(|(_, value)| value.as_f64().expect("a number"))
        .collect();
    assert!(!found.is_empty(), "{name} is counted");
    found.iter().sum()
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
        Some(counter) => sum_of(&run["counters"], counter),
        None => run["elapsed_ns"].as_f64().expect("a time"),
    };
    let values: Vec<f64> = runs.iter().map(figure).collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, (squares / (count - 1.0) / count).sqrt()))
}

/// Whether two means are clearly not the same: by 3 % and nine errors at least, which ten boots show as well.
fn differ(a: (f64, f64), b: (f64, f64)) -> bool {
    let apart = (a.0 - b.0).abs();
    apart > 0.03 * b.0 && apart > 9.0 * a.1.hypot(b.1)
}

/// Whether two means are nearly the same: by 2 %, or two errors.
fn alike(a: (f64, f64), b: (f64, f64)) -> bool {
    let apart = (a.0 - b.0).abs();
    apart < 0.02 * b.0 || apart < 2.0 * a.1.hypot(b.1)
}

/// Changes that came later and that the kernel can have alone.
fn applicable(place: &Place, version: &str) -> Vec<String> {
    let later = later_changes(place, version).into_iter();
    let accepted = |name: &String| {
        let kernel = format!("{version}+{name}");
        let arguments = [
            "run",
            "small.toml",
            "--set",
            "order=seq",
            "--kernel",
            &kernel,
            "--quiet",
        ];
        place.lowmark(&arguments).status == 0
    };
    later.filter(accepted).collect()
}

/// Those of them that are no causes.
fn pool(setup: &Setup, applicable: &[String]) -> Vec<String> {
    let is_cause = |name: &String| {
        let mut causes = setup.causes.iter().flat_map(|list| list.iter());
        causes.any(|cause| cause.get(1..) == Some(name)) || setup.neither.contains(&name.as_str())
    };
    let idle = applicable.iter().filter(|name| !is_cause(name));
    idle.map(|name| format!("+{name}")).collect()
}

/// A puzzle, if what was drawn is one: the causes, and all changes.
fn draw(
    place: &Place,
    setup: &Setup,
    pool: &[String],
    draw: &mut Draw,
) -> Option<(Vec<String>, Vec<String>)> {
    let lists = draw.some(setup.causes, CAUSES);
    let causes: Vec<String> = lists
        .iter()
        .map(|list| list[draw.below(list.len())].to_owned())
        .collect();
    // Not all go together.
    let together = |others: &Vec<String>| {
        let kernel = kernel(KERNEL, others);
        let done = place.lowmark(&["run", "small.toml", "--kernel", &kernel, "--quiet"]);
        done.status == 0
    };
    let mut draws = (0..10).map(|_| draw.some(pool, OTHERS));
    let others = draws.find(together)?;
    let all: Vec<String> = causes.iter().chain(&others).cloned().collect();
    let of = |changes: &[String]| measured(place, setup, &kernel(KERNEL, changes));
    let without =
        |gone: &String| -> Vec<String> { all.iter().filter(|it| *it != gone).cloned().collect() };
    let (whole, nothing) = (of(&all)?, of(&[])?);
    let alone = |cause: &String| of(std::slice::from_ref(cause));
    let matter = causes.iter().all(|cause| {
        let apart = |it: Option<(f64, f64)>, from| it.is_some_and(|it| differ(it, from));
        apart(alone(cause), nothing) && apart(of(&without(cause)), whole)
    });
    let little = alike(of(&others)?, nothing) && alike(of(&causes)?, whole);
    (matter && little).then_some((causes, all))
}

/// Names of the causes that are named for a figure.
fn named(place: &Place, setup: &Setup, changes: &[String]) -> Vec<String> {
    let order = format!("order={}", setup.order);
    let to = kernel(KERNEL, changes);
    let document = place
        .lowmark(&[
            "bisect",
            "small.toml",
            "--set",
            &order,
            "--from",
            KERNEL,
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

/// No change is named that does not matter, and two thirds of those that do are named; of twenty puzzles nine of ten are
/// solved.
#[test]
fn three_changes_among_twenty_others_are_named() {
    let place = Place::new();
    let (mut solved, mut tried, mut right, mut wrong) = (0, 0, 0, Vec::new());
    let mut random = Draw(20_260_101);
    let applicable = applicable(&place, KERNEL);
    let pools = SETUPS.each_ref().map(|setup| pool(setup, &applicable));
    for attempt in 0..60 * puzzles() {
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
        let figure = setup.figure.0;
        println!("{KERNEL} {figure} {expected:?}: {found:?}");
        solved += usize::from(found == expected);
        right += found.iter().filter(|name| expected.contains(name)).count();
        wrong.extend(found.into_iter().filter(|name| !expected.contains(name)));
    }
    assert_eq!(tried, puzzles(), "too few puzzles were drawn");
    assert!(
        right * 3 >= 2 * CAUSES * tried,
        "{right} of {tried} times {CAUSES}"
    );
    let bar = if tried < TWENTY { 0 } else { 9 };
    assert!(solved * 10 >= tried * bar, "{solved} of {tried} are solved");
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
        let to = kernel(KERNEL, &random.some(&idle, 5));
        let seed = (1 + 100 * trial).to_string();
        let document = place
            .lowmark(&[
                "bisect",
                "small.toml",
                "--set",
                "order=random",
                "--from",
                KERNEL,
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
