//! Any events at all: no panic, and what was counted is there.

use super::*;
use lowmark_record::Field;
use proptest::prelude::*;

fn event() -> impl Strategy<Value = Event> {
    let value = prop_oneof![0u64..40, any::<u64>()];
    let kind = (0..Kind::ALL.len()).prop_map(|index| Kind::ALL[index]);
    let time = prop_oneof![0u64..10_000_000_000, any::<u64>()];
    let columns = proptest::collection::vec(any::<u8>(), 0..6);
    (
        kind,
        time,
        prop_oneof![0u32..5, any::<u32>()],
        proptest::collection::vec(value, 20),
        columns,
    )
        .prop_map(|(kind, time, task, values, columns)| {
            let mut event = Event::new(kind, time, 0, task);
            event.columns = Columns::of(&columns);
            let fields: Vec<Field> = kind.fields().to_vec();
            for (field, value) in fields.into_iter().zip(values) {
                // Every third is absent.
                if value % 3 > 0 {
                    event.set(field, value);
                }
            }
            event
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_events(events in proptest::collection::vec(event(), 0..200)) {
        let mut tables = Tables::default();
        for (name, pid) in [("kswapd0", 9), ("<...>", 7), ("cc1", 7), ("é-", -1), ("", 0)] {
            tables.task(name.as_bytes(), pid);
        }
        let mut report = ReclaimReport::new(ReclaimOptions { compare_script: true, release: None });
        for event in &events {
            report.event(event, &tables);
        }
        let figures = report.finish(&tables, Account::default(), RunContext::default());
        prop_assert_eq!(figures.events.values().sum::<u64>(), events.len() as u64);
        let in_slices: u64 = figures.slices.slices().iter().map(|s| s.events).sum();
        prop_assert_eq!(in_slices, events.len() as u64);
        prop_assert!(figures.json().is_object());
        let column = ReportColumn { name: "any".to_owned(), reports: vec![&figures, &figures] };
        let text = section(&[column.clone(), column]).text(&crate::table::PlainStyle, Some(80));
        prop_assert!(events.is_empty() || text.contains("Time line"));
        for summary in figures.compat.iter().flatten() {
            prop_assert!(summary.text().contains("Summary"));
        }
    }

    #[test]
    fn any_vmstat(before in ".{0,200}", after in "([a-z_]{1,9} [0-9]{1,22}\n){0,9}") {
        let _ = VmstatChange::between(&before, &after);
        let _ = VmstatChange::between(&after, &after);
        let _ = VmstatChange::from_table(&before);
        let _ = VmstatChange::from_table(&after);
    }
}

#[test]
fn nothing_at_all() {
    let figures = figures("");
    assert_eq!(figures.json()["stalls"]["direct"]["count"], 0);
    let column = ReportColumn {
        name: "nothing".to_owned(),
        reports: vec![&figures],
    };
    let text = section(&[column]).text(&crate::table::PlainStyle, None);
    assert!(text.contains("Direct reclaims"), "{text}");
}
