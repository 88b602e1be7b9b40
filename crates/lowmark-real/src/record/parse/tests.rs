//! Texts of real kernels: the snapshots of the captures, and small ones.

use super::*;
use crate::runner::procfs::parse_vmstat;
use crate::zoneinfo;
use std::io::Read;
use std::path::{Path, PathBuf};

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures")
}

fn read(parse: fn(&[u8], &mut Row), text: &str) -> Row {
    let mut row = Row::default();
    row.begin();
    parse(text.as_bytes(), &mut row);
    row
}

/// The parts of the snapshots of all captures whose name ends like this.
fn parts(ending: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for entry in std::fs::read_dir(captures()).expect("captures") {
        let path = entry.expect("readable").path();
        if !path.to_string_lossy().ends_with(".snap.txt.xz") {
            continue;
        }
        let file = std::fs::File::open(&path).expect("opened");
        let mut text = String::new();
        let mut decoder = liblzma::read::XzDecoder::new(file);
        decoder.read_to_string(&mut text).expect("text");
        let sections = text.split("=== ").filter_map(|part| part.split_once('\n'));
        let wanted = sections.filter(|(name, _)| name.ends_with(ending));
        parts.extend(wanted.map(|(_, content)| content.to_owned()));
    }
    assert!(parts.len() >= 6, "snapshots have {ending}");
    parts
}

#[test]
fn vmstat_is_read_as_elsewhere() {
    for text in parts(".vmstat") {
        let row = read(flat, &text);
        let expected = parse_vmstat(&text);
        assert!(expected.len() > 150, "{}", expected.len());
        for (name, value) in expected {
            assert_eq!(row.get(&name), Some(value), "{name}");
        }
    }
}

#[test]
fn meminfo_of_a_guest_has_all_its_lines() {
    for text in parts(".meminfo") {
        let row = read(meminfo, &text);
        let kilobytes = |name: &str| row.get(name).unwrap_or_else(|| panic!("no {name}"));
        assert!(kilobytes("MemTotal") > 400_000 && kilobytes("MemTotal") < 524_288);
        assert!(kilobytes("MemFree") <= kilobytes("MemTotal"));
        assert_eq!(kilobytes("SwapTotal"), 1_048_572);
        assert_eq!(kilobytes("HugePages_Total"), 0);
        assert!(kilobytes("Active(anon)") <= kilobytes("Active"));
    }
}

/// The same zones, with the same numbers, as by the reader that makes machines of them.
#[test]
fn zones_are_those_that_machines_are_made_of() {
    let plain = std::fs::read_dir(captures().join("zoneinfo")).expect("zoneinfo");
    let plain = plain.map(|entry| {
        let text = std::fs::read_to_string(entry.expect("readable").path()).expect("text");
        let (_, zones) = text.split_once("==> proc/zoneinfo <==\n").expect("zones");
        zones.split("==> ").next().unwrap_or("").to_owned()
    });
    let mut nodes = 0;
    for text in plain.chain(parts(".zoneinfo")) {
        let row = read(zoneinfo, &text);
        let zones = zoneinfo::parse(&text);
        assert!(!zones.is_empty());
        for zone in zones {
            nodes = nodes.max(zone.node);
            let get = |field: &str| {
                let name = format!("{}/{}/{field}", zone.node, zone.name);
                row.get(&name).unwrap_or_else(|| panic!("no {name}"))
            };
            assert_eq!(get("free"), zone.free);
            let boost = get("boost");
            assert_eq!(boost, zone.boost);
            let marks = ["min", "low", "high"].map(|mark| get(mark) - boost);
            assert_eq!(marks, [zone.min, zone.low, zone.high]);
            assert_eq!(
                [
                    get("spanned"),
                    get("present"),
                    get("managed"),
                    get("start_pfn")
                ],
                [zone.spanned, zone.present, zone.managed, zone.start]
            );
            let kept = row.get(&format!("{}/{}/count", zone.node, zone.name));
            assert_eq!(kept.unwrap_or(0), zone.kept_by_cpus);
        }
    }
    assert_eq!(nodes, 1, "a machine of two nodes is among them");
}

#[test]
fn lines_of_a_node_are_not_those_of_its_first_zone() {
    for text in parts(".zoneinfo") {
        let row = read(zoneinfo, &text);
        let anon = row.get("0/nr_anon_pages").expect("of the node");
        assert!(anon > 0);
        assert_eq!(row.get("0/DMA/nr_anon_pages"), None);
        let free = row.get("0/DMA/nr_free_pages").expect("of the zone");
        assert_eq!(Some(free), row.get("0/DMA/free"));
    }
}

#[test]
fn pressure_is_the_time_waited() {
    let text = "some avg10=1.93 avg60=0.51 avg300=0.11 total=379276\n\
                full avg10=1.83 avg60=0.48 avg300=0.10 total=352635\n";
    let row = read(pressure, text);
    assert_eq!(row.get("some"), Some(379_276));
    assert_eq!(row.get("full"), Some(352_635));
    assert_eq!(read(pressure, "some\nfull total=x\n").get("full"), None);
}

#[test]
fn disks_of_all_eras_are_read_and_unused_ones_are_not() {
    let now = "   7       7 loop7 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n \
               254       0 vda 136081 8221 10663842 124139 24184 126853 59785464 217385 3 22052 345021 5494 45 508144 3483 314 13\n";
    let row = read(diskstats, now);
    assert_eq!(row.get("loop7/reads"), None);
    assert_eq!(row.get("vda/sectors_read"), Some(10_663_842));
    assert_eq!(row.get("vda/in_flight"), Some(3));
    assert_eq!(row.get("vda/flush_ms"), Some(13));
    let old = "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n";
    let row = read(diskstats, old);
    assert_eq!(row.get("sda/weighted_io_ms"), Some(11));
    assert_eq!(row.get("sda/discards"), None);
}

#[test]
fn limits_may_be_none() {
    assert_eq!(read(single, "max\n").get(""), Some(u64::MAX));
    assert_eq!(read(single, "4096\n").get(""), Some(4096));
    assert_eq!(read(single, "\n").get(""), None);
    assert_eq!(number(b"99999999999999999999999"), Some(u64::MAX));
    assert_eq!(number(b"-1"), None);
}

#[test]
fn a_process_is_read_whatever_its_name() {
    let line = b"26025 (a) (b) D 26013 26013 6429 0 -1 4194304 98 0 7 0 21 22 0 0 20 0 1 0 103129 3133440 376 \
        18446744073709551615 94894377877504 94894377897385 140724099729184 0 0 0 0 0 0 0 0 0 17 1 0 0 5 0 0 1 2\n";
    let read = stat(line).expect("a process");
    assert_eq!(read.name, "a) (b");
    assert!(!read.kthread);
    assert_eq!(read.start_ticks, 103_129);
    assert_eq!(read.values, [u64::from(b'D'), 7, 21, 22, 376, 5]);
    assert!(read.is_busy());
    assert_eq!((read.ticks(), read.major_faults()), (43, 7));
    let cut = &line[..line.len() - 20];
    assert_eq!(stat(cut), None);
    assert_eq!(stat(b"7 )a( S"), None);
    assert_eq!(stat(b""), None);
    let own = std::fs::read("/proc/self/stat").expect("readable");
    let own = stat(&own).expect("a process");
    assert!(own.values[4] > 100, "{own:?}");
}
