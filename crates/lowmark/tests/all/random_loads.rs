//! Workloads that are drawn from a seed: each can be read, run on the model and in guests, and all that they may be
//! made of does occur.

use lowmark_model::{Options, check, run};
use lowmark_record::Outcome;
use lowmark_spec::random_load::{Class, RandomLoad, class_of};
use lowmark_spec::{BuiltIn, Overrides, Scenario, Source, parse};
use std::collections::BTreeSet;

/// Longest time of a load on the model of a guest, whose costs are those of a guest that is translated.
const ELAPSED_MAX_NS: u64 = 40_000_000_000;

fn scenarios(load: &RandomLoad) -> Vec<Scenario> {
    let source = Source {
        name: format!("{}.toml", load.name),
        text: load.text.clone(),
    };
    parse(&source, &BuiltIn, &Overrides::default())
        .unwrap_or_else(|error| panic!("{}\n{}", error.render_plain(), load.text))
}

#[test]
fn a_load_follows_from_its_seed_and_number() {
    assert_eq!(RandomLoad::new(7, 3, false), RandomLoad::new(7, 3, false));
    let texts: BTreeSet<String> = (0..50)
        .map(|number| RandomLoad::new(7, number, false).text)
        .chain((0..50).map(|number| RandomLoad::new(8, number, false).text))
        .collect();
    assert_eq!(texts.len(), 100);
    assert_eq!(class_of("lowmark = 1\n# Class: read.\n"), None);
}

#[test]
fn every_load_is_valid_for_the_model_and_for_guests() {
    for seed in 0..400 {
        for effects in [false, true] {
            let load = RandomLoad::new(seed * 7919, seed % 11, effects);
            assert_eq!(class_of(&load.text), Some(load.class), "{}", load.text);
            let scenarios = scenarios(&load);
            // Two kernels, and two values of a setting.
            assert_eq!(scenarios.len(), if effects { 4 } else { 2 });
            for scenario in scenarios {
                assert_eq!(scenario.workload.name, load.name);
                check(&scenario).unwrap_or_else(|refusal| panic!("{refusal}\n{}", load.text));
                lowmark_real::guest::check(&scenario)
                    .unwrap_or_else(|refusal| panic!("{refusal}\n{}", load.text));
            }
        }
    }
}

#[test]
fn everything_that_a_load_can_be_made_of_occurs() {
    let loads: Vec<RandomLoad> = (0..20)
        .flat_map(|seed| (0..20).map(move |number| RandomLoad::new(seed, number, false)))
        .collect();
    for six in loads.chunks(20).flat_map(|of_a_seed| of_a_seed.windows(6)) {
        let classes: BTreeSet<Class> = six.iter().map(|load| load.class).collect();
        assert_eq!(classes.len(), Class::ALL.len());
    }
    for part in [
        // Statements.
        "node = 0",
        "node = 1",
        "map =",
        "touch =",
        "memset =",
        "advise =",
        "unmap =",
        "read =",
        "{ write =",
        "append =",
        "copy =",
        "fsync =",
        "fdatasync =",
        "sync = true",
        "truncate =",
        "delete =",
        "burn =",
        "sleep =",
        "phase =",
        "repeat =",
        // What memory is, orders, several processes, groups, nodes.
        "anon-private",
        "anon-shared",
        "file-shared",
        "file-private",
        "\"sparse\"",
        "\"zero\"",
        "\"random\"",
        "order = \"seq\"",
        "\"reverse\"",
        "\"stride(16)\"",
        "zipf(0.99)",
        "zipf(0.7)",
        "gauss(0.1)",
        "processes = 1",
        "processes = 2",
        "processes = 3",
        "cgroup = \"box\"",
        "cgroup = \"of-one\"",
        "parent = \"level-1\"",
        "low = ",
        "min = ",
        "nodes = ",
        "rate =",
        "length =",
        // Settings.
        "swappiness =",
        "watermark_scale_factor =",
        "watermark_boost_factor =",
        "min_free_kbytes =",
        "page_cluster =",
        "dirty_ratio =",
        "dirty_background_ratio =",
        "dirty_expire_centisecs =",
    ] {
        let with = loads.iter().filter(|load| load.text.contains(part)).count();
        assert!(with > 0, "no load has {part}");
        let everywhere = ["phase =", "{ touch ="].contains(&part);
        assert!(everywhere || with < loads.len(), "every load has {part}");
    }
}

/// Runs loads on the model: none is refused, fails, or takes longer than a guest may.
#[test]
fn loads_run_on_the_model_in_the_time_of_a_guest() {
    let loads =
        (0..6).flat_map(|seed| (0..6).map(move |number| RandomLoad::new(seed, number, false)));
    for load in loads {
        for scenario in scenarios(&load) {
            let options = Options {
                events: false,
                ..Options::default()
            };
            let recording = run(&scenario, &options, &mut |_| ())
                .unwrap_or_else(|refusal| panic!("{refusal}\n{}", load.text));
            assert_eq!(recording.outcome, Outcome::Completed, "{}", load.text);
            let elapsed_ns = recording.elapsed_ns;
            assert!(
                elapsed_ns <= ELAPSED_MAX_NS,
                "{} s on {}\n{}",
                elapsed_ns / 1_000_000_000,
                scenario.kernel.text,
                load.text
            );
        }
    }
}
