//! The model against what real kernels counted under the same loads.
//!
//! The figures are changes of `/proc/vmstat` over a load in five QEMU guests without KVM, Debian's kernels 6.1.0-50 and
//! 6.18.15, with the classic LRU: each with one CPU and nobody else on the host. Each load writes to every page of a
//! mapping, or to as many pages at random, twice. The model is run five times, with the phase of what happens
//! periodically another each time.
//!
//! One rule holds for all counters that ever move, that of `lowmark twin`: where the guests repeat a counter within 10 %,
//! the median of the model is within 10 % of theirs; else it is within their range or within a factor of two. What is
//! known to miss is listed with the reason, and a listed counter that has come to hold fails as well.

use lowmark_model::{Options, run};
use lowmark_record::Outcome;
use lowmark_spec::{BuiltIn, Overrides, Scenario, Source, parse};
use std::collections::BTreeMap;

/// Runs of the model for each load.
const RUNS: u64 = 5;

struct Load {
    kernel: &'static str,
    /// The machine as this kernel finds it: what it keeps to itself, and what was neither free nor on per-CPU lists
    /// before the load, with what the kernel needs for that beside page tables.
    machine: &'static str,
    order: &'static str,
    /// How it is gone through.
    touches: &'static [&'static str],
    kind: &'static str,
    size: &'static str,
    /// Counter or sum, and what each guest counted.
    counted: &'static [(&'static str, [u64; 5])],
}

const GUEST_512M_6_18: &str = "use = \"guest-256m\"\nram = \"512M\"\noccupied = \"6315p\"\nzone = [\n\
    { kind = \"DMA\", present = \"3998p\", managed = \"3840p\" },\n\
    { kind = \"DMA32\", present = \"126941p\", managed = \"114661p\", initmem = \"3330p\" },\n]";

const GUEST_512M_6_1: &str = "use = \"guest-256m\"\nram = \"512M\"\noccupied = \"7635p\"\nzone = [\n\
    { kind = \"DMA\", present = \"3998p\", managed = \"3840p\" },\n\
    { kind = \"DMA32\", present = \"126941p\", managed = \"116482p\", initmem = \"3123p\" },\n]";

const GUEST_256M_6_18: &str = "use = \"guest-256m\"\noccupied = \"6285p\"\nzone = [\n\
    { kind = \"DMA\", present = \"3998p\", managed = \"3840p\" },\n\
    { kind = \"DMA32\", present = \"61405p\", managed = \"50246p\", initmem = \"3330p\" },\n]";

const GUEST_256M_6_1: &str = "use = \"guest-256m\"\noccupied = \"7598p\"\nzone = [\n\
    { kind = \"DMA\", present = \"3998p\", managed = \"3840p\" },\n\
    { kind = \"DMA32\", present = \"61405p\", managed = \"52066p\", initmem = \"3123p\" },\n]";

const LOADS: [Load; 7] = [
    Load {
        kernel: "v6.18",
        machine: GUEST_512M_6_18,
        order: "seq",
        touches: &["passes = 2"],
        kind: "anon-private",
        size: "480M",
        counted: &[
            ("pgscan", [480988, 488957, 488138, 488631, 489075]),
            ("pgscan_kswapd", [341838, 367859, 365783, 369396, 314439]),
            ("pgscan_direct", [139150, 121098, 122355, 119235, 174636]),
            ("pgsteal", [130351, 134765, 134205, 134361, 134813]),
            ("pgsteal_kswapd", [118847, 123924, 122797, 124549, 122745]),
            ("pgsteal_direct", [11504, 10841, 11408, 9812, 12068]),
            ("pswpin", [117654, 122112, 121797, 121957, 122252]),
            ("pswpout", [131530, 135645, 135212, 135304, 135693]),
            ("pgmajfault", [14907, 15579, 15477, 15470, 15506]),
            ("allocstall", [217, 191, 204, 177, 210]),
            (
                "workingset_refault_anon",
                [117654, 122112, 121797, 121957, 122252],
            ),
            ("pgactivate", [96, 307, 284, 368, 112]),
            ("swap_ra", [102747, 106533, 106320, 106487, 106746]),
            ("swap_ra_hit", [102643, 106328, 106186, 106367, 106579]),
            ("pgrotated", [130301, 134754, 134181, 134436, 134846]),
            ("pageoutrun", [603, 618, 629, 636, 586]),
        ],
    },
    Load {
        kernel: "v6.1",
        machine: GUEST_512M_6_1,
        order: "seq",
        touches: &["passes = 2"],
        kind: "anon-private",
        size: "480M",
        counted: &[
            ("pgscan", [491941, 491447, 491213, 490620, 491558]),
            ("pgscan_kswapd", [383374, 383422, 382603, 382425, 384358]),
            ("pgscan_direct", [108567, 108025, 108610, 108195, 107200]),
            ("pgsteal", [134286, 133968, 134251, 133934, 134143]),
            ("pgsteal_kswapd", [129703, 129724, 129868, 129361, 129032]),
            ("pgsteal_direct", [4583, 4244, 4383, 4573, 5111]),
            ("pswpin", [122217, 122047, 122223, 122076, 122100]),
            ("pswpout", [134795, 134601, 134561, 134416, 134676]),
            ("pgmajfault", [15388, 15375, 15360, 15341, 15348]),
            ("allocstall", [79, 75, 75, 79, 88]),
            (
                "workingset_refault_anon",
                [122217, 122047, 122223, 122076, 122100],
            ),
            ("pgactivate", [507, 496, 510, 510, 494]),
            ("swap_ra", [106829, 106672, 106863, 106735, 106752]),
            ("swap_ra_hit", [106691, 106575, 106757, 106639, 106663]),
            ("pgrotated", [134437, 134116, 134265, 134006, 134192]),
            ("pageoutrun", [698, 669, 725, 695, 672]),
        ],
    },
    Load {
        kernel: "v6.18",
        machine: GUEST_512M_6_18,
        order: "random",
        touches: &[
            "order = \"seq\"",
            "order = \"random\", count = \"480M/PAGE\"",
        ],
        kind: "anon-private",
        size: "480M",
        counted: &[
            ("pgscan", [171579, 170544, 222498, 168793, 169738]),
            ("pgscan_kswapd", [110105, 111247, 164498, 110138, 109751]),
            ("pgscan_direct", [61474, 59297, 58000, 58655, 59987]),
            ("pgsteal", [26141, 25484, 26061, 25217, 25497]),
            ("pgsteal_kswapd", [21154, 21935, 23579, 21991, 21750]),
            ("pgsteal_direct", [4987, 3549, 2482, 3226, 3747]),
            ("pswpin", [13259, 12884, 13196, 12707, 12903]),
            ("pswpout", [26834, 26774, 26473, 25705, 26074]),
            ("pgmajfault", [12871, 12641, 13014, 12616, 12647]),
            ("allocstall", [90, 68, 64, 63, 71]),
            (
                "workingset_refault_anon",
                [13259, 12884, 13196, 12707, 12903],
            ),
            ("pgactivate", [9942, 9651, 61263, 9214, 9509]),
            ("pgdeactivate", [26, 29, 23502, 48, 34]),
            ("swap_ra", [388, 243, 182, 91, 256]),
            ("swap_ra_hit", [99, 67, 47, 22, 70]),
            ("pgrotated", [26285, 26188, 26204, 25334, 25603]),
            ("pageoutrun", [79, 75, 68, 77, 65]),
        ],
    },
    Load {
        kernel: "v6.18",
        machine: GUEST_256M_6_18,
        order: "seq",
        touches: &["passes = 2"],
        kind: "anon-shared",
        size: "220M",
        counted: &[
            ("pgscan", [219313, 222311, 267200, 223244, 221154]),
            ("pgscan_kswapd", [158415, 159171, 226028, 169798, 161588]),
            ("pgscan_direct", [60898, 63140, 41172, 53446, 59566]),
            ("pgsteal", [63179, 64185, 65711, 65296, 64072]),
            ("pgsteal_kswapd", [56318, 56208, 58321, 58662, 55575]),
            ("pgsteal_direct", [6861, 7977, 7390, 6634, 8497]),
            ("pswpin", [53488, 54458, 56028, 55631, 54215]),
            ("pswpout", [64181, 65309, 66548, 65993, 64937]),
            ("pgskip", [0, 0, 38096, 0, 0]),
            ("pgmajfault", [6845, 6993, 7177, 7113, 6932]),
            ("allocstall", [189, 220, 197, 179, 232]),
            (
                "workingset_refault_anon",
                [53488, 54458, 56028, 55631, 54215],
            ),
            ("pgactivate", [2254, 1063, 32, 367, 1581]),
            ("swap_ra", [46643, 47465, 48851, 48518, 47283]),
            ("swap_ra_hit", [46529, 47370, 48696, 48380, 47165]),
            ("pgrotated", [62980, 64057, 65483, 65267, 64066]),
            ("pageoutrun", [367, 366, 433, 443, 398]),
        ],
    },
    Load {
        kernel: "v6.18,watermark_boost_factor=0",
        machine: GUEST_256M_6_18,
        order: "reverse",
        touches: &["order = \"seq\"", "order = \"reverse\""],
        kind: "anon-private",
        size: "220M",
        counted: &[
            ("pgscan", [133470, 138330, 131904, 131229, 132046]),
            ("pgscan_kswapd", [86739, 88584, 95964, 63896, 92030]),
            ("pgscan_direct", [46731, 49746, 35940, 67333, 40016]),
            ("pgsteal", [20205, 19503, 19486, 19530, 19498]),
            ("pgsteal_kswapd", [17883, 16224, 16791, 17090, 16846]),
            ("pgsteal_direct", [2322, 3279, 2695, 2440, 2652]),
            ("pswpin", [10533, 9822, 9968, 9906, 9839]),
            ("pswpout", [20499, 21231, 20105, 19788, 20234]),
            ("pgmajfault", [1337, 1237, 1253, 1251, 1242]),
            ("allocstall", [62, 89, 75, 64, 71]),
            ("workingset_refault_anon", [10533, 9822, 9968, 9906, 9839]),
            ("pgactivate", [35294, 35558, 35296, 35244, 35583]),
            ("swap_ra", [9196, 8585, 8715, 8655, 8597]),
            ("swap_ra_hit", [9188, 8568, 8710, 8652, 8591]),
            ("pgrotated", [20340, 21024, 19893, 19600, 20079]),
            ("pageoutrun", [114, 108, 119, 108, 114]),
        ],
    },
    Load {
        kernel: "v6.1",
        machine: GUEST_256M_6_1,
        order: "random",
        touches: &[
            "order = \"seq\"",
            "order = \"random\", count = \"220M/PAGE\"",
        ],
        kind: "anon-private",
        size: "220M",
        counted: &[
            ("pgscan", [91717, 92515, 91422, 91672, 97396]),
            ("pgscan_kswapd", [66145, 62995, 64277, 64130, 69578]),
            ("pgscan_direct", [25572, 29520, 27145, 27542, 27818]),
            ("pgsteal", [18376, 19054, 18380, 18486, 20076]),
            ("pgsteal_kswapd", [15291, 13364, 15006, 13564, 15771]),
            ("pgsteal_direct", [3085, 5690, 3374, 4922, 4305]),
            ("pswpin", [9335, 9852, 9366, 9400, 9491]),
            ("pswpout", [19053, 19613, 18877, 19005, 20589]),
            ("pgmajfault", [9110, 9654, 9199, 9173, 9195]),
            ("allocstall", [86, 159, 92, 142, 122]),
            ("workingset_refault_anon", [9335, 9852, 9366, 9400, 9491]),
            ("pgactivate", [6730, 6271, 6622, 6642, 9192]),
            ("pgdeactivate", [1214, 761, 965, 1188, 1233]),
            ("swap_ra", [225, 198, 167, 227, 296]),
            ("swap_ra_hit", [74, 72, 60, 85, 114]),
            ("pgrotated", [18626, 19195, 18614, 18644, 20193]),
            ("pageoutrun", [52, 23, 50, 50, 50]),
        ],
    },
    Load {
        kernel: "v6.1",
        machine: GUEST_256M_6_1,
        order: "zipf",
        touches: &[
            "order = \"seq\"",
            "order = \"zipf(0.99)\", count = \"220M/PAGE\"",
        ],
        kind: "anon-private",
        size: "220M",
        counted: &[
            ("pgscan", [72530, 72921, 76441, 74315, 76302]),
            ("pgscan_kswapd", [43881, 45486, 48093, 47192, 50346]),
            ("pgscan_direct", [28649, 27435, 28348, 27123, 25956]),
            ("pgsteal", [12104, 12335, 13842, 12094, 13879]),
            ("pgsteal_kswapd", [7957, 8185, 9335, 8354, 10778]),
            ("pgsteal_direct", [4147, 4150, 4507, 3740, 3101]),
            ("pswpin", [2868, 3003, 2996, 2953, 3153]),
            ("pswpout", [12591, 12847, 14332, 12441, 14343]),
            ("pgmajfault", [2850, 2988, 2968, 2930, 3124]),
            ("allocstall", [115, 119, 130, 106, 85]),
            ("workingset_refault_anon", [2868, 3003, 2996, 2953, 3153]),
            ("pgactivate", [353, 246, 785, 243, 596]),
            ("pgdeactivate", [2, 1, 27, 8, 0]),
            ("swap_ra", [18, 15, 28, 23, 29]),
            ("swap_ra_hit", [2, 1, 5, 8, 5]),
            ("pgrotated", [12272, 12498, 13942, 12202, 13983]),
            ("pageoutrun", [13, 5, 6, 10, 4]),
        ],
    },
];

/// A counter in which the model is not as near as the rule asks.
struct Miss {
    /// As [`Load::name`] has it.
    load: &'static str,
    counter: &'static str,
    why: &'static str,
}

const KNOWN_MISSES: [Miss; 8] = [
    Miss {
        load: "v6.18 seq anon-private 512M",
        counter: "pgactivate",
        why: "guests activate 96 to 368 of 480,000 pages scanned, the model a dozen; not explained",
    },
    Miss {
        load: "v6.1 seq anon-private 512M",
        counter: "pgactivate",
        why: "not explained: guests activate about 500 of 480,000 pages scanned, all within 3 %",
    },
    Miss {
        load: "v6.1 seq anon-private 512M",
        counter: "pageoutrun",
        why: "kswapd frees as much as in guests in a sixth fewer runs; not explained",
    },
    Miss {
        load: "v6.18 seq anon-shared 256M",
        counter: "pgskip",
        why: "guests have one of two outcomes, the model's median is in the rarer one, 6 % above it",
    },
    Miss {
        load: "v6.18 random anon-private 512M",
        counter: "pgdeactivate",
        why: "the model never finds inactive pages few; one guest of five deactivated 23,502, the others tens",
    },
    Miss {
        load: "v6.18,watermark_boost_factor=0 reverse anon-private 256M",
        counter: "pgsteal_kswapd",
        why: "kswapd frees a tenth less than in guests; not explained",
    },
    Miss {
        load: "v6.18,watermark_boost_factor=0 reverse anon-private 256M",
        counter: "pageoutrun",
        why: "follows from what kswapd frees",
    },
    Miss {
        load: "v6.1 zipf anon-private 256M",
        counter: "pgscan_direct",
        why: "guests spread by 9.8 %, the model is 11 % above their median",
    },
];

/// Medians of the runs.
fn counters(load: &Load) -> BTreeMap<String, u64> {
    let runs: Vec<_> = (0..RUNS)
        .map(|phase| counters_of_run(load, phase))
        .collect();
    let median = |name: &String| {
        let mut values: Vec<u64> = runs.iter().map(|run| run[name]).collect();
        values.sort_unstable();
        values[values.len() / 2]
    };
    let names = runs[0].keys();
    names.map(|name| (name.clone(), median(name))).collect()
}

fn counters_of_run(load: &Load, phase: u64) -> BTreeMap<String, u64> {
    let touches = load.touches.iter();
    let touches: String = touches
        .map(|how| format!("{{ touch = \"m\", access = \"write\", {how} }},\n"))
        .collect();
    let text = format!(
        "lowmark = 1\n[workload]\nname = \"load\"\n[machine]\n{}\n[kernel]\nuse = \"{}\"\n[task.main]\nrun = [\n\
         {{ map = \"m\", kind = \"{}\", size = \"{}\" }},\n{touches}]\n",
        load.machine, load.kernel, load.kind, load.size
    );
    let source = Source {
        name: "load.toml".into(),
        text,
    };
    let scenarios = parse(&source, &BuiltIn, &Overrides::default()).expect("it is a workload");
    let scenario = Scenario {
        phase,
        machine: scenarios[0].machine.clone().under_kernel(load.kernel),
        ..scenarios[0].clone()
    };
    let recording = run(&scenario, &Options::default(), &mut |_| {}).expect("it can be run");
    assert_eq!(recording.outcome, Outcome::Completed);
    let mut counters = recording.counters;
    for prefix in ["pgscan", "pgsteal", "allocstall", "pgskip"] {
        let parts: &[&str] = match prefix {
            "pgscan" | "pgsteal" => &["kswapd", "direct"],
            _ => &["dma", "dma32", "normal", "movable"],
        };
        let parts = parts
            .iter()
            .map(|part| counters[&format!("{prefix}_{part}")]);
        let sum = parts.sum();
        counters.insert(prefix.into(), sum);
    }
    counters
}

/// The rule of `lowmark twin`.
fn holds(model: u64, guests: &[u64; 5]) -> bool {
    let mut sorted = *guests;
    sorted.sort_unstable();
    let [least, _, median, _, greatest] = sorted;
    if (greatest - least) * 10 <= median {
        model.abs_diff(median) * 10 <= median
    } else {
        (least..=greatest).contains(&model) || (model <= 2 * median && 2 * model >= median)
    }
}

impl Load {
    fn name(&self) -> String {
        let ram = self.machine.contains("512M");
        let ram = if ram { "512M" } else { "256M" };
        format!("{} {} {} {ram}", self.kernel, self.order, self.kind)
    }
}

#[test]
fn counts_are_those_of_real_kernels() {
    let mut off = Vec::new();
    for load in &LOADS {
        let counters = counters(load);
        let load_name = load.name();
        for (name, guests) in load.counted {
            let model = counters[*name];
            let known = KNOWN_MISSES
                .iter()
                .any(|miss| (miss.load, miss.counter) == (load_name.as_str(), *name));
            match (holds(model, guests), known) {
                (true, true) => off.push(format!(
                    "{load_name} {name}: {model}, is no miss any more, real {guests:?}"
                )),
                (false, false) => off.push(format!("{load_name} {name}: {model}, real {guests:?}")),
                _ => {}
            }
        }
    }
    assert!(off.is_empty(), "{off:#?}");
}

#[test]
fn known_misses_name_loads_and_counters() {
    for miss in &KNOWN_MISSES {
        let load = LOADS.iter().find(|load| load.name() == miss.load);
        let load = load.unwrap_or_else(|| panic!("no load {}", miss.load));
        assert!(load.counted.iter().any(|(name, _)| *name == miss.counter));
        assert!(!miss.why.is_empty());
    }
}

/// What each page costs reclaim follows from the rules alone: a page that is used once is met three times,
/// young, to be written, and clean.
#[test]
fn a_page_used_once_is_scanned_three_times() {
    let counters = counters(&LOADS[0]);
    let scans = counters["pgscan"] as f64 / counters["pgsteal"] as f64;
    assert!((3.0..3.8).contains(&scans), "{scans} scans a page");
    assert_eq!(counters["pgscan_anon"], counters["pgscan"]);
    assert_eq!(counters["pgsteal_anon"], counters["pgsteal"]);
}
