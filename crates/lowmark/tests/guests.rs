//! Guests from outside: what is missing is said by name, and what was started ends. QEMU is a script here,
//! but for the last test.

mod common;
#[path = "../../../tests/needed.rs"]
mod needed;

use common::{Done, Place};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// What stands for a kernel image as far as its header is looked at.
fn bz_image(place: &Place) {
    let mut bytes = vec![0; 1024];
    bytes[0x202..0x206].copy_from_slice(b"HdrS");
    bytes[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
    bytes[0x300..0x309].copy_from_slice(b"6.18-test");
    std::fs::write(place.path("bzImage"), bytes).expect("written");
}

fn script(place: &Place, name: &str, text: &str) {
    place.write(name, &format!("#!/bin/sh\n{text}\n"));
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(name), mode).expect("permitted");
}

/// A place with a QEMU that does what `text` says, a runner, an image and an empty directory for disks.
fn with_qemu(text: &str) -> Place {
    let place = Place::new();
    bz_image(&place);
    script(&place, "qemu", text);
    script(&place, "runner", "exit 0");
    std::fs::create_dir(place.path("scratch")).expect("made");
    place
}

const RUN: [&str; 9] = [
    "run",
    "small.toml",
    "--set",
    "order=seq",
    "--on",
    "guest",
    "--accel",
    "tcg",
    "--image",
];

fn guest(place: &Place, more: &[&str]) -> Done {
    let path = |name: &str| place.path(name).display().to_string();
    let variables = [
        ("LOWMARK_QEMU", path("qemu")),
        ("LOWMARK_RUNNER", path("runner")),
        ("TMPDIR", path("scratch")),
        ("XDG_CACHE_HOME", path("cache")),
    ];
    place.lowmark_with(&[&RUN[..], more].concat(), &variables)
}

fn left_over(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path("scratch")).expect("a directory");
    let names = entries.map(|entry| entry.expect("readable").file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

#[test]
fn what_is_missing_is_an_error() {
    let place = with_qemu("exit 0");
    guest(&place, &["nowhere/bzImage"]).error(&["nowhere/bzImage: no such kernel image"]);
    guest(&place, &["6.99"]).error(&["lowmark kernels fetch 6.99"]);
    guest(&place, &["small.toml"]).error(&["small.toml: not a kernel image"]);
    guest(&place, &["bzImage", "--set", "swap.size=1"]).error(&["swap.size"]);
    guest(&place, &["bzImage", "--kernel", "v6.18+x"]).error(&["+x:", "another image"]);
    place
        .lowmark(&["run", "small.toml", "--on", "guest"])
        .error(&["kernel v3.6: no image was named with --image"]);
    place
        .lowmark(&["run", "small.toml", "--image", "bzImage"])
        .error(&["--image has no meaning for the model", "--on guest"]);
    std::fs::remove_file(place.path("qemu")).expect("removed");
    guest(&place, &["bzImage"]).error(&["qemu: not found", "install-guest-tools.sh"]);
    // A kernel whose configuration lies beside it says itself what it lacks.
    place.write("config", "CONFIG_VIRTIO_PCI=y\nCONFIG_VIRTIO_BLK=y\n");
    script(&place, "qemu", "echo started > pid");
    guest(&place, &["bzImage"]).error(&["virtio_console", "modules"]);
    assert!(!place.path("pid").exists(), "nothing was started");
    assert_eq!(left_over(&place), Vec::<String>::new());
}

#[test]
fn a_disk_without_room_for_swap_is_an_error() {
    let place = with_qemu("echo started > pid");
    let text = common::SMALL.replace(
        "occupied = \"1M\"",
        "occupied = \"1M\"\nswap = { device = \"sda\", size = \"900T\" }\n\
         device.sda = { kind = \"ssd\", size = \"1000T\", rate = \"500MB/s\", position_read = \"0ns\", \
         position_write = \"0ns\", command_read = \"0ns\", command_write = \"0ns\" }",
    );
    place.write("small.toml", &text);
    guest(&place, &["bzImage"]).error(&["scratch", "MB free", "less swap"]);
    assert!(!place.path("pid").exists(), "nothing was started");
    assert_eq!(left_over(&place), Vec::<String>::new());
}

#[test]
fn a_guest_that_started_and_failed_has_a_status_of_its_own() {
    for (script, said) in [
        ("echo 'no memory' >&2; exit 1", "QEMU failed"),
        ("kill -9 $$", "QEMU was killed by signal 9"),
        ("echo '[1.0] Kernel panic - not syncing: VFS'", "crashed"),
        (
            "echo 'lowmark-runner: the disk swap0 did not appear: does the kernel have its virtio driver?'",
            "virtio",
        ),
        ("exit 0", "did not start with 32 MB"),
    ] {
        let place = with_qemu(script);
        guest(&place, &["bzImage"]).failed(3, &[said]);
        assert_eq!(left_over(&place), Vec::<String>::new(), "{script}");
    }
}

#[test]
fn a_guest_is_stopped_when_its_time_is_up() {
    let place = with_qemu("echo $$ > pid; exec sleep 1000");
    guest(&place, &["bzImage", "--timeout", "1"]).failed(3, &["within 1.000 s", "--timeout"]);
    assert_eq!(left_over(&place), Vec::<String>::new());
    assert!(!runs(&place));
}

/// Whether the process that wrote its number is still there.
fn runs(place: &Place) -> bool {
    let pid = std::fs::read_to_string(place.path("pid")).expect("it ran");
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat"));
    // A zombie waits for whoever adopted it.
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{what} takes too long"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn nothing_survives_a_lowmark_that_is_killed() {
    let place = with_qemu("echo $$ > pid; exec sleep 1000");
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("lowmark"));
    command
        .args(RUN)
        .arg("bzImage")
        .current_dir(place.path("."))
        .env("LOWMARK_QEMU", place.path("qemu"))
        .env("LOWMARK_RUNNER", place.path("runner"))
        .env("TMPDIR", place.path("scratch"))
        .env("XDG_CACHE_HOME", place.path("cache"));
    let mut lowmark = command.spawn().expect("it starts");
    wait_until("the start", || {
        std::fs::read_to_string(place.path("pid")).is_ok_and(|pid| !pid.is_empty())
    });
    assert_eq!(left_over(&place).len(), 1);
    lowmark.kill().expect("it runs");
    lowmark.wait().expect("it ends");
    wait_until("QEMU's end", || !runs(&place));
    wait_until("the removal", || left_over(&place).is_empty());
}

#[test]
fn twins_are_refused_where_they_would_mislead() {
    let place = with_qemu("exit 0");
    let twin = |more: &[&str]| {
        let args = [
            "twin",
            "small.toml",
            "--set",
            "order=seq",
            "--image",
            "bzImage",
        ];
        place.lowmark(&[&args[..], more].concat())
    };
    let image = std::fs::read(place.path("bzImage")).expect("an image");
    let other = String::from_utf8_lossy(&image).replace("6.18-test", "9.99-test");
    place.write("bzImage", &other);
    twin(&[]).error(&["the model has no kernel v9.99"]);
}

#[test]
fn the_doctor_says_what_is_missing() {
    let place = Place::new();
    let nowhere = [("LOWMARK_QEMU", "/nowhere/qemu".to_owned())];
    let done = place.lowmark_with(&["doctor"], &nowhere);
    assert_eq!(done.status, 1);
    assert!(
        done.stdout.contains("QEMU") && done.stdout.contains("missing"),
        "{done:?}"
    );
    assert!(done.stdout.contains("install-guest-tools.sh"), "{done:?}");
    let done = place.lowmark_with(&["doctor", "--format", "json"], &nowhere);
    let document: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(document["checks"][0]["state"], "missing");
}

#[test]
fn kernels_are_listed() {
    let place = Place::new();
    let empty = [("XDG_CACHE_HOME", place.path("cache").display().to_string())];
    let text = place.lowmark_with(&["kernels", "list"], &empty).good();
    assert!(text.contains("lowmark kernels fetch 6.18"), "{text}");
    bz_image(&place);
    let entry = place.path("cache/lowmark/kernels/6.18");
    std::fs::create_dir_all(&entry).expect("made");
    std::fs::rename(place.path("bzImage"), entry.join("vmlinuz")).expect("moved");
    let text = place.lowmark_with(&["kernels", "list"], &empty).good();
    assert!(text.contains("6.18     6.18-test  "), "{text}");
    place
        .lowmark_with(&["kernels", "fetch", "6.18", "x"], &empty)
        .error(&["cannot fetch kernel x", "expected a version"]);
}

/// A place for runs on a real kernel; none where something for that is lacking, which is said.
fn with_guests() -> Option<Place> {
    let place = Place::new();
    let doctor = place.lowmark(&["doctor", "--format", "json"]).stdout;
    let doctor: serde_json::Value = serde_json::from_str(&doctor).expect("JSON");
    let checks = doctor["checks"].as_array().expect("checks");
    let lacking = checks
        .iter()
        .filter(|check| {
            ["QEMU", "runner", "kernels"]
                .map(Some)
                .contains(&check["name"].as_str())
        })
        .find(|check| check["state"] != "good");
    if let Some(check) = lacking {
        needed::absent(&check["detail"]);
        return None;
    }
    Some(place)
}

/// A guest in which a task asks for more than there is ends as the model's runs do.
#[test]
fn out_of_memory_in_a_guest_is_an_outcome() {
    let Some(place) = with_guests() else {
        return;
    };
    std::fs::create_dir(place.path("scratch")).expect("made");
    let text = common::SMALL.replace("[kernel]", "swap = []\n[kernel]");
    place.write("small.toml", &text);
    let mut args = RUN.to_vec();
    args.extend(["6.18", "--set", "ram=128M", "--set", "size=200M"]);
    args.extend(["--set", "overcommit_memory=1", "--format", "json"]);
    let scratch = place.path("scratch").display().to_string();
    let done = place.lowmark_with(&args, &[("TMPDIR", scratch)]);
    if done.stderr.contains("no such kernel image") {
        needed::absent(done.stderr);
        return;
    }
    assert_eq!(done.status, 1, "{done:?}");
    let document: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
    let run = &document["runs"][0];
    assert_eq!(run["outcome"], "out-of-memory");
    let said = format!("{run}{}", done.stderr);
    assert!(said.contains("the OOM killer ended process"), "{said}");
    assert_eq!(left_over(&place), Vec::<String>::new());
}

/// The whole way on a real kernel, where there is one.
#[test]
fn a_workload_runs_on_a_real_kernel() {
    let Some(place) = with_guests() else {
        return;
    };
    let args = [
        "run",
        "small.toml",
        "--set",
        "order=seq",
        "--set",
        "ram=128M",
        "--set",
        "size=110M",
        "--on",
        "guest",
        "--image",
        "6.18",
        "--out",
        "out",
        "--events",
        "--format",
        "json",
    ];
    let done = place.lowmark(&args);
    if done.stderr.contains("no such kernel image") {
        needed::absent(done.stderr);
        return;
    }
    assert!(!done.stderr.contains("warning"), "{}", done.stderr);
    let document = done.json();
    let run = &document["runs"][0];
    assert_eq!(run["run"]["backend"], "guest");
    assert_eq!(run["run"]["kernel"], "6.18");
    assert!(run["counters"]["pswpout"].as_u64() > Some(0), "{run}");
    assert_eq!(run["system"]["lost_events"], 0);
    assert!(run["system"]["before"]["proc/zoneinfo"].is_string());
    let name = "out/small_order=seq_ram=128M_size=110M_small-512m-ssd_6.18_guest_seed0";
    let report = place.lowmark(&["report", name, "--format", "json"]).json();
    assert_eq!(report["not_understood"], 0);
    let compared = place.lowmark(&["compare", "out"]).good();
    assert!(compared.contains("Swap Outs"), "{compared}");
    let exported = place
        .lowmark(&["export", name, "--format", "ftrace"])
        .good();
    assert!(
        exported.contains("mm_vmscan_lru_shrink_inactive"),
        "no batch"
    );
}
