//! What the command line can change, and what it is told when it cannot.

use lowmark_spec::machine::{Atime, FileSystem, FsKind};
use lowmark_spec::workload::{Amount, Op, Touch};
use lowmark_spec::{
    BuiltIn, Directory, KernelPart, KernelSpec, Library, Objection, Overrides, Scenario, Source,
    SpecError, Toggle, parse, parse_for,
};

const TEXT: &str = r#"
lowmark = 1
[workload]
name = "test"
seed = 7
[for]
order = ["seq", "random"]
[let]
touches = 100
[machine]
use = "small-512m-ssd"
ram = "256M"
[kernel]
use = "v3.6"
sysctl = { page_cluster = 3, dirty_ratio = 10 }
[task.main]
run = [
  { map = "m", kind = "anon-private", size = "RAM/2" },
  { touch = "m", access = "write", order = "$order", count = "touches" },
]
"#;

fn run(overrides: Overrides) -> Result<Vec<Scenario>, SpecError> {
    parse(
        &Source {
            name: "test.toml".into(),
            text: TEXT.into(),
        },
        &BuiltIn,
        &overrides,
    )
}

fn set(name: &str, value: &str) -> Result<Vec<Scenario>, SpecError> {
    run(Overrides {
        set: vec![(name.into(), value.into())],
        ..Overrides::default()
    })
}

fn complaint(result: Result<Vec<Scenario>, SpecError>) -> String {
    result.map(|_| ()).expect_err("an error").render_plain()
}

#[test]
fn values_are_set() -> Result<(), SpecError> {
    let plain = run(Overrides::default())?;
    assert_eq!(
        (plain.len(), plain[0].seed, plain[0].machine.ram()),
        (2, 7, 256 << 20)
    );
    let one = set("order", "random")?;
    assert_eq!(one.len(), 1);
    assert_eq!(one[0].params[0].1, "random");
    let touched = &set("touches", "2*NCPU")?[0].workload.tasks[0].instances[0][1].op;
    assert!(matches!(
        touched,
        Op::Touch {
            what: Touch {
                amount: Amount::Count(4),
                ..
            },
            ..
        }
    ));
    assert_eq!(set("machine.ram", "1G")?[0].machine.ram(), 1 << 30);
    assert_eq!(set("ram", "1G")?[0].machine.ram(), 1 << 30);
    assert!(set("thp", "true")?[0].machine.thp);
    assert_eq!(
        set("page_cluster", "0")?[0].kernel.sysctl["page_cluster"],
        "0"
    );
    assert_eq!(
        set("kernel.sysctl.swappiness", "10")?[0].kernel.sysctl["swappiness"],
        "10"
    );
    assert_eq!(
        run(Overrides {
            seed: Some(3),
            ..Overrides::default()
        })?[0]
            .seed,
        3
    );
    Ok(())
}

#[test]
fn machine_and_kernels_are_replaced() -> Result<(), SpecError> {
    let overrides = Overrides {
        machine: Some("desktop-900m-ssd".into()),
        kernels: vec![
            "v3.6".into(),
            "v3.6+swapin_readahead=hugh-new,page_cluster=4".into(),
        ],
        ..Overrides::default()
    };
    let scenarios = run(overrides)?;
    assert_eq!(scenarios.len(), 4);
    assert_eq!(scenarios[0].machine.name, "desktop-900m-ssd");
    // The file's own changes belong to the file's machine.
    assert_eq!(scenarios[0].machine.ram(), 900 << 20);
    let sysctl = |i: usize, name: &str| scenarios[i].kernel.sysctl[name].clone();
    assert_eq!(
        (sysctl(0, "page_cluster"), sysctl(1, "page_cluster")),
        ("3".into(), "4".into())
    );
    assert_eq!(sysctl(1, "dirty_ratio"), "10");
    assert_eq!(scenarios[2].params[0].1, "random");
    Ok(())
}

#[test]
fn mistakes_are_told() {
    assert_eq!(
        complaint(set("touchs", "1")),
        "--set:1:1: touchs: nothing named `touchs` can be set in this workload\n  \
         help: did you mean `touches`?\n"
    );
    assert_eq!(
        complaint(set("machine.rma", "1G")),
        "--set:1:1: machine.rma: nothing named `machine.rma` can be set in this workload\n  \
         help: did you mean `ram`?\n"
    );
    assert_eq!(
        complaint(set("touches", "5M")),
        "test.toml:19:62: task.main.run[1].count: expected a count, found \"touches\", a size\n  help: \
         write a plain number: 5000, or an expression such as \"RAM/1M\" or \"4*NCPU\"\n"
    );
    assert_eq!(
        complaint(set("machine.ram", "90Q")),
        "--set:1:13: machine.ram: unknown unit `Q` in `90Q`\n  help: units are B, K, M, G, T, KiB, MiB, \
         GiB, TiB, KB, MB, GB, TB, p, ns, us, ms, s, m, h\n"
    );
    let unknown = run(Overrides {
        machine: Some("desktop".into()),
        ..Overrides::default()
    });
    assert!(
        complaint(unknown).starts_with("--machine:1:1: machine.use: unknown machine `desktop`\n")
    );
    let kernel = run(Overrides {
        kernels: vec!["latest".into()],
        ..Overrides::default()
    });
    assert!(
        complaint(kernel)
            .starts_with("--kernel:1:1: kernel.use: expected a kernel version, found \"latest\"\n")
    );
}

#[test]
fn kernels_have_a_form() -> Result<(), SpecError> {
    let kernel = KernelSpec::parse("v3.6-rc7+swapin_readahead=hugh-new+swap_stats,page_cluster=4")?;
    assert_eq!(kernel.version, "v3.6-rc7");
    let set = Toggle::Set {
        mechanism: "swapin_readahead".into(),
        variant: "hugh-new".into(),
    };
    let applied = Toggle::Apply("swap_stats".into());
    assert_eq!(kernel.toggles, [set, applied]);
    assert_eq!(kernel.sysctl["page_cluster"], "4");
    for bad in [
        "",
        "v",
        "v3",
        "vv3.6",
        "v3.6+",
        "v3.6+a+a",
        "v3.6,",
        "v3.6,a",
        "v3.6,a=",
        "v3.6 ",
        "v3.6-rc",
        "v3.6-",
        "v3.6--a",
        "v3.6-a,-a",
        "v3.6-a+a=b",
        "v3.6,-",
        "v3.6,page-cluster=1,page_cluster=2",
    ] {
        assert!(KernelSpec::parse(bad).is_err(), "{bad}");
    }
    let error = KernelSpec::parse("v3.6+a=b,x")
        .expect_err("no value")
        .render_plain();
    assert!(
        error.starts_with("--kernel:1:10: kernel.use: expected a setting name=value"),
        "{error}"
    );
    Ok(())
}

#[test]
fn machines_come_from_a_directory() {
    let directory = std::env::temp_dir().join(format!("lowmark-spec-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("writable");
    let mine = BuiltIn
        .machine("small-512m-ssd")
        .expect("built in")
        .text
        .replace("512M", "384M");
    std::fs::write(directory.join("mine.toml"), mine).expect("writable");
    let library = Directory {
        path: directory.clone(),
    };
    assert!(library.machines().contains(&"mine".to_owned()));
    for name in ["mine", "mine.toml"] {
        let overrides = Overrides {
            machine: Some(name.into()),
            ..Overrides::default()
        };
        let source = Source {
            name: "test.toml".into(),
            text: TEXT.into(),
        };
        let scenarios = parse(&source, &library, &overrides);
        assert_eq!(
            scenarios
                .map(|s| (s[0].machine.name.clone(), s[0].machine.ram()))
                .ok(),
            Some(("mine".to_owned(), 384 << 20))
        );
    }
    assert!(library.machine("server-64g-2node").is_some());
    assert!(library.machine("../no/such").is_none());
    std::fs::remove_dir_all(directory).expect("removable");
}

#[test]
fn an_error_shows_the_place() {
    let error = set("machine.ram", "90Q").expect_err("an unknown unit");
    let mut shown = String::new();
    let handler = miette::NarratableReportHandler::new();
    handler.render_report(&mut shown, &error).expect("rendered");
    assert!(
        shown.contains("machine.ram=90Q") && shown.contains("line 1"),
        "{shown}"
    );
    assert_eq!(error.details()[0].column, 13);
}

#[test]
fn versions_are_told_with_and_without_their_letter() -> Result<(), SpecError> {
    for (text, version) in [
        ("6.18", "v6.18"),
        ("v6.18", "v6.18"),
        ("5.10", "v5.10"),
        ("v6.1.192", "v6.1.192"),
        ("6.1.192", "v6.1.192"),
        ("2.6.36-rc4", "v2.6.36-rc4"),
    ] {
        let kernel = KernelSpec::parse(text)?;
        assert_eq!(
            (kernel.version.as_str(), kernel.text.as_str()),
            (version, text)
        );
        assert_eq!(kernel.toggles, []);
    }
    Ok(())
}

/// The dash of a change that is taken out, beside those of release candidates and of names.
#[test]
fn changes_are_taken_out() -> Result<(), SpecError> {
    let removed = |name: &str| Toggle::Remove(name.into());
    let kernel = KernelSpec::parse("6.18-eevdf")?;
    assert_eq!(kernel.version, "v6.18");
    assert_eq!(kernel.toggles, [removed("eevdf")]);

    let kernel = KernelSpec::parse("v6.18-rc4-one-counter-of-tags+pcp-high,-eevdf,page-cluster=0")?;
    assert_eq!(kernel.version, "v6.18-rc4");
    let applied = Toggle::Apply("pcp-high".into());
    assert_eq!(
        kernel.toggles,
        [removed("one-counter-of-tags"), applied, removed("eevdf")]
    );
    assert_eq!(kernel.sysctl["page_cluster"], "0");
    let shown: Vec<String> = kernel.toggles.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["-one-counter-of-tags", "+pcp-high", "-eevdf"]);

    let error = KernelSpec::parse("v6.18-a b")
        .expect_err("a blank")
        .render_plain();
    assert!(
        error.starts_with("--kernel:1:7: kernel.use: expected a change after `-`, found \"a b\""),
        "{error}"
    );
    Ok(())
}

/// `page-cluster` is the name under /proc/sys/vm, `page_cluster` the one here.
#[test]
fn settings_may_be_written_with_a_dash() {
    for key in [
        "page-cluster",
        "vm.page-cluster",
        "kernel.sysctl.page-cluster",
    ] {
        let scenarios = set(key, "1").expect(key);
        assert_eq!(scenarios[0].kernel.sysctl["page_cluster"], "1", "{key}");
    }
    let twice = TEXT.replace("page_cluster = 3", "page-cluster = 1, page_cluster = 2");
    let source = Source {
        name: "test.toml".into(),
        text: twice,
    };
    let error = parse(&source, &BuiltIn, &Overrides::default()).expect_err("two values");
    assert!(
        error
            .render_plain()
            .contains("a second value of `page_cluster`")
    );
}

/// Huge pages of other sizes than the PMD's are refused by what they are, wherever a setting may stand.
#[test]
fn other_sizes_of_huge_pages_are_refused_by_name() {
    let refused = [
        set("thp.hugepages-64kB.enabled", "always").err(),
        set("kernel.sysctl.hugepages-64kB", "always").err(),
        KernelSpec::parse("v6.18,thp.hugepages-64kB.enabled=always").err(),
    ];
    for error in refused {
        let error = error.expect("refused").render_plain();
        assert!(
            error.contains("smaller than a PMD maps are not modelled"),
            "{error}"
        );
    }
}

/// What a backend has against a kernel stands where that part of it was written.
#[test]
fn objections_of_a_backend_have_places() {
    fn judge(spec: &KernelSpec) -> Vec<Objection> {
        let settings = spec.sysctl.keys().cloned().map(KernelPart::Setting);
        let toggles = (0..spec.toggles.len()).map(KernelPart::Toggle);
        let parts = [KernelPart::Whole, KernelPart::Version].into_iter();
        let objection = |part: KernelPart| Objection {
            message: format!("{part:?}"),
            help: "do without".to_owned(),
            part,
        };
        parts
            .chain(toggles)
            .chain(settings)
            .map(objection)
            .collect()
    }
    let said = |overrides: &Overrides| {
        let source = Source {
            name: "test.toml".into(),
            text: TEXT.into(),
        };
        let error = parse_for(&source, &BuiltIn, overrides, judge).expect_err("objections");
        let lines = error.details().into_iter().map(ToString::to_string);
        lines.collect::<Vec<_>>()
    };
    assert_eq!(
        said(&Overrides::default()),
        [
            "test.toml:14:7: kernel.use: Whole",
            "test.toml:14:8: kernel.use: Version",
            "test.toml:15:27: kernel.sysctl.page_cluster: Setting(\"page_cluster\")",
            "test.toml:15:44: kernel.sysctl.dirty_ratio: Setting(\"dirty_ratio\")",
        ]
    );
    let overrides = Overrides {
        kernels: vec!["v3.6-a+b=c,-d,page_cluster=1".into()],
        set: vec![("swappiness".into(), "5".into())],
        ..Overrides::default()
    };
    assert_eq!(
        said(&overrides),
        [
            "test.toml:15:44: kernel.sysctl.dirty_ratio: Setting(\"dirty_ratio\")",
            "--set:1:12: swappiness: Setting(\"swappiness\")",
            "--kernel:1:1: kernel.use: Whole",
            "--kernel:1:1: kernel.use: Version",
            "--kernel:1:6: kernel.use: Toggle(0)",
            "--kernel:1:8: kernel.use: Toggle(1)",
            "--kernel:1:13: kernel.use: Toggle(2)",
            "--kernel:1:28: kernel.use: Setting(\"page_cluster\")",
        ]
    );
}

/// `$name` stands for a parameter in every text, also where it chooses machine and kernel.
#[test]
fn parameters_in_texts() -> Result<(), SpecError> {
    let text = r#"
lowmark = 1
[workload]
name = "test"
title = "$$5 for ${n}x on $kernel"
[for]
kernel = ["v3.6", "v3.13,swappiness=10"]
machine = ["small-512m-ssd", "server-64g-2node"]
n = [2]
[let]
mine = "RAM/n"
[machine]
use = "$machine"
[kernel]
use = "$kernel"
sysctl = { min_free_kbytes = "$mine" }
[file.out]
copies = "n"
path = "logs/of-$n-"
size = "mine"
[task.main]
threads = "n"
run = [{ write = "out${idx}", block = "4K", sync = true }]
"#;
    let source = Source {
        name: "test.toml".into(),
        text: text.into(),
    };
    let scenarios = parse(&source, &BuiltIn, &Overrides::default())?;
    let names: Vec<(&str, &str)> = scenarios
        .iter()
        .map(|s| (s.kernel.version.as_str(), s.machine.name.as_str()))
        .collect();
    assert_eq!(
        names,
        [
            ("v3.6", "small-512m-ssd"),
            ("v3.6", "server-64g-2node"),
            ("v3.13", "small-512m-ssd"),
            ("v3.13", "server-64g-2node")
        ]
    );
    let last = &scenarios[3];
    assert_eq!(last.workload.title, "$5 for 2x on v3.13,swappiness=10");
    assert_eq!(last.kernel.sysctl["swappiness"], "10");
    assert_eq!(
        last.kernel.sysctl["min_free_kbytes"],
        (32_u64 << 30).to_string()
    );
    assert_eq!(last.workload.files[1].path, "logs/of-2-1");
    assert_eq!(last.workload.files[1].size, 32 << 30);
    Ok(())
}

fn device(scenarios: &[Scenario]) -> &lowmark_spec::machine::Device {
    &scenarios[0].machine.devices[0]
}

/// One field of a device changes and the others stay, from the command line and in a workload's `[machine]`.
#[test]
fn fields_of_devices_are_set() -> Result<(), SpecError> {
    let before = run(Overrides::default())?;
    let before = device(&before);
    for key in ["device.sda.nr_requests", "machine.device.sda.nr_requests"] {
        let after = set(key, "64")?;
        let mut expected = before.clone();
        assert_ne!(expected.nr_requests, 64);
        expected.nr_requests = 64;
        assert_eq!(device(&after), &expected, "{key}");
    }
    let two = run(Overrides {
        set: vec![
            ("device.sda.rate".into(), "4096K/s".into()),
            ("device.sda.elevator".into(), "noop".into()),
        ],
        ..Overrides::default()
    })?;
    let mut expected = before.clone();
    expected.elevator = lowmark_spec::machine::Elevator::Noop;
    // Writes follow reads, as they do where the machine says nothing of them.
    assert_eq!(before.page_ns, before.page_write_ns);
    (expected.page_ns, expected.page_write_ns) = (976_562, 976_562);
    assert_eq!(device(&two), &expected);

    let text = TEXT.replace(
        "[kernel]",
        "[machine.device.sda]\ncommand_read = \"1ms\"\n[kernel]",
    );
    let source = Source {
        name: "test.toml".into(),
        text,
    };
    let in_file = parse(&source, &BuiltIn, &Overrides::default())?;
    let mut expected = before.clone();
    expected.command_read_ns = 1_000_000;
    assert_eq!(device(&in_file), &expected);
    Ok(())
}

/// A file system becomes one of another kind, and stays on its device.
#[test]
fn fields_of_file_systems_are_set() -> Result<(), SpecError> {
    let before = run(Overrides::default())?;
    let before = &before[0].machine.filesystems;
    for key in ["filesystem.data.kind", "machine.filesystem.data.kind"] {
        let after = set(key, "ext3")?;
        let mut expected = before.clone();
        let data = expected.iter_mut().find(|fs| fs.name == "data").expect(key);
        assert_ne!(data.kind, FsKind::Ext3);
        data.kind = FsKind::Ext3;
        assert_eq!(after[0].machine.filesystems, expected, "{key}");
    }
    // What is not said stays as it is.
    let guest = TEXT.replace("small-512m-ssd", "guest-256m");
    let source = Source {
        name: "test.toml".into(),
        text: guest,
    };
    let changed = Overrides {
        set: vec![("filesystem.data.kind".into(), "xfs".into())],
        ..Overrides::default()
    };
    let of_guest = |overrides| -> Result<FileSystem, SpecError> {
        let runs = parse(&source, &BuiltIn, &overrides)?;
        Ok(runs[0].machine.filesystems[0].clone())
    };
    let (mut expected, found) = (of_guest(Overrides::default())?, of_guest(changed)?);
    assert_eq!(expected.atime, Atime::Noatime);
    expected.kind = FsKind::Xfs;
    assert_eq!(found, expected);
    for (key, value, expected) in [
        (
            "filesystem.data.kind",
            "ext9",
            "known: xfs, ext4, ext3, tmpfs",
        ),
        ("filesystem.data", "xfs", "write filesystem.NAME.FIELD"),
        ("filesystem.data.knd", "xfs", "did you mean `kind`?"),
        (
            "filesystem.new.kind",
            "xfs",
            "the file system `new` needs `device`",
        ),
    ] {
        let message = complaint(set(key, value));
        assert!(message.contains(expected), "{message}");
    }
    Ok(())
}

#[test]
fn devices_that_cannot_be_changed() {
    for (key, value, expected) in [
        (
            "device.sdb.nr_requests",
            "64",
            "the machine has no device `sdb` to change",
        ),
        ("device.sda.nr_request", "64", "did you mean `nr_requests`?"),
        (
            "devices.sda.nr_requests",
            "64",
            "did you mean `device.sda.nr_requests`?",
        ),
        ("device.sda", "64", "write device.NAME.FIELD"),
        ("device.sda.chunk", "64K", "but the device has one member"),
        (
            "device.sda.nr_requests",
            "6.4",
            "expected a whole number, found \"6.4\"",
        ),
        (
            "device.sda.command_read",
            "61s",
            "expected at most one minute, found \"61s\"",
        ),
        (
            "device.sda.rate",
            "1/s*1B",
            "expected at least 69 bytes a second",
        ),
    ] {
        let found = complaint(set(key, value));
        assert!(found.contains(expected), "{key}: {found}");
    }
}

/// Numbers that are written out are whole where pieces are counted; what an expression comes to is rounded down.
#[test]
fn counts_are_whole() -> Result<(), SpecError> {
    for value in ["2.7", "1_0.5"] {
        let found = complaint(set("cpus", value));
        assert!(
            found.contains(&format!("expected a whole number, found \"{value}\"")),
            "{found}"
        );
    }
    let rounded = set("touches", "7/2")?;
    let Op::Touch { what, .. } = &rounded[0].workload.tasks[0].instances[0][1].op else {
        panic!("a touch");
    };
    assert_eq!(what.amount, Amount::Count(3));
    Ok(())
}

#[test]
fn nothing_is_set_twice() {
    let twice = |first: &str, second: &str| {
        run(Overrides {
            set: vec![(first.into(), "1".into()), (second.into(), "1".into())],
            ..Overrides::default()
        })
    };
    // Under whatever names, and for the same value too.
    for (first, second) in [
        ("touches", "touches"),
        ("page_cluster", "page_cluster"),
        ("page_cluster", "kernel.sysctl.page_cluster"),
        ("machine.cpus", "cpus"),
        ("device.sda.nr_requests", "machine.device.sda.nr_requests"),
        ("page-cluster", "page_cluster"),
    ] {
        let message = complaint(twice(first, second));
        let expected = format!("`{second}` is set twice");
        assert!(message.contains(&expected), "{message}");
    }
    assert!(twice("page_cluster", "cpus").is_ok());
}

/// Settings in bytes take sizes wherever they are given; the kernel gets the number.
#[test]
fn settings_in_bytes_take_sizes() -> Result<(), SpecError> {
    const BYTES: &str = "8388608";
    let kernel = KernelSpec::parse("v3.6,dirty_bytes=8M,dirty_background_bytes=4096")?;
    assert_eq!(kernel.sysctl["dirty_bytes"], BYTES);
    assert_eq!(kernel.sysctl["dirty_background_bytes"], "4096");
    // 256 MiB of RAM.
    for (key, value) in [
        ("dirty_bytes", "8M"),
        ("kernel.sysctl.dirty_bytes", "8192K"),
        ("dirty_bytes", "RAM/32"),
        ("dirty_bytes", BYTES),
    ] {
        assert_eq!(
            set(key, value)?[0].kernel.sysctl["dirty_bytes"],
            BYTES,
            "{value}"
        );
    }
    let text = TEXT
        .replace("page_cluster = 3", "dirty_bytes = \"8M\"")
        .replace(
            "run = [\n",
            "run = [\n  { sysctl = \"dirty_background_bytes\", value = \"4M\" },\n",
        );
    let source = Source {
        name: "test.toml".into(),
        text,
    };
    let scenarios = parse(&source, &BuiltIn, &Overrides::default())?;
    assert_eq!(scenarios[0].kernel.sysctl["dirty_bytes"], BYTES);
    let Op::Sysctl { value, .. } = &scenarios[0].workload.tasks[0].instances[0][0].op else {
        panic!("a sysctl");
    };
    assert_eq!(value, "4194304");

    let kbytes = complaint(set("min_free_kbytes", "8M"));
    assert!(
        kbytes.contains("expected a plain number of KiB for min_free_kbytes, found \"8M\"")
            && kbytes.contains("write min_free_kbytes = 8192"),
        "{kbytes}"
    );
    let no_size = complaint(set("dirty_bytes", "8 parrots"));
    assert!(no_size.starts_with("--set:1:"), "{no_size}");
    Ok(())
}
