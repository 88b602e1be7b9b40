//! Tests of kernels by name.

use super::*;
use crate::kernel::{FairClass, RequestTags, SwapinReadahead, WatermarkBoost};
use std::collections::BTreeMap;

/// A kernel with differences from its version and settings.
fn asked(version: &str, toggles: &[Toggle], settings: &[(&str, &str)]) -> Result<Kernel, String> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Kernel::resolve(&KernelSpec {
        text: version.into(),
        version: version.into(),
        toggles: toggles.to_vec(),
        sysctl: settings.iter().map(own).collect::<BTreeMap<_, _>>(),
    })
    .map_err(|error| error.to_string())
}

fn set(mechanism: &str, variant: &str) -> Toggle {
    Toggle::Set {
        mechanism: mechanism.into(),
        variant: variant.into(),
    }
}

fn apply(change: &str) -> Toggle {
    Toggle::Apply(change.into())
}

fn remove(change: &str) -> Toggle {
    Toggle::Remove(change.into())
}

/// The error that a kernel gives, which must say all of these.
fn refused(version: &str, toggles: &[Toggle], parts: &[&str]) {
    let error = asked(version, toggles, &[]).expect_err("it is refused");
    for part in parts {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
}

#[test]
fn every_release_fits_together() {
    for &version in versions::versions() {
        let kernel = Kernel::released(version);
        assert_eq!(kernel.check_needs(), Ok(()), "{version}");
    }
}

#[test]
fn what_no_kernel_combined_is_refused() {
    refused(
        "v3.6",
        &[set("balance_pgdat", "node")],
        &["balance_pgdat=node", "lru_unit=node", "has lru_unit=zone"],
    );
    refused("v4.8", &[set("lru_unit", "zone")], &["lru_unit=node"]);
    refused("v6.1", &[set("plug", "queue")], &["plug=task"]);
    refused(
        "v6.18",
        &[set("throttle", "foreground")],
        &["throttle=io-less or pause-control or think-time"],
    );
}

#[test]
fn the_step_to_node_lists_is_one_change() {
    let kernel = asked("v4.7", &[apply("node-lru")], &[]).expect("it is a kernel");
    let mut later = versions::at(Version::known("v4.7").unwrap());
    versions::change("node-lru").unwrap().apply(&mut later);
    assert_eq!(kernel.mechanisms, later);
}

#[test]
fn what_the_model_leaves_out_cannot_be_switched() {
    refused(
        "v4.17",
        &[set("virtio_memory", "extras")],
        &["virtio_memory", "from v5.0 on"],
    );
    refused(
        "v6.18",
        &[set("swap_cache_index", "trees")],
        &["slab_pages", "model.slab_pages=on"],
    );
    let with = asked("v6.1", &[], &[("model.slab_pages", "on")]).expect("6.1 can have them");
    assert!(with.coverage.slab_pages);
    let error = asked("v4.12", &[], &[("model.swap_bios", "on")]).expect_err("4.12 cannot");
    assert!(error.contains("from v5.0 on, not in v4.12"), "{error}");
    for (name, value) in [("model.slabs", "on"), ("model.slab_pages", "yes")] {
        assert!(asked("v6.1", &[], &[(name, value)]).is_err());
    }
}

/// Mechanisms of generations decide nothing where pages stand on active and inactive lists.
#[test]
fn what_is_about_generations_is_switched_where_they_are() {
    let with = ("lru_gen.enabled", "7");
    let without = (with.0, "0");
    for toggle in [
        set("gen_pass", "target"),
        remove("gen-two-looks"),
        remove("gen-batch-as-asked"),
    ] {
        let own = std::slice::from_ref(&toggle);
        refused(
            "v6.18",
            own,
            &[
                &toggle.to_string(),
                "no effect in v6.18",
                ",lru_gen.enabled=7",
            ],
        );
        assert!(asked("v6.18", own, &[without]).is_err(), "{toggle}");
        let kernel = asked("v6.18", own, &[with]).expect("generations are on");
        assert_ne!(
            kernel.mechanisms,
            Kernel::released(kernel.version).mechanisms
        );
    }
    let applied = [apply("gen-count-refaults")];
    refused("v5.19", &applied, &["from v6.1 on"]);
    refused("v6.1", &applied, &[",lru_gen.enabled=7"]);
    refused("v3.6", &[set("gen_pass", "target")], &["from v6.1 on"]);
}

#[test]
fn a_change_is_taken_out_with_those_that_build_on_it() {
    let eevdf = remove("eevdf");
    refused(
        "v6.18",
        std::slice::from_ref(&eevdf),
        &["delayed-dequeue", "fair_class"],
    );
    // Shorter slices are of EEVDF as well.
    let both = [eevdf, remove("delayed-dequeue"), remove("shorter-slices")];
    refused("v6.18", &both[..2], &["base_slice=700us"]);
    let without = asked("v6.18", &both, &[]).expect("all of them are out");
    assert_eq!(without.mechanisms.sched.fair_class, FairClass::Cfs);
    let with = versions::at(Version::known("v6.18").unwrap());
    assert_ne!(without.mechanisms, with);
    refused("v6.5", &both[..1], &["v6.5 does not have", "v6.6"]);
    refused("v6.5", &[remove("no-such")], &["no change called no-such"]);
    // Out of the version, then in again in another way.
    let kernel = asked(
        "v3.14",
        &[
            remove("swapin_nr_pages"),
            set("swapin_readahead", "hugh-new"),
        ],
        &[],
    );
    let readahead = kernel
        .expect("it is a kernel")
        .mechanisms
        .swap
        .swapin_readahead;
    assert_eq!(readahead, SwapinReadahead::HughNew);
}

/// A change that a kernel has would undo what later ones built on it.
#[test]
fn a_change_is_not_applied_twice() {
    refused("v6.18", &[apply("eevdf")], &["already", "v6.6"]);
}

#[test]
fn every_change_can_be_taken_out_of_the_version_that_brought_it_or_says_why_not() {
    for change in HISTORY {
        let toggles = [remove(change.name)];
        match asked(&change.version.to_string(), &toggles, &[]) {
            Ok(kernel) => assert_ne!(kernel.mechanisms, versions::at(change.version)),
            Err(error) => assert!(
                ["builds on it", "works only with", "has no effect"]
                    .iter()
                    .any(|reason| error.contains(reason)),
                "{error}"
            ),
        }
    }
}

#[test]
fn stable_kernels_have_what_they_took_over() {
    let kernel = asked("v6.1.192", &[], &[]).expect("a stable kernel");
    assert_eq!(kernel.mechanisms.block.request_tags, RequestTags::Batches);
    let released = asked("v6.1", &[], &[]).expect("a release");
    assert_eq!(
        released.mechanisms.block.request_tags,
        RequestTags::QueueBatches
    );
    assert_eq!(kernel.version, released.version);
    let spec = KernelSpec::parse("6.1.192").expect("a kernel");
    let names: Vec<&str> = Kernel::taken_over(&spec).iter().map(|it| it.name).collect();
    assert_eq!(
        names,
        [
            "one-counter-of-tags",
            "free-inode-at-once",
            "free-pages-of-empty-zones",
            "gen-protect-page-cache"
        ]
    );
}

#[test]
fn a_mechanism_without_a_variant_is_told_from_an_unknown_change() {
    refused(
        "v3.6",
        &[apply("swapin_readahead")],
        &["needs a variant", "hugh-new"],
    );
    refused("v3.6", &[apply("no-such")], &["no change called no-such"]);
    refused(
        "v3.6",
        &[set("no-such", "x")],
        &["no mechanism called no-such"],
    );
    refused(
        "v3.6",
        &[set("migrate_types", "x")],
        &["no variant x", "moved"],
    );
}

/// Everything that is wrong is told, and nothing that only follows from something else.
#[test]
fn refusals_are_told_at_once_and_with_their_parts() {
    let refusals = |version: &str, toggles: &[Toggle], settings: &[(&str, &str)]| {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let refusals = Kernel::refusals(&KernelSpec {
            text: version.into(),
            version: version.into(),
            toggles: toggles.to_vec(),
            sysctl: settings.iter().map(own).collect(),
        });
        refusals
            .into_iter()
            .map(|(part, _)| part)
            .collect::<Vec<_>>()
    };
    let setting = |name: &str| KernelPart::Setting(name.to_owned());
    let wrong = [
        ("page_cluster", "77"),
        ("no_such", "3"),
        ("swappiness", "60"),
    ];
    let both = [setting("no_such"), setting("page_cluster")];
    assert_eq!(refusals("v6.1", &[], &wrong), both);
    let all = [&[KernelPart::Version][..], &both].concat();
    assert_eq!(refusals("v2.6.30", &[apply("x")], &wrong), all);
    let toggles = [apply("no-such"), set("plug", "queue"), remove("none")];
    let found = refusals("v3.6", &toggles, &[("swappiness", "150")]);
    let toggle = KernelPart::Toggle;
    assert_eq!(found, [setting("swappiness"), toggle(2), toggle(0)]);
    let node = [set("plug", "task"), set("balance_pgdat", "node")];
    assert_eq!(refusals("v3.6", &node, &[]), [toggle(1)]);
    let misspelt = [set("balance_pgdat", "node"), set("lru_unit", "nod")];
    assert_eq!(refusals("v3.6", &misspelt, &[]), [toggle(1)]);
    assert_eq!(
        refusals("v3.6", &[], &[("model.no_such", "on")]),
        [setting("model.no_such")]
    );
    assert_eq!(
        refusals("v6.1", &[remove("no-lumpy-reclaim")], &[]).len(),
        1
    );
    assert_eq!(refusals("v6.1", &[], &[("swappiness", "150")]), []);
}

#[test]
fn released_kernels_have_the_first_variants_of_what_came_later() {
    let kernel = Kernel::released(Version::known("v3.6").unwrap());
    assert_eq!(kernel.mechanisms.zones.watermark_boost, WatermarkBoost::Off);
    assert!(!kernel.coverage.swap_bios);
}
