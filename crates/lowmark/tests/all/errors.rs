//! Every wrong input is told by name, with what to do next, and ends with status 2.

use crate::common::{Place, SMALL};

#[test]
fn usage() {
    let place = Place::new();
    place.lowmark(&[]).error(&["Usage: lowmark"]);
    place
        .lowmark(&["frobnicate"])
        .error(&["frobnicate", "Usage:"]);
    place.lowmark(&["run"]).error(&["<WORKLOAD>"]);
    place
        .lowmark(&["run", "small.toml", "--set", "order"])
        .error(&["expected NAME=VALUE"]);
    place
        .lowmark(&["run", "small.toml", "--jobs", "0"])
        .error(&["--jobs"]);
    place
        .lowmark(&["run", "small.toml", "--repeat", "0"])
        .error(&["--repeat"]);
    place
        .lowmark(&["run", "small.toml", "--events"])
        .error(&["--out"]);
    place
        .lowmark(&["run", "small.toml", "--format", "yaml"])
        .error(&["yaml", "table, json"]);
    place
        .lowmark(&[
            "run",
            "small.toml",
            "--seed",
            "18446744073709551615",
            "--repeat",
            "2",
        ])
        .error(&["--repeat", "there is no seed"]);
}

/// Only one of the values could count, and nobody would know which.
#[test]
fn nothing_is_given_twice() {
    let place = Place::new();
    let set = |first: &str, second: &str| {
        place.lowmark(&["run", "small.toml", "--set", first, "--set", second])
    };
    set("page_cluster=0", "page-cluster=3")
        .error(&["`page-cluster` is set twice: --set page_cluster=0 and --set page-cluster=3"]);
    set("order=seq", "order=random").error(&["`order` is set twice", "help: "]);
    set("ram=40M", "machine.ram=40M").error(&["`machine.ram` is set twice"]);
    set("page_cluster=0", "order=seq").good();
    let kernels = |first: &str, second: &str| {
        let kernels = ["--kernel", first, "--kernel", second];
        let run = ["run", "small.toml", "--set", "order=seq"];
        place.lowmark(&[&run[..], &kernels].concat())
    };
    kernels("v3.6", "v3.6")
        .error(&["two runs are the same: small order=seq on small-512m-ssd, v3.6, seed 0"]);
    kernels("v3.6,swappiness=10", "3.6,vm.swappiness=10").error(&["two runs are the same"]);
    kernels("v3.6", "3.6,swappiness=60").good();
}

#[test]
fn only_what_there_is_is_offered() {
    let place = Place::new();
    for verb in ["run", "compare", "twin", "calibrate"] {
        let help = place.lowmark(&[verb, "--help"]).good();
        assert!(help.contains("--on host"), "{help}");
        assert!(!help.contains("built yet"), "{help}");
    }
    place
        .lowmark(&["run", "small.toml", "--on", "moon"])
        .error(&["moon", "[possible values: model, guest, host]"]);
}

#[test]
fn help_and_version_are_no_errors() {
    let place = Place::new();
    assert!(place.lowmark(&["--version"]).good().starts_with("lowmark "));
    for verb in [
        "run",
        "compare",
        "reproduce",
        "list",
        "twin",
        "kernels",
        "doctor",
    ] {
        assert!(
            place
                .lowmark(&["--help"])
                .good()
                .contains(&format!("  {verb} "))
        );
        let help = place.lowmark(&[verb, "--help"]).good();
        assert!(help.contains(&format!("\n  lowmark {verb}")), "{help}");
    }
}

#[test]
fn workloads() {
    let place = Place::new();
    for verb in ["run", "compare", "report", "why"] {
        place
            .lowmark(&[verb, ""])
            .error(&["expected a name, found an empty one"]);
    }
    place
        .lowmark(&["run", "nowhere.toml"])
        .error(&["nowhere.toml: no such file", "swap-small"]);
    std::os::unix::fs::symlink("circle.toml", place.path("circle.toml")).expect("made");
    let circle = place.lowmark(&["run", "circle.toml"]);
    assert!(!circle.stderr.contains("no such file"), "{circle:?}");
    circle.error(&["circle.toml: cannot read", "symbolic links"]);
    std::fs::create_dir(place.path("dir")).expect("made");
    place
        .lowmark(&["run", "dir"])
        .error(&["dir: is a directory", "help: "]);
    place.write("broken.toml", &SMALL.replace("\"small\"", "\"A B\""));
    place
        .lowmark(&["run", "broken.toml"])
        .error(&["error: broken.toml:5:8: workload.name: ", "help: "]);
    place.write("binary.toml", "");
    std::fs::write(place.path("binary.toml"), [0xff, 0xfe]).expect("written");
    place.lowmark(&["run", "binary.toml"]).error(&[
        "binary.toml:1:1: expected text in UTF-8",
        "check that this is the file",
    ]);
    place.write("huge.toml", &"#".repeat(2 << 20));
    place
        .lowmark(&["run", "huge.toml"])
        .error(&["huge.toml", "1 MiB"]);
    place
        .lowmark(&["run", "small.toml", "--set", "ordr=seq"])
        .error(&["--set", "ordr", "did you mean `order`?"]);
}

#[test]
fn what_the_model_cannot_do_is_refused_before_it_starts() {
    let place = Place::new();
    let with = |statement: &str| {
        format!(
            "lowmark = 1\n[workload]\nname = \"w\"\n[machine]\nuse = \"small-512m-ssd\"\n[task.main]\nrun = [\n\
             {{ map = \"m\", kind = \"anon-private\", size = \"8M\" }},\n{statement},\n]\n"
        )
    };
    place.write(
        "huge.toml",
        &with("{ advise = \"m\", advice = \"hugepage\" }"),
    );
    place
        .lowmark(&["run", "huge.toml", "--kernel", "v2.6.37", "--out", "out"])
        .error(&[
            "huge.toml: v2.6.37 does not know `advise hugepage` (task main, line 9), which came with v2.6.38",
        ]);
    place.write(
        "out.toml",
        &with("{ advise = \"m\", advice = \"pageout\" }"),
    );
    place
        .lowmark(&["run", "out.toml", "--kernel", "v4.4", "--out", "out"])
        .error(&["v4.4 does not know `advise pageout` (task main, line 9), which came with v5.4"]);
    assert!(!place.path("out").exists());
}

#[test]
fn kernels_and_machines() {
    let place = Place::new();
    let kernel = |text: &str, parts: &[&str]| {
        place
            .lowmark(&["run", "small.toml", "--kernel", text])
            .error(parts);
    };
    kernel("linux", &["--kernel:1:1", "expected a kernel version"]);
    kernel("v9.9", &["no kernel v9.9", "v3.6", "lowmark list kernels"]);
    kernel(
        "v3.6+magic",
        &["no change called magic", "lowmark list kernels"],
    );
    kernel("v3.6+magic=x", &["called magic", "lowmark list mechanisms"]);
    kernel("v3.6+swapin_readahead", &["needs a variant", "hugh-new"]);
    kernel(
        "v3.6+swapin_readahead",
        &["swapin_readahead is a mechanism and needs a variant: +swapin_readahead="],
    );
    kernel(
        "v3.6+swapin_readahead=none",
        &["swapin_readahead has no variant none", "hugh-new"],
    );
    kernel(
        "v4.12,model.swap_bios=on",
        &["model.swap_bios=on: the model has it from v5.0 on, not in v4.12"],
    );
    kernel(
        "v4.12+virtio_memory=chunks",
        &[
            "a part of virtio_memory",
            "has from v5.0 on",
            "lowmark list coverage",
        ],
    );
    kernel(
        "v3.6+balance_pgdat=node",
        &["balance_pgdat=node works only with lru_unit=node"],
    );
    kernel(
        "v3.6,page_cluster=9",
        &["page_cluster = 9: expected a number from 0 to 5"],
    );
    place
        .lowmark(&[
            "compare",
            "small.toml",
            "--kernel",
            "v3.6",
            "--kernel",
            "v3.6",
        ])
        .error(&["two runs are the same"]);
    let machine = |name: &str, parts: &[&str]| {
        place
            .lowmark(&["run", "small.toml", "--machine", name])
            .error(parts);
    };
    machine(
        "small-512m-sdd",
        &[
            "unknown machine `small-512m-sdd`",
            "did you mean `small-512m-ssd`?",
        ],
    );
    machine("nowhere.toml", &["machine.use: nowhere.toml: no such file"]);
    machine(
        "./nowhere",
        &[
            "machine.use: ./nowhere: no such file",
            "lowmark list machines",
        ],
    );
    std::fs::create_dir(place.path("dir.toml")).expect("made");
    machine("dir.toml", &["machine.use: dir.toml: cannot read: "]);
    machine("small.toml", &["small.toml"]);
    place
        .lowmark(&["run", "small.toml", "--set", "ram=1M"])
        .error(&["machine"]);
}

/// A value that does not measure what the one in the file does is refused where it is given, not where it is used.
#[test]
fn values_are_refused_where_they_are_given() {
    let place = Place::new();
    let sparse = "{ touch = \"m\", access = \"write\", count = \"0.2*size/PAGE\" },\n]\n";
    place.write(
        "own.toml",
        &(SMALL.trim_end().trim_end_matches(']').to_owned() + sparse),
    );
    let set = |value: &str| {
        let set = format!("size={value}");
        place.lowmark(&["run", "own.toml", "--set", "order=seq", "--set", &set])
    };
    for (value, said) in [
        ("250", "help: write 250M\n"),
        ("0", "help: write 0M\n"),
        ("-5", "help: write it with its unit, as \"40M\"\n"),
        ("-5M", "which is below zero"),
        ("5s", "own.toml:"),
    ] {
        let done = set(value);
        let errors = done
            .stderr
            .lines()
            .filter(|line| !line.starts_with("  help"));
        assert!(value == "5s" || errors.count() == 1, "{}", done.stderr);
        done.error(&[said]);
    }
    set("250").error(&[
        "--set:1:6: size: expected a size, as size = \"40M\" of the file is, found --set size=250",
    ]);
    set("36M").good();
}

/// What the model does not have is told as what is misspelt is: everything at once, with its place.
#[test]
fn kernels_in_files_have_places() {
    let place = Place::new();
    let kernel = |text: &str| {
        place.write("own.toml", &SMALL.replace("use = \"v3.6\"", text));
        place.lowmark(&["run", "own.toml", "--set", "order=seq"])
    };
    kernel("use = \"v6.1\"\nsysctl = { page_cluster = 77, foo = 3 }").error(&[
        ":27: kernel.sysctl.page_cluster: page_cluster = 77: expected a number from 0 to 5",
        ":37: kernel.sysctl.foo: the model has no setting foo",
        "help: `lowmark list sysctls`",
    ]);
    kernel("use = \"v6.1+nosuch,page_cluster=77\"").error(&[
        "own.toml:",
        ":13: kernel.use: the model has no change called nosuch",
        ":33: kernel.use: page_cluster = 77",
        "help: `lowmark list kernels`",
    ]);
    kernel("use = \"v2.6.30\"").error(&[
        "own.toml:",
        ":8: kernel.use: the model has no kernel v2.6.30",
    ]);
    place
        .lowmark(&["run", "small.toml", "--kernel", "v6.1+nosuch,foo=3"])
        .error(&["--kernel:1:6: kernel.use: ", "--kernel:1:17: kernel.use: "]);
    place
        .lowmark(&[
            "run",
            "small.toml",
            "--set",
            "swappiness=abc",
            "--set",
            "page_cluster=9",
        ])
        .error(&["--set:1:12: swappiness: ", "--set:1:14: page_cluster: "]);
}

/// What stands in the place of a recording's file is told from none.
#[test]
fn recordings_that_are_no_files() {
    let place = Place::new();
    std::fs::create_dir(place.path("run")).expect("made");
    std::os::unix::fs::symlink("/dev/zero", place.path("run/recording.json")).expect("made");
    for verb in ["report", "why", "compare"] {
        place.lowmark(&[verb, "run"]).error(&[
            "run/recording.json: expected a regular file, found something else",
            "help: ",
        ]);
    }
}

#[test]
fn destinations() {
    let place = Place::new();
    place.write("file", "");
    place
        .lowmark(&["run", "small.toml", "--out", "file"])
        .error(&["file: is not a directory"]);
    let below = ["run", "small.toml", "--out", "file/below"];
    place.lowmark(&below).error(&["file/below"]);
    let directory = "out/small_order=random_small-512m-ssd_v3.6_seed0";
    std::fs::create_dir_all(place.path(directory)).expect("made");
    place.write(&format!("{directory}/thesis.tex"), "precious");
    place
        .lowmark(&["run", "small.toml", "--out", "out"])
        .error(&["will not be overwritten", "thesis.tex"]);
    assert_eq!(
        std::fs::read_dir(place.path("out")).expect("there").count(),
        1
    );
    place
        .lowmark(&["run", "small.toml", "--set", "order=seq", "--out", "good"])
        .good();
    let recording = "good/small_order=seq_small-512m-ssd_v3.6_seed0";
    place
        .lowmark(&["run", "small.toml", "--out", recording])
        .error(&["is itself a recording"]);
}

#[test]
fn recordings_to_compare() {
    let place = Place::new();
    std::fs::create_dir(place.path("empty")).expect("made");
    place
        .lowmark(&["compare", "empty"])
        .error(&["empty: no recording in this directory"]);
    place
        .lowmark(&["compare", "empty", "small.toml"])
        .error(&["no recording"]);
    place
        .lowmark(&["compare", "small.toml", "small.toml"])
        .error(&["expected a directory with recordings"]);
    place
        .lowmark(&["run", "small.toml", "--out", "out", "--set", "order=seq"])
        .good();
    place
        .lowmark(&["compare", "out", "--kernel", "v3.6"])
        .error(&["--kernel has no meaning for recordings"]);
    let file = "out/small_order=seq_small-512m-ssd_v3.6_seed0/recording.json";
    place.write(file, "{\"format\": \"lowmark-recording\", \"version\": 9}");
    place
        .lowmark(&["compare", "out"])
        .error(&["recording.json", "version 9"]);
}

#[test]
fn evaluations() {
    let place = Place::new();
    place
        .lowmark(&["reproduce", "nothing"])
        .error(&["nothing", "swap-readahead"]);
    place
        .lowmark(&["reproduce", "lumpy-removal-2012-text-size"])
        .error(&["no recipe runs evaluation `lumpy-removal-2012-text-size`"]);
    place
        .lowmark(&["reproduce", "swap-readahead", "--variant", "half"])
        .error(&["variant half", "five-passes"]);
}
