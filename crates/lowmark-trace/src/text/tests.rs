//! The short way gives what the long one gives.

use super::{Line, common, parse_any};
use proptest::prelude::*;

const LINES: [&str; 7] = [
    "         kswapd0-49      [001] d..1.     5.776479: mm_vmscan_lru_isolate: classzone=3 order=0",
    "      a b-1 [0]x-29654   [000] .....  1834.816584: mm_vmscan_memcg_reclaim_end: nr_reclaimed=51",
    "           <...>-41    [000] d..1    88.120001: mm_vmscan_lru_isolate: isolate_mode=0 order=0",
    "              rl-4242  [003] 100091.000100: mm_vmscan_kswapd_sleep: nid=0 and some more text",
    "              rl-4242  [003]    91.000100123: mm_vmscan_kswapd_sleep:  nid=0 and some more",
    "              rl  9332 [001]  3882.692455:           vmscan:mm_vmscan_memcg_reclaim_begin: order=0",
    "           rl-9332    (  9300) [001] d....  3882.692455: tracing_mark_write: B|9300|x-1 [000] 1.0: a: b",
];

#[test]
fn the_short_way_is_taken() {
    for line in &LINES[..5] {
        assert!(common::parse(line.as_bytes()).is_some(), "{line}");
    }
}

proptest! {
    #[test]
    fn the_short_way_agrees(
        line in prop::sample::select(&LINES[..]),
        edits in prop::collection::vec((any::<prop::sample::Index>(), edit()), 0..6),
    ) {
        let mut line = line.as_bytes().to_vec();
        for (place, edit) in edits {
            let place = place.index(line.len().min(60));
            match edit {
                Edit::Replace(byte) => line[place] = byte,
                Edit::Insert(byte) => line.insert(place, byte),
                Edit::Remove => { line.remove(place); }
            }
        }
        if let Some(event) = common::parse(&line) {
            prop_assert_eq!(Line::Event(event), parse_any(&line));
        }
    }
}

#[derive(Debug, Clone)]
enum Edit {
    Replace(u8),
    Insert(u8),
    Remove,
}

fn edit() -> impl Strategy<Value = Edit> {
    let byte = || prop::sample::select(&b" [](:.-/0123456789dNX#\xff\0"[..]);
    prop_oneof![
        byte().prop_map(Edit::Replace),
        byte().prop_map(Edit::Insert),
        Just(Edit::Remove)
    ]
}
