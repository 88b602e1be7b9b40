//! Small traces of each era.

use super::slices::SLICES_MAX;
use super::*;
use crate::recipe::Evidence;
use crate::reclaim::{ReclaimReport, RunContext, tests::read};
use crate::table::PlainStyle;
use lowmark_record::event::EventLog;
use std::io::Read;

const MS: u64 = NS_PER_MS;

fn event(kind: Kind, ms: u64, task: u32, values: &[(Field, u64)]) -> Event {
    Event::new(kind, ms * MS, 0, task).with(values)
}

fn state(ms: u64, dirty: u64) -> Event {
    let values = [
        (Field::Dirty, dirty - 10),
        (Field::Writeback, 10),
        (Field::BgThresh, 100),
        (Field::Thresh, 200),
    ];
    event(Kind::GlobalDirtyState, ms, 0, &values)
}

fn look(ms: u64, task: u32, dirtied: u64, pause: i64) -> Event {
    let values = [
        (Field::Dirtied, dirtied),
        (Field::Pause, pause.cast_unsigned()),
    ];
    event(Kind::BalanceDirtyPages, ms, task, &values)
}

fn report(events: &[Event]) -> DirtyReport {
    let mut report = DirtyReport::default();
    let mut tables = Tables::default();
    tables.task(b"dd", 100);
    tables.task(b"dd", 101);
    events.iter().for_each(|e| report.event(e, &tables));
    report
}

#[test]
fn pauses_shares_and_rates() {
    let report = report(&[
        state(0, 50),
        state(10, 150),
        look(10, 0, 30, -3),
        look(20, 0, 30, 10),
        look(30, 1, 40, 20),
        state(40, 180),
        look(50, 0, 20, 10),
        state(60, 160),
    ]);
    let figures = report.figures();
    assert_eq!((figures.writers, figures.looks), (2, 4));
    assert_eq!(figures.first_ms, Some(10.0));
    assert_eq!(figures.first_share, Some(75.0));
    assert_eq!(figures.mean_share, Some(85.0));
    assert_eq!(figures.pause_min_ms, Some(10.0));
    assert_eq!(figures.pause_median_ms, Some(10.0));
    assert_eq!(figures.pause_max_ms, Some(20.0));
    assert!((figures.waited_s - 0.04).abs() < 1e-9);
    // 20 and 40 pages in the second half.
    let spread = figures.rate_spread.expect("two writers");
    assert!((spread - 100.0 / 3.0).abs() < 1e-9, "{spread}");
    let text = report.text(&PlainStyle, 80);
    for name in [
        "dd-100",
        "dd-101",
        "threshold",
        "max 20 ms",
        "max 200 pages",
    ] {
        assert!(text.contains(name), "{name} in\n{text}");
    }
}

#[test]
fn before_3_2_a_wait_has_a_start_and_an_end() {
    let report = report(&[
        event(Kind::WbcBalanceDirtyStart, 5, 0, &[(Field::ToWrite, 1600)]),
        event(Kind::WbcBalanceDirtyWritten, 6, 0, &[(Field::ToWrite, 10)]),
        event(Kind::WbcBalanceDirtyWait, 7, 0, &[]),
        event(Kind::BalanceDirtyStart, 10, 1, &[]),
        event(Kind::BalanceDirtyWritten, 11, 1, &[(Field::Written, 1536)]),
        event(Kind::BalanceDirtyWait, 13, 1, &[]),
    ]);
    let figures = report.figures();
    assert!((figures.waited_s - 0.005).abs() < 1e-9);
    assert_eq!(figures.written_max, Some(1590.0));
    assert_eq!((figures.pause_max_ms, figures.first_share), (None, None));
}

#[test]
fn any_length_of_time_fits() {
    let events: Vec<Event> = (0..5_000).map(|at| look(at * 1_000, 0, 8, 200)).collect();
    let report = report(&events);
    let slices = report.slices.all();
    assert!(slices.len() <= SLICES_MAX);
    let pages: u64 = slices.iter().flat_map(|s| s.pages.values()).sum();
    let waited: u64 = slices.iter().map(|s| s.waited_ns).sum();
    assert_eq!((pages, waited), (40_000, 5_000 * 200 * MS));
    assert!(DirtyReport::default().text(&PlainStyle, 80).is_empty());
}

/// Events with the tables that they belong to.
#[derive(Default)]
struct Kept(Vec<Event>);

impl Sink for Kept {
    fn event(&mut self, event: &Event, _: &Tables) {
        self.0.push(*event);
    }
}

/// The uptime of the traced host is in every time stamp and must be in no figure.
#[test]
fn a_real_trace_shifted_in_time_has_the_same_figures() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../captures/host-writers-4x100m-db16m.trace.txt.xz"
    );
    let packed = std::fs::File::open(path).expect("a capture of the repository");
    let mut text = Vec::new();
    liblzma::read::XzDecoder::new(packed)
        .read_to_end(&mut text)
        .expect("xz");
    let mut kept = Kept::default();
    let (tables, account) = read(&text, &mut kept);
    let shifted = |by: i128| {
        let mut dirty = DirtyReport::default();
        let mut reclaim = ReclaimReport::default();
        for event in &kept.0 {
            let mut event = *event;
            event.time_ns = u64::try_from(i128::from(event.time_ns) + by).expect("a time");
            dirty.event(&event, &tables);
            reclaim.event(&event, &tables);
        }
        let reclaim = reclaim.finish(&tables, account.clone(), RunContext::default());
        let text = dirty.text(&PlainStyle, 100);
        (dirty.figures(), text, reclaim.timeline(100))
    };
    let first = i128::from(kept.0[0].time_ns);
    assert_eq!(first, 1_831_010_725_000);
    let here = shifted(0);
    assert_eq!(here.0.writers, 4);
    let share = here.0.mean_share.expect("known");
    assert!((15.0..25.0).contains(&share), "{share}");
    // The writers are done in the first half of the trace.
    assert_eq!((here.0.rate_spread, here.0.pause_median_ms), (None, None));
    let end = |text: &str| text.lines().last().map(str::to_owned).unwrap_or_default();
    // Both time lines go from the first event to the last.
    assert!(end(&here.1).ends_with("0.892 s"), "{}", here.1);
    assert!(end(&here.2).contains("0.892 s"), "{}", here.2);
    for by in [-first, -1_831_000_000_000, 7, 86_400_000_000_000, 1 << 62] {
        assert_eq!(shifted(by), here, "by {by} ns");
    }
}

/// What a damaged line may say is left out and counted; nothing takes long, overflows or is lost in silence.
#[test]
fn impossible_values_are_left_out_and_counted() {
    for value in [u64::MAX, i64::MAX as u64, 1 << 53, (1 << 52) + 1] {
        let pauses = [
            look(1, 0, 8, 20),
            look(2, 0, 8, value.cast_signed()),
            look(3, 0, 8, 20),
        ];
        let dirtied = [
            look(1, 0, value, 5),
            look(2, 0, value, 5),
            look(3, 0, value, 5),
        ];
        let figures = report(&pauses).figures();
        // -1 ms is a pause that was none.
        let left_out = u64::from(value.cast_signed() > 0);
        assert_eq!(
            (figures.looks, figures.impossible),
            (3 - left_out, left_out)
        );
        assert!((figures.waited_s - 0.04).abs() < 1e-9, "{value}");
        let damaged = report(&dirtied);
        let figures = damaged.figures();
        assert_eq!((figures.looks, figures.impossible), (0, 3), "{value}");
        let text = damaged.text(&PlainStyle, 80);
        assert!(text.contains("no kernel has such values"), "{text}");
        assert!(!text.contains("-0"), "{text}");
        for field in [
            Field::Dirty,
            Field::Writeback,
            Field::BgThresh,
            Field::Thresh,
        ] {
            let states = [state(1, 50), state(2, 50).with(&[(field, value)])];
            let figures = report(&states).figures();
            assert_eq!(figures.impossible, 1, "{field:?} {value}");
            assert_eq!(figures.mean_share, Some(25.0), "{field:?} {value}");
        }
    }
}

#[test]
fn times_of_any_size_end_at_once() {
    let at = |time_ns, pause| {
        let mut event = look(0, 0, 8, pause);
        event.time_ns = time_ns;
        event
    };
    let last = u64::MAX;
    for times in [
        vec![at(last, 5)],
        vec![at(last - 1_000, 5), at(last, 1_000)],
        vec![at(0, 5), at(last, 1_000), at(3, 5)],
        vec![at(last, 5), at(0, 5)],
    ] {
        let report = report(&times);
        let figures = report.figures();
        assert_eq!(figures.looks, times.len() as u64);
        let waited: u64 = report.slices.all().iter().map(|s| s.waited_ns).sum();
        assert!(waited <= 2_005 * MS && report.slices.all().len() <= SLICES_MAX);
        assert!(!report.text(&PlainStyle, 80).is_empty());
    }
    // A wait of five hundred years, in a kernel that tells both ends.
    let mut end = event(Kind::BalanceDirtyWait, 0, 0, &[]);
    end.time_ns = last;
    let report = report(&[event(Kind::BalanceDirtyStart, 0, 0, &[]), end]);
    let waited: u64 = report.slices.all().iter().map(|s| s.waited_ns).sum();
    assert_eq!(waited, last);
}

#[test]
fn a_writer_without_a_name_is_the_one_with_its_process_id() {
    let mut tables = Tables::default();
    let unnamed = tables.task(b"<...>", 186);
    let named = tables.task(b"rl", 186);
    let other = tables.task(b"<...>", 187);
    let mut report = DirtyReport::default();
    for event in [
        look(0, unnamed, 8, 10),
        look(10, other, 4, 10),
        look(20, named, 8, 10),
        look(30, unnamed, 8, 10),
    ] {
        report.event(&event, &tables);
    }
    assert_eq!(report.figures().writers, 2);
    let pages = |task| report.writers[&task].pages;
    assert_eq!((pages(named), pages(other)), (24, 4));
    let text = report.text(&PlainStyle, 80);
    assert!(
        text.contains("rl-186") && text.contains("<...>-187"),
        "{text}"
    );
    assert!(!text.contains("<...>-186"), "{text}");
}

#[test]
fn too_many_writers_are_counted_together() {
    let mut tables = Tables::default();
    let mut report = DirtyReport::default();
    for pid in 1..=WRITERS_MAX as i32 + 50 {
        let task = tables.task(b"dd", pid);
        report.event(&look(u64::from(pid.unsigned_abs()), task, 2, 1), &tables);
    }
    assert_eq!(report.writers.len(), WRITERS_MAX + 1);
    assert_eq!(report.writers[&OTHERS].pages, 100);
    assert!(report.text(&PlainStyle, 80).contains("others"));
    let told_apart = report
        .slices
        .all()
        .iter()
        .map(|s| s.pages.len())
        .sum::<usize>();
    assert!(told_apart <= WRITERS_MAX + SLICES_MAX, "{told_apart}");
}

/// Gauges of a recording, which may begin before its events and be damaged.
#[test]
fn gauges_before_the_first_event_have_slices_of_their_own() {
    let mut recording = crate::comparison::recording_of(Default::default());
    recording.gauges.names = [
        "nr_dirty",
        "nr_writeback",
        "nr_dirty_background_threshold",
        "nr_dirty_threshold",
    ]
    .map(str::to_owned)
    .to_vec();
    let sample = |ms: u64, dirty: u64| (ms * MS, vec![dirty, 0, 100, 200]);
    recording.gauges.samples = vec![
        sample(0, 20),
        sample(40, 60),
        sample(80, 100),
        (81 * MS, vec![1, 2]),
        (82 * MS, vec![u64::MAX, u64::MAX, 0, 0]),
    ];
    let begin = event(Kind::BalanceDirtyStart, 60, 0, &[]);
    recording.events = EventLog::of(Default::default(), &[begin]);
    let run = Evidence::of(recording);
    let figures = run.dirty().expect("its events were looked at");
    assert_eq!(figures.first_share, Some(30.0));
    // The second half begins with the sample at 40 ms.
    assert_eq!(figures.mean_share, Some(40.0));
    assert_eq!(figures.impossible, 2);
}
