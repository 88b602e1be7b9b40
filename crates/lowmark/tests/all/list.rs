//! `lowmark list`, and `lowmark reproduce` without a name.

use crate::common::Place;
use serde_json::Value;

const TOPICS: [&str; 7] = [
    "workloads",
    "machines",
    "kernels",
    "mechanisms",
    "coverage",
    "sysctls",
    "evaluations",
];

#[test]
fn each_topic_lists_what_it_should() {
    let place = Place::new();
    let expected = [
        ["swap-small", "stress-highalloc"],
        ["desktop-900m-hdd", "1024 MiB"],
        ["v3.14", "579f82901f6f"],
        [
            "swapin_readahead",
            "since v3.14, commit 579f82901f6f (swapin_nr_pages)",
        ],
        ["lru_gen", "from v2.6.38 on"],
        ["watermark_boost_factor", "v5.0"],
        ["swap-readahead-shaohua-2014", "with a recipe"],
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
    let document = place.lowmark(&["reproduce", "--format", "json"]).json();
    assert_eq!(document["evaluations"].as_array().map(Vec::len), Some(16));
}

#[test]
fn ranges_of_kernels_go_from_the_older_to_the_newer() {
    let place = Place::new();
    let list = |range: &str| place.lowmark(&["list", "kernels", range]);
    list("6.18..6.1").error(&[
        "6.18..6.1: v6.1 is older than v6.18; the older kernel comes first",
        "help: write v6.1..v6.18",
    ]);
    assert!(list("6.1..6.18").good().contains("v6.18"));
    assert_eq!(list("6.18..6.18").good(), list("6.18").good());
}

/// What is said of workloads is what happens to who runs them.
#[test]
fn workloads_run_as_shipped_or_are_said_not_to() {
    let place = Place::new();
    let document = place
        .lowmark(&["list", "workloads", "--format", "json"])
        .json();
    let text = place.lowmark(&["list", "workloads"]).good();
    let (table, rest) = text.split_once("\nNot on the model").unwrap_or((&text, ""));
    let mut refused = Vec::new();
    for workload in document["workloads"].as_array().expect("workloads") {
        let name = workload["name"].as_str().expect("a name");
        let scenarios = scenarios(name);
        let runs = scenarios
            .iter()
            .all(|scenario| lowmark_model::check(scenario).is_ok());
        assert_eq!(workload["runs_as_shipped"], runs, "{name}");
        let row = table
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")));
        let row = row.unwrap_or_else(|| panic!("{name} is not in {table}"));
        assert_eq!(row.split_whitespace().nth(1) == Some("runs"), runs, "{row}");
        assert_eq!(rest.contains(&format!("  {name}: ")), !runs, "{rest}");
        if !runs {
            refused.push(name);
            place.lowmark(&["run", name]).error(&["the model "]);
        }
    }
    assert_eq!(refused, [] as [&str; 0]);
}

fn scenarios(name: &str) -> Vec<lowmark_spec::Scenario> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    let source = lowmark_spec::Source {
        name: name.to_owned(),
        text: std::fs::read_to_string(path.join(format!("{name}.toml"))).expect("a workload"),
    };
    let overrides = lowmark_spec::Overrides::default();
    lowmark_spec::parse(&source, &lowmark_spec::BuiltIn, &overrides).expect("it is valid")
}

#[test]
fn sysctls_are_listed_as_they_are_taken() {
    let place = Place::new();
    let document = place
        .lowmark(&["list", "sysctls", "--format", "json"])
        .json();
    let settings = document["sysctls"].as_array().expect("settings");
    for setting in settings {
        let name = setting["name"].as_str().expect("a name");
        let Some(max) = setting["max"].as_u64() else {
            let words = setting["values"].as_array().expect("words");
            let word = words[0]["value"].as_str().expect("a word");
            place
                .lowmark(&["run", "small.toml", "--kernel", &format!("v3.6,{name}=x")])
                .error(&["expected one of", word, "`lowmark list sysctls`"]);
            continue;
        };
        let text = format!("v3.6,{name}={}", max + 1);
        place
            .lowmark(&["run", "small.toml", "--kernel", &text])
            .error(&[&format!("to {max}"), "`lowmark list sysctls`"]);
    }
    let cluster = settings
        .iter()
        .find(|s| s["name"] == "page_cluster")
        .expect("listed");
    assert_eq!(cluster["default"], 3);
    assert_eq!(cluster["since"], Value::Null);
}
