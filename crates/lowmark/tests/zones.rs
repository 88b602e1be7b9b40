//! The kernel's own arithmetic: what zones keep back, as real kernels say it in `/proc/zoneinfo` and as the model
//! computes it from nothing but their present and managed pages; and at how many dirty pages writers are held back,
//! as `/proc/vmstat` says it. Equal, not near.
//!
//! What the kernels said lies in `captures/zoneinfo`, so that this is judged everywhere. Where QEMU and the kernels
//! are, one machine of each boots again and is judged as well. `LOWMARK_BLESS=1 cargo test -p lowmark --test zones`
//! boots all and writes the files anew.

#[path = "../../../tests/needed.rs"]
mod needed;

use lowmark_model::kernel::Kernel;
use lowmark_model::mmzone::{ZoneMarks, zone_marks};
use lowmark_model::thresholds::{Memory, domain_dirty_limits, global_dirtyable_memory};
use lowmark_real::doctor::{self, State};
use lowmark_real::guest::{self, GuestOptions, KernelImage};
use lowmark_real::runner::procfs::parse_vmstat;
use lowmark_real::zoneinfo::{self, ZoneInfo};
use lowmark_record::System;
use lowmark_spec::{BuiltIn, Overrides, Scenario, Source, parse};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const KERNELS: [&str; 3] = ["6.1", "6.12", "6.18"];

/// Name, fields of the machine, settings.
const MACHINES: [(&str, &str, &str); 10] = [
    ("80m", "ram = \"80M\"", ""),
    ("128m", "ram = \"128M\"", ""),
    ("256m-min-free", "ram = \"256M\"", "min_free_kbytes = 8191"),
    ("512m", "ram = \"512M\"", ""),
    (
        "600m-scale",
        "ram = \"600M\"",
        "watermark_scale_factor = 215",
    ),
    ("700m-thp", "ram = \"700M\"\nthp = true", ""),
    ("1g-2nodes", "nodes = [\"400M\", \"624M\"]", ""),
    (
        "2g-thp-min-free",
        "ram = \"2G\"\nthp = true",
        "min_free_kbytes = 70001",
    ),
    ("3g", "ram = \"3G\"", ""),
    (
        "4g-2nodes-scale",
        "nodes = [\"2500M\", \"1596M\"]",
        "watermark_scale_factor = 33",
    ),
];

/// Which of them boots where guests can.
const LIVE: &str = "600m-scale";

fn scenario(kernel: &str, (name, machine, sysctl): (&str, &str, &str)) -> Scenario {
    let text = format!(
        "lowmark = 1\n[workload]\nname = \"{name}\"\n[machine]\ncpus = 2\n{machine}\n\
         [kernel]\nuse = \"v{kernel}\"\nsysctl = {{ {sysctl} }}\n[task.main]\nrun = [{{ sleep = \"1ms\" }}]\n"
    );
    let source = Source {
        name: format!("{name}.toml"),
        text,
    };
    let scenarios = parse(&source, &BuiltIn, &Overrides::default());
    let scenarios = scenarios.unwrap_or_else(|error| panic!("{}", error.render_plain()));
    scenarios.into_iter().next().expect("one run")
}

fn file(kernel: &str, machine: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures/zoneinfo");
    directory.join(format!("{kernel}-{machine}.txt"))
}

/// What a guest said, without what is not needed here: counters of zones and nodes, and lists of CPUs.
fn shortened(system: &System) -> String {
    const PATHS: [(&str, &[&str]); 3] = [
        ("dev/kmsg", &["RAMDISK", "Freeing"]),
        (
            "proc/zoneinfo",
            &[
                "Node",
                "pages",
                "boost",
                "min",
                "low",
                "high",
                "spanned",
                "present",
                "managed",
                "protection:",
                "start_pfn:",
            ],
        ),
        (
            "proc/vmstat",
            &[
                "nr_free_pages",
                "nr_inactive_file",
                "nr_active_file",
                "nr_dirty_threshold",
                "nr_dirty_background_threshold",
            ],
        ),
    ];
    let mut text = format!("Linux {}\n", system.release);
    for (path, wanted) in PATHS {
        let content = system.before.get(path).map_or("", String::as_str);
        let zones = content.split("Node ");
        let populated = zones.filter(|zone| !zone.contains("present  0\n"));
        let content = populated.collect::<Vec<_>>().join("Node ");
        let _ = writeln!(text, "==> {path} <==");
        let kept = content.lines().filter(|line| {
            let first = line.split([' ', ':']).find(|word| !word.is_empty());
            let first = first.unwrap_or("");
            // Lists of CPUs have a `high:` of their own.
            let of_cpu = line.contains(':') && first == "high";
            !of_cpu
                && wanted
                    .iter()
                    .any(|word| word.trim_end_matches(':') == first)
        });
        for line in kept.filter(|line| !line.ends_with("per-node stats")) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// What [`shortened`] has left.
fn read(text: &str) -> System {
    let mut system = System::default();
    let mut sections = text.split("==> ");
    let head = sections.next().unwrap_or("").trim();
    system.release = head.trim_start_matches("Linux ").to_owned();
    for section in sections {
        let (path, content) = section.split_once(" <==\n").expect("a section");
        system.before.insert(path.to_owned(), content.to_owned());
    }
    system
}

/// Boots a machine; none if there is no such kernel here, or nothing to boot it with.
fn boot(kernel: &str, scenario: &Scenario) -> Option<System> {
    let lacking = doctor::guests()
        .into_iter()
        .find(|check| check.state == State::Missing && ["QEMU", "runner"].contains(&check.name));
    if let Some(check) = lacking {
        needed::absent(&check.detail);
        return None;
    }
    let image = match KernelImage::find(kernel) {
        Ok(image) => image,
        Err(error) => {
            needed::absent(error);
            return None;
        }
    };
    let outcome = guest::run(scenario, &GuestOptions::new(image));
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    Some(*outcome.recording.system.expect("a guest"))
}

/// What the model makes of the zones that a kernel reported beside what that kernel made of them.
fn compare(name: &str, scenario: &Scenario, system: &System) {
    let reported = zoneinfo::parse(&system.before["proc/zoneinfo"]);
    let machine = zoneinfo::observed(&scenario.machine, system);
    let kernel = Kernel::resolve(&scenario.kernel).expect("a kernel of the model");
    let computed = zone_marks(&machine, &kernel);
    assert_eq!(computed.len(), reported.len(), "{name}");
    for (model, real) in computed.iter().zip(&reported) {
        let of_model = |zone: &ZoneMarks| {
            let marks = [zone.managed, zone.min, zone.low, zone.high];
            (zone.node, marks, zone.protection.to_vec())
        };
        let of_kernel = |zone: &ZoneInfo| {
            let marks = [zone.managed, zone.min, zone.low, zone.high];
            // The fifth zone, of devices, has no pages and no class of its own here.
            (zone.node, marks, zone.protection[..4].to_vec())
        };
        assert_eq!(
            of_model(model),
            of_kernel(real),
            "{name}, node {} {}: node, [managed, min, low, high], protection; left the model",
            real.node,
            real.name
        );
    }

    // A boost is among what kernels keep back, and the model has none.
    if reported.iter().all(|zone| zone.boost == 0) {
        compare_dirty_thresholds(name, &computed, system, &kernel);
    }
}

/// The thresholds that follow from free pages, pages in files, and what the model's zones keep back.
fn compare_dirty_thresholds(name: &str, zones: &[ZoneMarks], system: &System, kernel: &Kernel) {
    let vmstat = parse_vmstat(&system.before["proc/vmstat"]);
    let kept_back = |zone: &ZoneMarks| {
        let reserve = zone.protection.iter().max().copied().unwrap_or(0);
        (reserve + zone.high).min(zone.managed)
    };
    let memory = Memory {
        free: vmstat["nr_free_pages"],
        file: vmstat["nr_inactive_file"] + vmstat["nr_active_file"],
        anon: 0,
        reserve: zones.iter().map(kept_back).sum(),
    };
    let available = global_dirtyable_memory(&memory, &kernel.mechanisms);
    let limits = domain_dirty_limits(available, None, &kernel.sysctl, &kernel.mechanisms);
    assert_eq!(
        [limits.background, limits.dirty],
        ["nr_dirty_background_threshold", "nr_dirty_threshold"].map(|field| vmstat[field]),
        "{name}: background and dirty threshold; left the model"
    );
}

#[test]
fn marks_and_reserves_are_those_of_real_kernels() {
    let bless = std::env::var_os("LOWMARK_BLESS").is_some();
    let mut judged = 0;
    for kernel in KERNELS {
        for machine in MACHINES {
            let path = file(kernel, machine.0);
            let scenario = scenario(kernel, machine);
            let name = format!("{kernel} {}", machine.0);
            if bless && let Some(system) = boot(kernel, &scenario) {
                std::fs::write(&path, shortened(&system)).expect("written");
            }
            let text = std::fs::read_to_string(&path);
            let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            compare(&name, &scenario, &read(&text));
            judged += 1;
        }
    }
    assert_eq!(judged, KERNELS.len() * MACHINES.len());
}

#[test]
fn a_machine_that_boots_now_is_no_other() {
    let machine = MACHINES.into_iter().find(|machine| machine.0 == LIVE);
    let machine = machine.expect("one of the machines");
    for kernel in KERNELS {
        let scenario = scenario(kernel, machine);
        if let Some(system) = boot(kernel, &scenario) {
            compare(&format!("{kernel} booted"), &scenario, &system);
        }
    }
}
