//! The pieces of recordings in `fixtures/`.

use crate::captures::{sums, unpack};
use lowmark_trace::perf_data::PerfData;
use lowmark_trace::trace_dat::TraceDat;
use std::io::Cursor;

/// Counts by event of `trace-cmd report` on the same file.
const TRACE_CMD: [(&str, u64); 8] = [
    ("mm_shrink_slab_end", 95),
    ("mm_shrink_slab_start", 95),
    ("mm_vmscan_direct_reclaim_begin", 1),
    ("mm_vmscan_kswapd_wake", 2),
    ("mm_vmscan_lru_isolate", 917),
    ("mm_vmscan_lru_shrink_inactive", 915),
    ("mm_vmscan_wakeup_kswapd", 2),
    ("mm_vmscan_write_folio", 2),
];

#[test]
fn a_piece_of_a_trace_dat() {
    let file = unpack(include_bytes!("../fixtures/trace.dat.xz"));
    let mut trace = TraceDat::open(Cursor::new(file)).expect("a file");
    assert_eq!(trace.version(), 7);
    assert_eq!(
        trace.options().recorder.as_deref(),
        Some("3.1.6 not-a-git-repo")
    );
    let (formats, endian) = (trace.formats().clone(), trace.endian());
    let mut first = None;
    let mut last = 0;
    let (account, counts, _) = sums(&formats, endian, &mut |deliver| {
        trace.for_each(&mut |record| {
            first.get_or_insert((record.time_ns, record.cpu, record.comm.map(str::to_owned)));
            last = record.time_ns;
            deliver(record)
        })
    });
    assert!(account.is_complete(), "{account:?}");
    let counts: Vec<_> = counts
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    assert_eq!(counts, TRACE_CMD);
    let (time, cpu, comm) = first.expect("records");
    assert_eq!(
        (time / 1000, cpu, comm.as_deref()),
        (5_060_575, 0, Some("rl"))
    );
    assert_eq!(last / 1000, 5_122_016);
    assert_eq!(trace.comm(49), Some("kswapd0"));
}

#[test]
fn a_piece_of_a_perf_data() {
    let file = unpack(include_bytes!("../fixtures/perf.data.xz"));
    let mut perf = PerfData::open(Cursor::new(file)).expect("a file");
    let (formats, endian) = (perf.formats().clone(), perf.endian());
    let (account, counts, _) = sums(&formats, endian, &mut |deliver| perf.for_each(deliver));
    assert!(account.is_complete(), "{account:?}");
    assert_eq!(account.records, 3000);
    assert_eq!(counts.values().sum::<u64>(), 3000);
    assert_eq!(perf.comm(9332), Some("rl"));
    let gfp = formats
        .find("vmscan", "mm_vmscan_memcg_reclaim_begin")
        .expect("a format");
    let table = gfp.flags("gfp_flags").expect("flags");
    assert_eq!(table.value_of("GFP_KERNEL"), Some(0xcc0));
    assert_eq!(table.render(0xcc0), "GFP_KERNEL");
    assert_eq!(table.render(0), "none");
}
