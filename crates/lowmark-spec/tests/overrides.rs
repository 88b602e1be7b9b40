//! What the command line can change, and what it is told when it cannot.

use lowmark_spec::workload::{Amount, Op, Touch};
use lowmark_spec::{
    BuiltIn, Directory, KernelSpec, Library, Overrides, Scenario, Source, SpecError, Toggle, parse,
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
        kernels: vec!["3.6".into()],
        ..Overrides::default()
    });
    assert!(
        complaint(kernel)
            .starts_with("--kernel:1:1: kernel.use: expected a kernel version, found \"3.6\"\n")
    );
}

#[test]
fn kernels_have_a_form() -> Result<(), SpecError> {
    let kernel = KernelSpec::parse("v3.6-rc7+swapin_readahead=hugh-new+swap_stats,page_cluster=4")?;
    assert_eq!(kernel.version, "v3.6-rc7");
    let toggle = |mechanism: &str, variant: Option<&str>| Toggle {
        mechanism: mechanism.into(),
        variant: variant.map(str::to_owned),
    };
    assert_eq!(
        kernel.toggles,
        [
            toggle("swapin_readahead", Some("hugh-new")),
            toggle("swap_stats", None)
        ]
    );
    assert_eq!(kernel.sysctl["page_cluster"], "4");
    for bad in [
        "", "v", "v3", "3.6", "v3.6+", "v3.6+a+a", "v3.6,", "v3.6,a", "v3.6,a=", "v3.6 ", "v3.6-rc",
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
