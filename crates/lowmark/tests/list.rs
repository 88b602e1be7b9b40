//! `lowmark list`, and `lowmark reproduce` without a name.

mod common;

use common::Place;
use serde_json::Value;

const TOPICS: [&str; 5] = [
    "workloads",
    "machines",
    "kernels",
    "mechanisms",
    "evaluations",
];

#[test]
fn each_topic_lists_what_it_should() {
    let place = Place::new();
    let expected = [
        [
            "swap-small",
            "thpscale: probe for huge pages, unmap of a range",
        ],
        ["desktop-900m-hdd", "1024 MiB"],
        ["v3.14", "579f82901f6f"],
        [
            "swapin_readahead",
            "since v3.14, commit 579f82901f6f (swapin_nr_pages)",
        ],
        ["swap-readahead-shaohua-2014", "yes"],
    ];
    let all = place.lowmark(&["list"]).good();
    assert_eq!(all, place.lowmark(&["list", "all"]).good());
    for (topic, parts) in TOPICS.iter().zip(expected) {
        let text = place.lowmark(&["list", topic]).good();
        for part in parts {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(
            all.contains(&format!("{}\n{text}", topic.to_uppercase())),
            "{topic}"
        );
    }
}

#[test]
fn json_has_every_topic() {
    let place = Place::new();
    let all = place.lowmark(&["list", "--format", "json"]).json();
    assert_eq!(all["version"], 1);
    for topic in TOPICS {
        let one = place.lowmark(&["list", topic, "--format", "json"]).json();
        assert!(
            one[topic]
                .as_array()
                .is_some_and(|entries| !entries.is_empty())
        );
        assert_eq!(one[topic], all[topic]);
        assert_eq!(one.as_object().map(|object| object.len()), Some(2));
    }
    let find = |topic: &str, key: &str, name: &str| -> Value {
        let entries = all[topic].as_array().expect("entries");
        let found = entries.iter().find(|entry| entry[key] == name);
        found.cloned().expect("it is listed")
    };
    assert_eq!(
        find("workloads", "name", "swap-small")["unsupported"],
        serde_json::json!([])
    );
    assert_eq!(find("workloads", "name", "swap-seq-rand")["runs"], 4);
    assert_eq!(find("machines", "name", "small-512m-ssd")["cpus"], 2);
    assert_eq!(
        find("kernels", "version", "v3.14")["changes"][0]["name"],
        "swapin_nr_pages"
    );
    let readahead = find("mechanisms", "name", "swapin_readahead");
    let variants = readahead["variants"].as_array().expect("variants");
    assert_eq!(variants[0]["oldest"], true);
    let merged = variants
        .iter()
        .find(|variant| variant["name"] == "swapin-nr-pages")
        .expect("the merged variant");
    assert_eq!(merged["changes"][0]["commit"], "579f82901f6f");
    assert_eq!(
        find("evaluations", "id", "swap-readahead")["variants"][0]["name"],
        "default"
    );
}

#[test]
fn reproduce_without_a_name_lists_what_can_be_run() {
    let place = Place::new();
    let text = place.lowmark(&["reproduce"]).good();
    assert!(text.contains("--variant five-passes: "), "{text}");
    assert!(!text.contains("thp-defrag"), "{text}");
    let document = place.lowmark(&["reproduce", "--format", "json"]).json();
    assert_eq!(document["evaluations"].as_array().map(Vec::len), Some(3));
}
