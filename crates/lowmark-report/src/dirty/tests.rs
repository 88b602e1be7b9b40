//! Small traces of each era.

use super::*;
use crate::table::PlainStyle;

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
    assert!(report.slices.len() <= SLICES_MAX);
    let pages: u64 = report.slices.iter().flat_map(|s| s.pages.values()).sum();
    let waited: u64 = report.slices.iter().map(|s| s.waited_ns).sum();
    assert_eq!((pages, waited), (40_000, 5_000 * 200 * MS));
    assert!(DirtyReport::default().text(&PlainStyle, 80).is_empty());
}
