//! Which changes make a difference: puzzles whose solution is known, and kernels that do the same.
//!
//! A puzzle is a kernel and the same with three changes that matter to a small load and twenty that do not. Which matter
//! is judged apart from `bisect`, by plain runs on other boots: with each of the three alone, and without each of them, the
//! figure is clearly another; with the twenty alone, and without them, it is not. `LOWMARK_PUZZLES=20` tries twenty puzzles
//! and twenty pairs of kernels that do the same, `LOWMARK_PUZZLES_SEED` draws others.

use crate::common::Place;
use serde_json::Value;
use std::collections::BTreeMap;

/// Puzzles, and pairs of kernels that do the same, unless `LOWMARK_PUZZLES` says otherwise.
const PUZZLES: usize = 1;
/// What puzzles are drawn by, unless `LOWMARK_PUZZLES_SEED` says otherwise.
const SEED: u64 = 20_260_101;
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

/// A number from the environment.
fn asked<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

fn puzzles() -> usize {
    asked("LOWMARK_PUZZLES").unwrap_or(PUZZLES)
}

fn seed() -> u64 {
    asked("LOWMARK_PUZZLES_SEED").unwrap_or(SEED)
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

/// Mean of a figure and its error; none if the model refuses the kernel.
type Measured = Option<(f64, f64)>;

/// What was measured, by order and kernel and by the name of the figure.
type Known = BTreeMap<(String, &'static str), Measured>;

/// A figure of a kernel on boots that `bisect` does not use.
fn measured(place: &Place, setup: &Setup, kernel: &str) -> Measured {
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
    known: &mut Known,
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
    let mut of = |changes: &[String]| {
        let kernel = kernel(KERNEL, changes);
        let key = (format!("{} {kernel}", setup.order), setup.figure.0);
        let known = known.entry(key);
        *known.or_insert_with(|| measured(place, setup, &kernel))
    };
    let nothing = of(&[])?;
    for cause in &causes {
        if !differ(of(std::slice::from_ref(cause))?, nothing) {
            return None;
        }
    }
    let (idle, whole, without_others) = (of(&others)?, of(&all)?, of(&causes)?);
    if !alike(idle, nothing) || !alike(without_others, whole) {
        return None;
    }
    for gone in &causes {
        let without: Vec<String> = all.iter().filter(|it| *it != gone).cloned().collect();
        if !differ(of(&without)?, whole) {
            return None;
        }
    }
    Some((causes, all))
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

/// Nine of ten puzzles are solved, and no change is named that does not matter.
#[test]
fn three_changes_among_twenty_others_are_named() {
    let place = Place::new();
    let (mut solved, mut tried, mut right, mut wrong) = (0, 0, 0, Vec::new());
    let mut random = Draw(seed());
    let applicable = applicable(&place, KERNEL);
    let pools = SETUPS.each_ref().map(|setup| pool(setup, &applicable));
    let mut known = Known::new();
    for attempt in 0..1000 * puzzles() {
        if tried == puzzles() {
            break;
        }
        let at = attempt % SETUPS.len();
        let setup = &SETUPS[at];
        let Some((causes, all)) = draw(&place, setup, &pools[at], &mut random, &mut known) else {
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
        solved * 10 >= tried * 9,
        "{solved} of {tried} are solved, {right} causes of {CAUSES} in each are named"
    );
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
    let mut random = Draw(seed() + 7);
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

/// Names of the changes that two ends differ in.
fn changes(document: &Value) -> Vec<&str> {
    let changes = document["bisections"][0]["changes"].as_array();
    let names = changes.expect("changes").iter().map(|it| &it["name"]);
    names.map(|name| name.as_str().expect("a name")).collect()
}

/// A sysctl is a change of the kernel, a field of the machine one of its own; neither hides the other.
#[test]
fn settings_of_one_side_are_changes() {
    let place = Place::new();
    let ends = "--from v3.6 --to v3.6+swapin_nr_pages --from-set ram=32M --to-set ram=36M --to-set swappiness=59";
    let document = place
        .lowmark(
            &("bisect small.toml --set order=random --metric swap-ins --format json --quiet "
                .to_owned()
                + ends)
                .split(' ')
                .collect::<Vec<_>>(),
        )
        .json();
    let expected = ["swapin_nr_pages", "swappiness=59", "ram=36M"];
    assert_eq!(changes(&document), expected);
    let mut named = all_named(&document);
    named.sort();
    assert_eq!(named, ["ram=36M", "swapin_nr_pages"]);
    let causes = document["bisections"][0]["metrics"][0]["changes"].as_array();
    for cause in causes.expect("causes") {
        assert!(cause["alone"]["value"].as_f64() < Some(0.0), "{cause}");
    }
}

/// Columns of evaluations are ends, and the cells of a row the figure.
#[test]
fn columns_of_evaluations_are_ends() {
    let place = Place::new();
    let lowmark = |more: &str| {
        let arguments =
            format!("bisect {more} --set touches=2000 --repeat 5 --quiet --format json");
        place.lowmark(&arguments.split(' ').collect::<Vec<_>>())
    };
    let document = lowmark(
        "--from swap-readahead-shaohua-2014:Vanilla --to swap-readahead-shaohua-2014:Hugh --row Seq",
    )
    .json();
    assert_eq!(changes(&document), ["swapin_readahead=hugh-new"]);
    let bisection = &document["bisections"][0];
    let title = bisection["title"].as_str().expect("a title");
    assert!(
        title.contains("order=seq") && title.contains("touches=2000"),
        "{title}"
    );
    // The one figure is the cell, whether or not it differs after so few touches.
    let metrics = bisection["metrics"].as_array().expect("metrics").iter();
    let apart = metrics.map(|it| &it["name"]);
    let alike = bisection["alike"].as_array().expect("names").iter();
    assert_eq!(apart.chain(alike).collect::<Vec<_>>(), ["Seq"]);
    for (ends, what) in [
        (
            "--from swap-readahead:Vanilla --to swap-readahead:HughPC4",
            "hdd, ssd",
        ),
        (
            "--table hdd --from swap-readahead:Vanilla --to swap-readahead:HughPC4",
            "Rand Shmem",
        ),
        (
            "--from swap-readahead-shaohua-2014:Vanilla --to swap-readahead-shaohua-2014:None --row Seq",
            "no column called None",
        ),
        ("--from v3.6 --to v3.7", "EVALUATION:COLUMN"),
        (
            "small.toml --from v3.6 --to v3.7 --row Seq",
            "no meaning for a workload",
        ),
    ] {
        let done = lowmark(ends);
        assert_eq!(done.status, 2, "{ends}");
        assert!(done.stderr.contains(what), "{ends}: {}", done.stderr);
    }
}
