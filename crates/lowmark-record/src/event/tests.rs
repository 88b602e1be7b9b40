//! The declarations against the texts of real kernels, and there and back again.

use super::*;
use proptest::prelude::*;

fn rendered(event: &Event, names: &Names, release: &str) -> String {
    let mut out = Vec::new();
    event.render(names, release.parse().expect("a release"), &mut out);
    String::from_utf8(out).expect("UTF-8")
}

fn parsed(kind: &str, text: &str) -> (Event, Names, Understood) {
    let mut names = Names::default();
    let kind = Kind::named(kind).expect("declared");
    let mut event = Event::new(kind, 0, 0, 0);
    let understood = TextParser::default().parse(text.as_bytes(), &mut event, &mut names);
    (event, names, understood)
}

/// Lines of real kernels, and the release that a text of this shape is written for.
const REAL: &[(&str, &str, &str)] = &[
    (
        "6.18",
        "mm_vmscan_memcg_reclaim_begin",
        "order=0 gfp_flags=GFP_HIGHUSER_MOVABLE",
    ),
    (
        "6.18",
        "mm_vmscan_memcg_reclaim_begin",
        "order=0 gfp_flags=__GFP_HIGHMEM|__GFP_MOVABLE|__GFP_IO|__GFP_FS|__GFP_DIRECT_RECLAIM|\
         __GFP_NOWARN|__GFP_NOMEMALLOC|__GFP_HARDWALL",
    ),
    (
        "6.18",
        "mm_vmscan_lru_isolate",
        "classzone=4 order=0 nr_requested=1 nr_scanned=1 nr_skipped=0 nr_taken=1 \
         lru=inactive_anon",
    ),
    (
        "6.18",
        "mm_vmscan_lru_shrink_inactive",
        "nid=0 nr_scanned=1 nr_reclaimed=0 nr_dirty=0 nr_writeback=0 nr_congested=0 \
         nr_immediate=0 nr_activate_anon=0 nr_activate_file=0 nr_ref_keep=1 nr_unmap_fail=0 \
         priority=11 flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC",
    ),
    (
        "6.18",
        "mm_shrink_slab_start",
        "deferred_split_scan+0x0/0x540 00000000a65f3ce2: nid: 0 objects to shrink 0 \
         gfp_flags GFP_KERNEL cache items 31 delta 0 total_scan 0 priority 12",
    ),
    (
        "6.18",
        "mm_shrink_slab_end",
        "deferred_split_scan+0x0/0x540 00000000a65f3ce2: nid: 0 unused scan count 0 \
         new scan count 0 total_scan 0 last shrinker return val 0",
    ),
    (
        "6.18",
        "mm_vmscan_write_folio",
        "page=00000000e43f6204 pfn=0x10dca5 flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC",
    ),
    (
        "6.18",
        "mm_khugepaged_scan_pmd",
        "mm=000000007042fa38, scan_pfn=0xffffffffffffffff, referenced=0, none_or_zero=0, \
         status=page_pmd_mapped, unmapped=0",
    ),
    (
        "6.18",
        "writeback_single_inode",
        "bdi 254:32: ino=13 state=I_SYNC|I_SYNC_QUEUED dirtied_when=4294893263 age=0 index=560 \
         to_write=1024 wrote=560 cgroup_ino=1",
    ),
    (
        "6.18",
        "writeback_start",
        "bdi 254:32: sb_dev 0:0 nr_pages=9223372036854775807 sync_mode=0 kupdate=0 \
         range_cyclic=1 background=1 reason=background cgroup_ino=1",
    ),
    (
        "6.18",
        "balance_dirty_pages",
        "bdi 254:32: limit=4096 setpoint=3328 dirty=2592 wb_setpoint=152 wb_dirty=2592 \
         dirty_ratelimit=102400 task_ratelimit=143000 dirtied=32 dirtied_pause=32 paused=0 \
         pause=-4 period=0 think=0 cgroup_ino=1",
    ),
    ("6.18", "writeback_pages_written", "4608"),
    (
        "6.18",
        "mm_compaction_finished",
        "node=0 zone=DMA      order=-1 ret=success",
    ),
    (
        "6.18",
        "mm_compaction_end",
        "zone_start=0x1 migrate_pfn=0x1 free_pfn=0xe00 zone_end=0x1000, mode=sync \
         status=success",
    ),
    (
        "6.18",
        "mm_compaction_isolate_freepages",
        "range=(0x1fe00 ~ 0x1fe40) nr_scanned=64 nr_taken=1",
    ),
    (
        "6.18",
        "mm_compaction_kcompactd_wake",
        "nid=0 order=9 classzone_idx=DMA32   ",
    ),
    (
        "6.18",
        "mm_vmscan_wakeup_kswapd",
        "nid=0 order=0 gfp_flags=none",
    ),
    (
        "7.2",
        "mm_vmscan_direct_reclaim_begin",
        "order=9 gfp_flags=GFP_TRANSHUGE pid=156 memcg_id=0 ",
    ),
    (
        "7.2",
        "mm_shrink_slab_start",
        "vmap_node_shrink_scan+0x0/0x80 0000000077515028: nid: 0 pid: 48 memcg_id: 1 \
         objects to shrink 0 gfp_flags GFP_KERNEL cache items 8 delta 0 total_scan 0 \
         priority 12 ",
    ),
    (
        "7.2",
        "mm_vmscan_balance_pgdat_end",
        "nid=0 order=0 highest_zoneidx=DMA32    nr_reclaimed=0",
    ),
    // Shapes of the fact sheet.
    (
        "2.6.37",
        "mm_vmscan_lru_isolate",
        "isolate_mode=1 order=0 nr_requested=32 nr_scanned=32 nr_taken=32 contig_taken=0 \
         contig_dirty=0 contig_failed=0",
    ),
    (
        "3.16",
        "mm_vmscan_lru_isolate",
        "isolate_mode=0 order=0 nr_requested=32 nr_scanned=33 nr_taken=32 file=1",
    ),
    (
        "4.4",
        "mm_vmscan_lru_shrink_inactive",
        "nid=0 zid=1 nr_scanned=32 nr_reclaimed=31 priority=11 \
         flags=RECLAIM_WB_FILE|RECLAIM_WB_ASYNC",
    ),
    (
        "4.17",
        "mm_vmscan_direct_reclaim_begin",
        "order=0 may_writepage=1 gfp_flags=GFP_HIGHUSER_MOVABLE|__GFP_ZERO classzone_idx=2",
    ),
    (
        "2.6.36",
        "mm_vmscan_direct_reclaim_begin",
        "order=0 may_writepage=1 gfp_flags=GFP_HIGHUSER_MOVABLE|GFP_ZERO",
    ),
    (
        "6.18",
        "mm_vmscan_throttled",
        "nid=0 usec_timeout=100000 usect_delayed=4000 reason=VMSCAN_THROTTLE_WRITEBACK",
    ),
    (
        "3.4",
        "writeback_start",
        "bdi 8:0: sb_dev 0:0 nr_pages=1024 sync_mode=0 kupdate=0 range_cyclic=1 background=1 \
         reason=background",
    ),
    ("3.1", "balance_dirty_written", "bdi 8:0 written 32"),
    (
        "3.0",
        "wbc_balance_dirty_start",
        "bdi 8:0: towrt=1536 skip=0 mode=0 kupd=0 bgrd=0 reclm=0 cyclic=1 more=0 older=0x0 \
         start=0x0 end=0x0",
    ),
];

#[test]
fn real_texts_are_read_and_written_to_the_letter() {
    for (release, kind, text) in REAL {
        let (event, names, understood) = parsed(kind, text);
        assert_eq!(understood, Understood::Exactly, "{kind}: {text}");
        assert_eq!(
            rendered(&event, &names, release),
            *text,
            "{kind} of {release}"
        );
    }
}

#[test]
fn texts_of_mixed_eras_are_read_by_their_labels() {
    let text = "nid=0 zid=1 nr_scanned=32 nr_reclaimed=5 nr_vendor=7 nr_dirty=3 priority=2 \
                flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC";
    let (event, _, understood) = parsed("mm_vmscan_lru_shrink_inactive", text);
    assert_eq!(understood, Understood::ByLabels);
    let values = [
        (Field::Zid, 1),
        (Field::NrScanned, 32),
        (Field::NrReclaimed, 5),
        (Field::NrDirty, 3),
        (Field::Priority, 2),
        (Field::Flags, RECLAIM_WB_ANON | RECLAIM_WB_ASYNC),
    ];
    for (field, value) in values {
        assert_eq!(event.get(field), Some(value), "{field:?}");
    }
    assert_eq!(event.get(Field::NrWriteback), None);
    let text = "super_cache_scan+0x0 0xffff88810245ee80: nid: 1 objects to shrink 2 gfp_flags \
                GFP_KERNEL vendor 9 cache items 3 delta 4 total_scan 5 priority 12";
    let (event, _, understood) = parsed("mm_shrink_slab_start", text);
    assert_eq!(understood, Understood::ByLabels);
    assert_eq!(event.get(Field::Nid), Some(1));
    assert_eq!(event.get(Field::NrObjectsToShrink), Some(2));
    let (event, _, understood) = parsed("mm_shrink_slab_start", &text.replace("vendor 9 ", ""));
    assert_eq!(understood, Understood::Exactly);
    assert_eq!(event.get(Field::Shr), Some(0xffff_8881_0245_ee80));
    let (_, _, understood) = parsed("mm_vmscan_kswapd_wake", "nothing of the kind");
    assert_eq!(understood, Understood::Not);
}

#[test]
fn old_allocation_flags_wake_kswapd_unless_they_say_so() {
    let parse = |text: &str| gfp::parse(text.as_bytes()).expect(text);
    assert_eq!(parse("GFP_KERNEL"), gfp::KERNEL);
    assert_eq!(parse("GFP_NOWAIT"), gfp::KSWAPD_RECLAIM);
    assert_eq!(parse("GFP_HIGH|GFP_WAIT"), gfp::HIGH | gfp::RECLAIM);
    assert_eq!(parse("GFP_ZERO|GFP_NO_KSWAPD"), gfp::ZERO);
    assert_eq!(parse("__GFP_ZERO"), gfp::ZERO);
    assert_eq!(parse("none"), 0);
    assert_eq!(gfp::parse(b"GFP_NEVER_HEARD_OF"), None);
    assert_eq!(gfp::parse(b""), None);
}

#[test]
fn every_tracepoint_is_in_the_documentation() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/events.md");
    let page = std::fs::read_to_string(page).expect("docs/events.md");
    assert_eq!(page, crate::event::documentation(), "make docs writes it");
}

/// An event of any kind with any values that its fields can hold.
fn any_event() -> impl Strategy<Value = (Event, Names)> {
    let kind = (0..Kind::ALL.len()).prop_map(|index| Kind::ALL[index]);
    let values = prop::collection::vec(any::<u64>(), SLOTS);
    (kind, values, "[a-z][a-z0-9_+/]{0,12}").prop_map(|(kind, values, text)| {
        let mut names = Names::default();
        let id = names.intern(text.as_bytes());
        let mut event = Event::new(kind, values[0], 1, 2);
        for (field, value) in kind.fields().iter().zip(values) {
            let value = match field.spec().value {
                ValueType::Text => id,
                ValueType::Gfp => value & ((1 << 25) - 1) & !gfp::ATOMIC,
                ValueType::ReclaimFlags => value & 0x1f,
                ValueType::Lru => value % 5,
                ValueType::Throttle => value & 0xf,
                ValueType::Device => value & 0xffff_ffff,
                ValueType::Signed | ValueType::Unsigned | ValueType::Pointer => value,
            };
            event.set(*field, value);
        }
        (event, names)
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read((event, names) in any_event(), minor in 0u16..18) {
        let release = Release::new(6, minor);
        let mut text = Vec::new();
        event.render(&names, release, &mut text);
        let mut read_names = names.clone();
        let mut read = Event::new(event.kind, event.time_ns, event.cpu, event.task);
        let understood = TextParser::default().parse(&text, &mut read, &mut read_names);
        prop_assert_eq!(understood, Understood::Exactly, "{}", String::from_utf8_lossy(&text));
        for (field, value) in read.fields() {
            prop_assert_eq!(Some(value), event.get(field), "{:?}", field);
        }
    }

    #[test]
    fn json_there_and_back((event, names) in any_event()) {
        let mut text = Vec::new();
        event.to_json(&names, &mut text);
        let text = String::from_utf8(text).expect("UTF-8");
        let mut read_names = names.clone();
        prop_assert_eq!(Event::from_json(&text, &mut read_names).expect("valid"), event);
    }

    #[test]
    fn logs_keep_events(events in prop::collection::vec(any_event(), 0..20)) {
        let events: Vec<Event> = events.into_iter().map(|(event, _)| event).collect();
        let log = EventLog::of(Names::default(), &events);
        prop_assert_eq!(log.iter().collect::<Vec<_>>(), events);
    }

    #[test]
    fn no_text_makes_it_panic(kind in 0..Kind::ALL.len(), text in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut names = Names::default();
        let mut event = Event::new(Kind::ALL[kind], 0, 0, 0);
        TextParser::default().parse(&text, &mut event, &mut names);
    }
}
