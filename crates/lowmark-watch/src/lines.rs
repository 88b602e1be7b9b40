//! A line for each look, as vmstat(8) prints them, or an object of JSON.

use crate::look::Look;
use crate::rates::{Rate, Rates};
use crate::story::story;
use crate::timeline::Timeline;
use serde_json::{Map, Value};

/// Version of the JSON form.
const JSON_VERSION: u32 = 1;
/// Width of a column.
const WIDTH: usize = 8;
/// MiB of a page.
const PAGES_IN_MIB: u64 = 256;

/// The rates that have a column; JSON has all.
fn shown() -> impl Iterator<Item = Rate> {
    const LEFT_OUT: [Rate; 5] = [
        Rate::HugePage,
        Rate::HugeFallback,
        Rate::Dirtied,
        Rate::Written,
        Rate::FullWait,
    ];
    Rate::ALL
        .into_iter()
        .filter(|rate| !LEFT_OUT.contains(rate))
}

/// The sizes that a look shows, pages.
fn sizes(look: &Look) -> [(&'static str, u64); 5] {
    let levels = look.levels;
    [
        ("free", levels.free),
        ("anon", levels.anon),
        ("file", levels.file),
        ("slab", levels.slab),
        ("swap", levels.swapped),
    ]
}

/// What the columns are: seconds, sizes in MiB, counts in a second since the look before.
pub fn head() -> String {
    let sizes = ["free", "anon", "file", "slab", "swap"].into_iter();
    let names = sizes.chain(shown().map(Rate::name));
    let columns = names.map(|name| format!("{name:>WIDTH$}"));
    format!("{:>WIDTH$}{}", "s", columns.collect::<String>())
}

/// The line of a look.
pub fn line(look: &Look, rates: &Rates) -> String {
    let sizes = sizes(look).map(|(_, pages)| format!("{:>WIDTH$}", pages / PAGES_IN_MIB));
    let rates = shown().map(|rate| match rates.get(rate) {
        Some(value) => format!("{value:>WIDTH$.0}"),
        None => format!("{:>WIDTH$}", "-"),
    });
    let seconds = look.time_ns as f64 / 1e9;
    let rates: String = rates.collect();
    format!("{seconds:>WIDTH$.2}{}{rates}", sizes.concat())
}

/// The look as an object of JSON: times in ns, sizes in pages, counts in a second since the look before, and what goes on.
pub fn json(look: &Look, rates: &Rates) -> String {
    let mut fields = Map::new();
    fields.insert("version".into(), JSON_VERSION.into());
    fields.insert("time_ns".into(), look.time_ns.into());
    for (name, pages) in sizes(look) {
        fields.insert(name.into(), pages.into());
    }
    for rate in Rate::ALL {
        let value = rates.get(rate).map_or(Value::Null, Value::from);
        fields.insert(rate.name().into(), value);
    }
    fields.insert("says".into(), story(look, rates).text.into());
    Value::Object(fields).to_string()
}

/// The looks of a timeline whose times are at least `interval_ns` apart, each with the rates since the one before.
pub fn spaced(timeline: &Timeline, interval_ns: u64) -> Vec<(&Look, Rates)> {
    let mut taken: Vec<(&Look, Rates)> = Vec::new();
    for look in timeline.looks() {
        let before_ns = match taken.last() {
            Some((last, _)) if look.time_ns < last.time_ns.saturating_add(interval_ns) => continue,
            Some((last, _)) => last.time_ns,
            None => look.time_ns,
        };
        taken.push((look, timeline.rates(before_ns, look.time_ns)));
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::Fields;
    use lowmark_record::vmstat;

    fn timeline() -> Timeline {
        let mut timeline = Timeline::default();
        for time in 0..=4 {
            let fields = [("nr_free_pages", 2560 - 256 * time), ("pswpout", 50 * time)];
            let fields: Fields = fields.map(|(name, value)| (name.to_owned(), value)).into();
            timeline.push(Look::new(time * 500_000_000, [(vmstat::FILE, fields)]));
        }
        timeline
    }

    #[test]
    fn lines_are_as_far_apart_as_asked_for() {
        let timeline = timeline();
        let spaced = spaced(&timeline, 1_000_000_000);
        let lines: Vec<String> = spaced
            .iter()
            .map(|(look, rates)| line(look, rates))
            .collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() == head().len()));
        let words =
            |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
        let (head, last) = (words(&head()), words(&lines[2]));
        let value = |name: &str| {
            let at = head
                .iter()
                .position(|known| known == name)
                .expect("a column");
            last[at].as_str()
        };
        assert_eq!(
            ["s", "free", "swpout", "kscan"].map(value),
            ["2.00", "6", "100", "-"]
        );
    }

    #[test]
    fn json_has_all_rates() {
        let timeline = timeline();
        let (look, rates) = spaced(&timeline, 0)[1];
        let value: Value = serde_json::from_str(&json(look, &rates)).expect("JSON");
        assert_eq!(value["time_ns"], 500_000_000);
        assert_eq!(value["swpout"], 100.0);
        assert_eq!(value["some%"], Value::Null);
        assert_eq!(value["says"], "Nothing is reclaimed.");
    }
}
