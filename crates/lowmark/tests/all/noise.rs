//! What a comparison calls different: a kernel and itself hardly ever, kernels that differ in print always.

use crate::common::Place;
use serde_json::Value;

/// Rows of the first comparison with what the second column is: their names, and whether they are called different.
fn judged(document: &Value) -> Vec<(String, bool)> {
    let blocks = document["comparisons"][0]["blocks"].as_array();
    let rows = blocks.expect("blocks").iter().flat_map(|block| {
        let rows = block["rows"].as_array().expect("rows");
        rows.iter().filter_map(|row| {
            let name = row["name"].as_str().expect("a name").to_owned();
            Some((name, row["significant"][1].as_bool()?))
        })
    });
    rows.collect()
}

/// Five runs of a load from a seed on, below a directory. With another name for the machine's own page_cluster the two
/// sides of a comparison are columns.
fn five(place: &Place, load: &[&str], seed: u64, out: &str) {
    let seed = seed.to_string();
    let mut arguments = vec!["run"];
    arguments.extend(load);
    arguments.extend(["--seed", &seed, "--repeat", "5", "--quiet", "--out", out]);
    if out.ends_with('b') {
        arguments.extend(["--set", "page_cluster=3"]);
    }
    place.lowmark(&arguments).good();
}

/// At most one comparison in twenty may have a row that is called different; of 24 there are one or two.
#[test]
fn a_kernel_does_not_differ_from_itself() {
    let loads: [&[&str]; 3] = [
        &["swap-small", "--set", "order=random", "--kernel", "v3.6"],
        &["swap-small", "--set", "order=seq", "--kernel", "v6.1"],
        &["swap-small", "--set", "order=random", "--kernel", "v6.18"],
    ];
    let place = Place::new();
    let (mut rows, mut different, mut tables) = (0, 0, 0);
    for trial in 0..24u64 {
        let load = loads[trial as usize % loads.len()];
        let (a, b) = (format!("{trial}a"), format!("{trial}b"));
        five(&place, load, 1 + 20 * trial, &a);
        five(&place, load, 11 + 20 * trial, &b);
        let found = judged(
            &place
                .lowmark(&["compare", &a, &b, "--format", "json"])
                .json(),
        );
        rows += found.len();
        let wrong = found.iter().filter(|(_, different)| *different).count();
        different += wrong;
        tables += usize::from(wrong > 0);
    }
    assert!(rows > 24 * 20, "{rows} rows");
    assert!(
        tables <= 2,
        "{tables} of 24 tables have a row that is called different"
    );
    assert!(different * 100 <= rows, "{different} of {rows} rows");
}

/// Swap readahead by hits reads a fraction of the pages at random, as was published; five repeats show it.
#[test]
fn what_was_published_is_found_with_five_repeats() {
    let place = Place::new();
    let document = place
        .lowmark(&[
            "compare",
            "swap-small",
            "--set",
            "order=random",
            "--kernel",
            "v3.6",
            "--kernel",
            "v3.6+swapin_readahead=hugh-new",
            "--repeat",
            "5",
            "--format",
            "json",
        ])
        .json();
    let rows = judged(&document);
    for name in ["Elapsed", "Swap Ins", "Page Ins", "Kswapd pages scanned"] {
        assert!(rows.contains(&(name.to_owned(), true)), "{name}: {rows:?}");
    }
}

/// Every repeat is another boot: nothing about a load in order is random, and its repeats differ all the same. Seed 0 is
/// the machine as it is described.
#[test]
fn repeats_of_loads_in_order_differ() {
    let place = Place::new();
    let run = |seed: &str| {
        let arguments = [
            "run",
            "swap-small",
            "--set",
            "order=seq",
            "--format",
            "json",
            "--seed",
            seed,
        ];
        place.lowmark(&arguments).json()["runs"][0]["counters"].clone()
    };
    assert_ne!(run("1"), run("2"));
    assert_eq!(run("1"), run("1"));
}

/// The step from a version to the next one is what the kernel changed: what the model has besides of the later one is
/// left out of both.
#[test]
fn columns_have_in_common_what_the_model_has_of_one() {
    let place = Place::new();
    let compare = |kernels: [&str; 2]| {
        let mut arguments = vec![
            "compare",
            "swap-small",
            "--set",
            "order=seq",
            "--format",
            "json",
        ];
        kernels
            .iter()
            .for_each(|kernel| arguments.extend(["--kernel", kernel]));
        place.lowmark(&arguments).json()
    };
    let step = compare(["v6.16", "v6.17"]);
    let title = step["comparisons"][0]["title"].as_str().expect("a title");
    assert!(title.ends_with("left-out=read_folios"), "{title}");
    assert!(
        judged(&step).iter().all(|(_, different)| !different),
        "{step}"
    );
    // What is made apart is what it is, and the comparison says that it differs.
    for kernel in ["v6.16", "v6.17"] {
        place
            .lowmark(&[
                "run",
                "swap-small",
                "--set",
                "order=seq",
                "--kernel",
                kernel,
                "--out",
                "apart",
            ])
            .good();
    }
    let text = place.lowmark(&["compare", "apart"]).good();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("v6.16: the model leaves out read_folios, which other columns have"),
        "{text}"
    );
}
