//! Events that go by while a run goes on are those that its recording keeps.

use crate::common;
use lowmark_model::{Options, run, stream};
use lowmark_record::{Event, EventLog, Field, Kind, Sink, Tables};

/// A hundred writers that are held back by one disk, and one that begins when many events have gone by.
const WRITERS: &str = r#"
lowmark = 1
[workload]
name = "writers"
end = { after = "30s" }
[machine]
use = "desktop-3g-hdd"
[kernel]
use = "v3.2"
[file.out]
copies = 101
exists = false
[task.dd]
processes = 100
run = [{ append = "out$idx", block = "64K", count = 100000 }]
[task.late]
run = [{ sleep = "20s" }, { append = "out100", block = "64K", count = 100000 }]
"#;

/// Events with the names of their tasks.
#[derive(Default)]
struct Seen {
    events: Vec<Event>,
    actors: Vec<String>,
    /// Whether an event that named its device knew the name.
    devices: bool,
}

impl Sink for Seen {
    fn event(&mut self, event: &Event, tables: &Tables) {
        self.events.push(*event);
        let actor = tables.actor(event.task).expect("a task of the run");
        self.actors.push(format!("{}-{}", actor.name, actor.pid));
        let device = event.get(Field::Bdi);
        self.devices |= device.is_some_and(|name| tables.names.text(name) == "8:0");
    }
}

#[test]
fn what_goes_by_is_what_is_kept() {
    let scenario = &common::scenarios(WRITERS.to_owned())[0];
    let options = Options {
        events: true,
        ..Options::default()
    };
    let mut kept = run(scenario, &options, &mut |_| {}).expect("the model can run it");
    let mut seen = Seen::default();
    let (recording, source) =
        stream(scenario, &mut seen, &mut |_| {}).expect("the model can run it");
    // Several times as many as the model holds back.
    assert!(seen.events.len() > 100_000, "{}", seen.events.len());
    let events: Vec<Event> = kept.events.iter().collect();
    assert!(seen.events == events);
    let named = |event: &Event| {
        let task = &kept.tasks[event.task as usize];
        format!("{}-{}", task.name, task.pid)
    };
    let names: Vec<String> = events.iter().map(named).collect();
    assert!(seen.actors == names);
    assert!(names.iter().any(|name| name.starts_with("late")));
    assert!(events.iter().any(|e| e.kind == Kind::BalanceDirtyPages));
    assert!(seen.devices);
    assert_eq!(source.account.understood, events.len() as u64);
    assert_eq!(source.account.unsorted, 0);
    kept.events = EventLog::default();
    assert!(recording == kept, "all else is the same");
}
