//! Zones, reserves and watermarks against worked figures and what real kernels report.

use super::*;
use crate::ids::{NodeId, ZoneId};
use crate::kernel::Version;
use lowmark_spec::machine::Zone as ZoneSpec;

fn kernel(text: &str) -> Kernel {
    Kernel::released(Version::known(text).unwrap())
}

/// The x86-64 machine of the 2010 evaluation: 2.78 GiB, DMA and DMA32.
fn three_gigabytes(thp: bool) -> Layout {
    Layout::from_zones(&[(ZoneKind::Dma, 3_976), (ZoneKind::Dma32, 707_000)], thp)
}

#[test]
fn watermarks_of_a_3_gb_machine() {
    let Built { zones, .. } = three_gigabytes(false).build(&kernel("v3.2"));
    assert_eq!(zones[ZoneId::FIRST].watermark, [9, 11, 13]);
    assert_eq!(zones[ZoneId::from(1)].watermark, [1676, 2095, 2514]);
}

#[test]
fn khugepaged_raises_the_watermarks() {
    let Built { zones, .. } = three_gigabytes(true).build(&kernel("v3.2"));
    assert_eq!(zones[ZoneId::FIRST].watermark, [62, 77, 92]);
    assert_eq!(zones[ZoneId::from(1)].watermark, [11201, 14001, 16801]);
}

/// `/proc/zoneinfo` and `min_free_kbytes` of guests of 6.18 with 512 MB: 23,484 KB where `thp.enabled` was written, 2,714 KB
/// where it was not.
#[test]
fn khugepaged_that_starts_on_a_small_machine_raises_the_watermarks() {
    for (name, expected) in [
        ("v6.18", [[22, 27, 32], [655, 818, 981]]),
        (
            "v6.18,thp.enabled=madvise",
            [[190, 237, 284], [5680, 7100, 8520]],
        ),
    ] {
        let kernel = Kernel::named(name);
        let zone = |kind, present, managed, initmem| ZoneSpec {
            initmem,
            ..ZoneSpec::new(0, kind, present, managed)
        };
        let machine = Machine {
            zones: vec![
                zone(ZoneKind::Dma, 3_998, 3_840, 0),
                zone(ZoneKind::Dma32, 126_941, 114_599, 3_318),
            ],
            ..Machine::small(512 << 20, 0)
        };
        let Built { zones, .. } = Layout::of(&machine, &kernel).build(&kernel);
        let found: Vec<_> = zones.iter().map(|zone| zone.watermark).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn two_sockets_with_32_gb() {
    let gib = (1 << 30) / PAGE_SIZE;
    let machine = Machine {
        nodes: vec![
            lowmark_spec::machine::Node { ram: 32 << 30 },
            lowmark_spec::machine::Node { ram: 32 << 30 },
        ],
        ..Machine::small(1 << 30, 0)
    };
    let layout = Layout::of(&machine, &kernel("v4.10"));
    let kinds: Vec<_> = layout
        .zones
        .iter()
        .map(|zone| (zone.node, zone.kind, zone.present))
        .collect();
    assert_eq!(
        kinds,
        [
            (0, ZoneKind::Dma, DMA_END),
            (0, ZoneKind::Dma32, DMA32_END - DMA_END),
            (0, ZoneKind::Normal, 28 * gib),
            (1, ZoneKind::Normal, 32 * gib),
        ]
    );
    let Built {
        zones,
        nodes,
        lruvecs,
        ..
    } = layout.build(&kernel("v4.10"));
    assert_eq!(lruvecs.len(), 2, "LRU lists are per node from 4.8 on");
    assert_eq!(
        nodes[NodeId::from(1)].zonelist,
        [3, 2, 1, 0].map(ZoneId::from)
    );
    // DMA can never serve a request that could use Normal: its reserve exceeds its size.
    assert!(
        zones[ZoneId::FIRST].lowmem_reserve[ZoneType::Normal as usize]
            > zones[ZoneId::FIRST].present
    );
    assert_eq!(zones[ZoneId::from(2)].lowmem_reserve, [0; 4]);
}

#[test]
fn reserve_and_marks_of_a_900_mb_machine() {
    let machine = Machine::small(900 << 20, 1 << 30);
    let Built { zones, .. } = Layout::of(&machine, &kernel("v3.6")).build(&kernel("v3.6"));
    let total: [u64; 3] =
        std::array::from_fn(|mark| zones.iter().map(|zone| zone.watermark[mark]).sum());
    // min_free_kbytes = isqrt(921600 · 16) = 3840.
    assert!(
        total[0].abs_diff(960) <= 2 && total[2].abs_diff(1440) <= 6,
        "{total:?}"
    );
}

/// Zones that a kernel reported are taken as they are, whatever RAM and `reserved` would give.
#[test]
fn reported_zones_are_taken() {
    let zone = |kind, present, managed| ZoneSpec::new(0, kind, present, managed);
    let machine = Machine {
        reserved: 64 << 20,
        zones: vec![
            zone(ZoneKind::Dma, 3_998, 3_840),
            zone(ZoneKind::Dma32, 126_944, 113_193),
        ],
        ..Machine::small(512 << 20, 0)
    };
    let Built { zones, .. } = Layout::of(&machine, &kernel("v6.1")).build(&kernel("v6.1"));
    let sizes: Vec<_> = zones
        .iter()
        .map(|zone| (zone.kind, zone.present, zone.managed))
        .collect();
    assert_eq!(
        sizes,
        [
            (ZoneType::Dma, 3_998, 3_840),
            (ZoneType::Dma32, 126_944, 113_193),
        ]
    );
}

/// `thp.enabled` raises `min_free_kbytes`; a `min_free_kbytes` that the workload sets is written after that and stays.
#[test]
fn min_free_kbytes_that_is_set_stays() {
    let mut settings = kernel("v6.18");
    for (name, value) in [("min_free_kbytes", "8192"), ("thp.enabled", "always")] {
        settings.sysctl.set(name, value).expect("a setting");
    }
    let layout = Layout::of(&Machine::small(512 << 20, 0), &settings);
    let Built { zones, .. } = layout.build(&settings);
    let min: u64 = zones.iter().map(|zone| zone.watermark[0]).sum();
    assert!(min.abs_diff(2_048) <= 2, "{min} pages");
}
