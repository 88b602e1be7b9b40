use super::*;
use crate::kernel::versions;

fn spec(text: &str) -> KernelSpec {
    KernelSpec::parse(text).expect("a kernel")
}

fn between(from: &str, to: &str) -> Difference {
    Difference::between(&spec(from), &spec(to)).expect("kernels of the model")
}

fn names(difference: &Difference) -> Vec<String> {
    difference
        .alterations()
        .iter()
        .map(Alteration::name)
        .collect()
}

/// What a prefix of the alterations makes of the first kernel.
fn prefix(difference: &Difference, length: usize) -> Vec<bool> {
    (0..difference.alterations().len())
        .map(|at| at < length)
        .collect()
}

#[test]
fn rows_variants_and_settings_differ() {
    let difference = between(
        "v3.6+swapin_readahead=hugh-new,page_cluster=4,swappiness=10",
        "v3.9,page_cluster=2,swappiness=10",
    );
    assert_eq!(
        names(&difference),
        [
            "-swapin_readahead=hugh-new",
            "pageblock-skip",
            "zones-with-room",
            "only-evict-file-when-plenty",
            "bounded-unmapping",
            "fewer-isolated-pages",
            "huge-zero-page",
            "managed-pages",
            "stable-pages-on-demand",
            "no-wait-in-balance-pgdat",
            "balanced-zones-of-the-request",
            "willneed-reads-swap",
            "page_cluster=2",
        ]
    );
    let last = difference.alterations().last().expect("a setting");
    assert_eq!(last.summary(), "from 4 to 2");
    assert!(between("v6.1", "v6.1").alterations().is_empty());
}

#[test]
fn a_newer_kernel_first_takes_rows_out_the_newest_first() {
    let forth = between("v5.9", "v5.18");
    let back = between("v5.18", "v5.9");
    let mut reversed: Vec<String> = names(&forth)
        .iter()
        .map(|name| format!("-{name}"))
        .collect();
    reversed.reverse();
    assert_eq!(names(&back), reversed);
}

/// From any release to any other: with all alterations the first kernel works like the second one, and every prefix that
/// ends with a release works like that release.
#[test]
fn alterations_lead_from_one_release_to_the_other() {
    let releases = versions();
    for (from, to) in [("v2.6.37", "v6.18"), ("v6.18", "v3.6"), ("v4.4", "v5.0")] {
        let (mut first, mut second) = (spec(from), spec(to));
        // As `compare` does: what the model has of one only is left out of both.
        for subject in super::super::coverage::SWITCHED {
            for spec in [&mut first, &mut second] {
                let name = format!("model.{}", subject.name);
                spec.sysctl.insert(name, "off".into());
            }
        }
        let difference = Difference::between(&first, &second).expect("kernels");
        let alterations = difference.alterations();
        assert!(alterations.len() > 20, "{from}..{to}");
        for length in 1..alterations.len() {
            let row = |at: usize| alterations[at].row().expect("a row").version;
            if row(length - 1) == row(length) {
                continue;
            }
            let between = difference.spec(&prefix(&difference, length));
            let between = Kernel::resolve(&between.expect("a release")).expect("a kernel");
            let expected = releases.iter().rev().find(|release| {
                if from < to {
                    **release < row(length)
                } else {
                    **release < row(length - 1)
                }
            });
            let own = Kernel::released(*expected.expect("a release"));
            let rows_left_out = difference.left_out();
            let altered: Vec<&str> = rows_left_out
                .iter()
                .flat_map(|it| versions::altered_by(it))
                .collect();
            let settings = between.mechanisms.settings();
            let differ = settings.iter().zip(own.mechanisms.settings());
            let differ: Vec<_> = differ
                .filter(|(a, b)| **a != *b && !altered.contains(&a.0))
                .collect();
            assert!(differ.is_empty(), "{from}..{to} at {length}: {differ:?}");
        }
    }
}

/// The name of every kernel between two is one that `--kernel` takes for the same kernel.
#[test]
fn names_of_kernels_between_are_read_back() {
    for (from, to) in [
        ("v3.6", "v3.14"),
        ("v6.1,swappiness=10", "v6.18-lazy-preemption"),
        ("v6.18", "v6.1"),
        ("v3.6+swapin_readahead=hugh-new", "v3.14"),
    ] {
        let difference = between(from, to);
        let count = difference.alterations().len();
        let mut accepted = 0;
        for odd in 1..count {
            // Every third or fifth or ..., and all but one.
            let some: Vec<bool> = (0..count).map(|at| at % (odd + 1) == 0).collect();
            let all_but: Vec<bool> = (0..count).map(|at| at != odd).collect();
            for with in [some, all_but] {
                let Ok(named) = difference.spec(&with) else {
                    continue;
                };
                accepted += 1;
                let read = spec(&named.text);
                assert_eq!(
                    Kernel::resolve(&read),
                    Kernel::resolve(&named),
                    "{}",
                    named.text
                );
            }
        }
        assert!(accepted * 2 > count, "{from}..{to}: {accepted} of {count}");
    }
}

#[test]
fn the_shorter_name_is_chosen() {
    let difference = between("v6.1", "v6.18");
    let count = difference.alterations().len();
    let eevdf = names(&difference).iter().position(|name| name == "eevdf");
    let eevdf = eevdf.expect("v6.6 has it");
    let alone: Vec<bool> = (0..count).map(|at| at == eevdf).collect();
    assert_eq!(
        difference.spec(&alone).map(|it| it.text),
        Ok("v6.1+eevdf".into())
    );
    let ends = [prefix(&difference, 0), prefix(&difference, count)];
    assert_eq!(
        ends.map(|with| difference.spec(&with).map(|it| it.text)),
        [Ok("v6.1".into()), Ok("v6.18".into())]
    );
}

/// Rows of generations are differences where one of two kernels has generations, and a kernel between the two that has
/// none is the same with and without them.
#[test]
fn rows_of_generations_count_where_generations_are() {
    let is_of_generations = |name: &String| name.trim_start_matches('-').starts_with("gen-");
    let counted = |from, to| {
        let names = names(&between(from, to));
        names.iter().filter(|name| is_of_generations(name)).count()
    };
    assert_eq!(counted("v6.1", "v6.18"), 0);
    assert_eq!(counted("v6.1,lru_gen.enabled=2", "v6.18"), 0);
    let left_out = between("v6.1", "v6.18");
    let left_out = left_out.left_out().iter().map(|row| row.name.to_owned());
    let all = left_out.filter(is_of_generations).count();
    assert_eq!(all, 13);
    assert_eq!(counted("v6.1,lru_gen.enabled=7", "v6.18"), all);

    let difference = between("v6.1", "v6.18,lru_gen.enabled=7");
    let names = names(&difference);
    assert_eq!(names.last().map(String::as_str), Some("lru_gen.enabled=7"));
    let rows: Vec<bool> = names.iter().map(is_of_generations).collect();
    assert_eq!(difference.spec(&rows).map(|it| it.text), Ok("v6.1".into()));
    let both: Vec<bool> = (names.iter())
        .map(|name| is_of_generations(name) || name == "lru_gen.enabled=7")
        .collect();
    let between = difference.spec(&both).expect("a kernel");
    assert!(between.text.contains("+gen-two-looks"), "{}", between.text);
    assert!(Kernel::resolve(&between).is_ok());
}
