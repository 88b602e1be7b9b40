//! One run, recorded once: text and binary records must be the same events, field by field.

#[path = "../../../tests/needed.rs"]
mod needed;

use lowmark_record::event::ValueType;
use lowmark_record::{Event, Field, Sink, Tables};
use lowmark_trace::input::Input;
use std::path::PathBuf;

/// An event with everything spelled out.
#[derive(Debug, PartialEq, Eq)]
struct Spelled {
    time_us: u64,
    cpu: u32,
    comm: String,
    pid: i32,
    name: &'static str,
    fields: Vec<(&'static str, String)>,
}

#[derive(Default)]
struct Collector(Vec<Spelled>);

impl Sink for Collector {
    fn event(&mut self, event: &Event, tables: &Tables) {
        let actor = tables.actor(event.task).expect("a task");
        // perf prints an address of its own for the page, and resolves the shrinker's.
        let comparable =
            |field: &Field| *field != Field::Shrinker && field.spec().value != ValueType::Pointer;
        let fields = event
            .fields()
            .filter(|(field, _)| comparable(field))
            // Records have what their text leaves out.
            .filter(|(field, _)| !event.kind.spec().unprinted.contains(field));
        let release = "6.18".parse().expect("a release");
        let spelled = fields.map(|(field, value)| {
            let mut text = Vec::new();
            field
                .spec()
                .value
                .render(value, &tables.names, release, &mut text);
            (field.name(), String::from_utf8(text).expect("UTF-8"))
        });
        self.0.push(Spelled {
            // perf cuts the text of its times off.
            time_us: event.time_ns / 1000,
            cpu: event.cpu,
            comm: actor.name.clone(),
            pid: actor.pid,
            name: event.kind.name(),
            fields: spelled.collect(),
        });
    }
}

fn read(name: &str) -> Option<Vec<Spelled>> {
    let Some(directory) = std::env::var_os("LOWMARK_CAPTURES").map(PathBuf::from) else {
        needed::absent("LOWMARK_CAPTURES is not set");
        return None;
    };
    let path = directory.join(name);
    if !path.is_file() {
        needed::absent(format!("{name} is not among these captures"));
        return None;
    }
    let mut collector = Collector::default();
    let input = Input::open(&path).expect("opened");
    let source = lowmark_trace::read(input, &mut collector).expect("read");
    assert_eq!(source.account.missed(), 0, "{:?}", source.account);
    assert_eq!(source.account.understood, source.account.lines);
    Some(collector.0)
}

#[test]
fn perf_data_and_its_text_are_the_same_events() {
    let text = read("host-perf-seq-64m-56m.perf-script.txt.xz");
    let records = read("host-perf-seq-64m-56m.perf.data.xz");
    let (Some(text), Some(records)) = (text, records) else {
        return;
    };
    assert_eq!(text.len(), 49_909);
    assert_eq!(records.len(), text.len());
    for (number, (text, record)) in text.iter().zip(&records).enumerate() {
        assert_eq!(text, record, "event {number}");
    }
}
