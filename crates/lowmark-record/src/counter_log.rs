//! Counters over time, kept as what changed.
//!
//! A look at a file such as `/proc/vmstat` gives a few hundred numbers, of which a few dozen are other than at the
//! look before. A look is kept as: time since the one before, number of changes, and for each the distance to the
//! index before and the difference in value, all in the seven-bit groups of LEB128, differences in zigzag. That is
//! some two bytes for a change and two for a look in which nothing changed.
//!
//! The oldest looks can be forgotten, so that a log of the last minutes stays as small as these are: what they
//! said is kept as the state from which the rest goes on.

use crate::recording::Gauges;
use serde::ser::{SerializeSeq, SerializeStruct};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::VecDeque;

/// What some counters of a file said over time.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "Form")]
pub struct CounterLog {
    /// The file, without the leading slash: `proc/vmstat`; of a task `proc/PID/stat`, of a cgroup its directory.
    pub file: String,
    /// Index of the task that it is about among the recording's tasks.
    pub task: Option<u32>,
    names: Vec<String>,
    /// What the looks that were forgotten said last, and when.
    base: Vec<Option<u64>>,
    base_ns: u64,
    /// The looks, encoded.
    bytes: VecDeque<u8>,
    looks: usize,
    /// What the last look said, and when.
    last: Vec<Option<u64>>,
    last_ns: u64,
    /// Indices and differences of the look at hand; kept for its memory.
    changes: Vec<(usize, u64)>,
}

/// One look: when, and what was other than at the look before. Of the first look of a log it is all that there was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// When, ns.
    pub time_ns: u64,
    /// Index of the name and new value, by index.
    pub changes: Vec<(usize, u64)>,
}

impl CounterLog {
    /// A log without looks.
    pub fn new(file: impl Into<String>) -> CounterLog {
        CounterLog {
            file: file.into(),
            ..CounterLog::default()
        }
    }

    /// The log of a file whose looks are whole rows.
    pub fn of(file: impl Into<String>, rows: &Gauges) -> CounterLog {
        let mut log = CounterLog::new(file);
        log.add_names(rows.names.iter().map(String::as_str));
        for (time_ns, values) in &rows.samples {
            log.push(*time_ns, values);
        }
        log
    }

    /// Names of the counters. A name that came up later than others stands behind them.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of looks that are kept.
    pub fn len(&self) -> usize {
        self.looks
    }

    /// Whether there are no looks.
    pub fn is_empty(&self) -> bool {
        self.looks == 0
    }

    /// Bytes that the looks take.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// When the last look was, ns; 0 if there is none.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// What the last look said of a counter; none if it was never there.
    pub fn last(&self, name: &str) -> Option<u64> {
        let index = self.names.iter().position(|known| known == name)?;
        self.last.get(index).copied().flatten()
    }

    /// What the last look said of every counter that was there.
    pub fn latest(&self) -> impl Iterator<Item = (&str, u64)> {
        let values = self.names.iter().zip(&self.last);
        values.filter_map(|(name, value)| Some((name.as_str(), (*value)?)))
    }

    /// Adds names, behind those that are there.
    pub fn add_names<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        self.names.extend(names.into_iter().map(str::to_owned));
    }

    /// Adds a look. Values are in the order of the names; names beyond them keep what they had, and values beyond the
    /// names are left out. A look that is earlier than the one before is taken to be at its time.
    pub fn push(&mut self, time_ns: u64, values: &[u64]) {
        self.add(time_ns, values.iter().copied().enumerate());
    }

    /// Adds a look of some counters, by index in ascending order.
    fn add(&mut self, time_ns: u64, values: impl Iterator<Item = (usize, u64)>) {
        self.last.resize(self.names.len(), None);
        self.changes.clear();
        for (index, value) in values {
            let Some(known) = self.last.get_mut(index) else {
                break;
            };
            let before = known.replace(value);
            if before != Some(value) {
                let difference = value.wrapping_sub(before.unwrap_or(0));
                self.changes.push((index, difference));
            }
        }
        let time_ns = time_ns.max(self.last_ns);
        put(&mut self.bytes, time_ns - self.last_ns);
        put(&mut self.bytes, self.changes.len() as u64);
        let mut next = 0;
        for (index, difference) in &self.changes {
            put(&mut self.bytes, (index - next) as u64);
            put(&mut self.bytes, zigzag(*difference));
            next = index + 1;
        }
        self.looks += 1;
        self.last_ns = time_ns;
    }

    /// Forgets the looks before a time. The last one before it stays known as the state that the rest goes on from.
    pub fn forget_before(&mut self, time_ns: u64) {
        while let Some(ahead) = get(&mut self.bytes.iter().copied())
            && self.base_ns.saturating_add(ahead) < time_ns
        {
            let bytes = &mut self.bytes;
            let mut popped = std::iter::from_fn(|| bytes.pop_front());
            let Some(look) = decode(&mut popped, &mut self.base, self.base_ns) else {
                return;
            };
            self.base_ns = look.time_ns;
            self.looks -= 1;
        }
    }

    /// The looks in order.
    pub fn looks(&self) -> Looks<'_> {
        Looks {
            bytes: self.bytes.iter().copied(),
            state: self.base.clone(),
            time_ns: self.base_ns,
            begun: false,
        }
    }

    /// The looks from a time on, counted from that time.
    #[must_use]
    pub fn since(&self, time_ns: u64) -> CounterLog {
        let mut log = CounterLog::new(self.file.clone());
        log.task = self.task;
        log.names.clone_from(&self.names);
        let mut state = Vec::new();
        for look in self.looks() {
            set(&mut state, &look.changes);
            if look.time_ns >= time_ns {
                log.add(look.time_ns - time_ns, known(&state));
            }
        }
        log
    }

    /// Time and value of a counter at each look from when it first was there.
    pub fn values(&self, name: &str) -> Vec<(u64, u64)> {
        let Some(index) = self.names.iter().position(|known| known == name) else {
            return Vec::new();
        };
        let mut value = None;
        let looks = self.looks().filter_map(|look| {
            let change = look.changes.iter().find(|(at, _)| *at == index);
            value = change.map(|(_, new)| *new).or(value);
            Some((look.time_ns, value?))
        });
        looks.collect()
    }

    /// The counters that are wanted as whole rows, of every `step`-th look. One that is not there yet is 0.
    pub fn gauges(&self, step: usize, wanted: impl Fn(&str) -> bool) -> Gauges {
        let kept: Vec<usize> = (0..self.names.len())
            .filter(|at| wanted(&self.names[*at]))
            .collect();
        let mut state = Vec::new();
        let rows = self.looks().enumerate().filter_map(|(number, look)| {
            set(&mut state, &look.changes);
            let value = |at: &usize| state.get(*at).copied().flatten().unwrap_or(0);
            let taken = number.is_multiple_of(step.max(1));
            taken.then(|| (look.time_ns, kept.iter().map(value).collect()))
        });
        Gauges {
            samples: rows.collect(),
            names: kept.iter().map(|at| self.names[*at].clone()).collect(),
        }
    }
}

/// The looks of a log, in order.
#[derive(Debug, Clone)]
pub struct Looks<'a> {
    bytes: std::iter::Copied<std::collections::vec_deque::Iter<'a, u8>>,
    state: Vec<Option<u64>>,
    time_ns: u64,
    begun: bool,
}

impl Iterator for Looks<'_> {
    type Item = Look;

    fn next(&mut self) -> Option<Look> {
        let mut look = decode(&mut self.bytes, &mut self.state, self.time_ns)?;
        self.time_ns = look.time_ns;
        if !std::mem::replace(&mut self.begun, true) {
            look.changes = known(&self.state).collect();
        }
        Some(look)
    }
}

/// The counters that are there, by index.
fn known(state: &[Option<u64>]) -> impl Iterator<Item = (usize, u64)> + '_ {
    let values = state.iter().enumerate();
    values.filter_map(|(index, value)| Some((index, (*value)?)))
}

/// Takes changes into a state.
fn set(state: &mut Vec<Option<u64>>, changes: &[(usize, u64)]) {
    for (index, value) in changes {
        if state.len() <= *index {
            state.resize(index + 1, None);
        }
        state[*index] = Some(*value);
    }
}

/// The next look, taken into the state before it; none at the end.
fn decode(
    bytes: &mut impl Iterator<Item = u8>,
    state: &mut Vec<Option<u64>>,
    before_ns: u64,
) -> Option<Look> {
    let time_ns = before_ns.saturating_add(get(bytes)?);
    let mut changes = Vec::new();
    let mut next = 0;
    for _ in 0..get(bytes)? {
        let index = next + get(bytes)? as usize;
        let before = state.get(index).copied().flatten().unwrap_or(0);
        changes.push((index, before.wrapping_add(unzigzag(get(bytes)?))));
        next = index + 1;
    }
    set(state, &changes);
    Some(Look { time_ns, changes })
}

/// Writes a number in groups of seven bits, the lowest first.
fn put(bytes: &mut VecDeque<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push_back(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push_back(value as u8);
}

/// Reads what [`put`] wrote.
fn get(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes.next()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
        shift += 7;
    }
}

/// A difference as a number that is small if the difference is small, whatever its sign.
fn zigzag(difference: u64) -> u64 {
    let signed = difference.cast_signed();
    (signed << 1 ^ signed >> 63).cast_unsigned()
}

/// The difference again.
fn unzigzag(value: u64) -> u64 {
    value >> 1 ^ (value & 1).wrapping_neg()
}

impl PartialEq for CounterLog {
    /// Whether both say the same of the same counters.
    fn eq(&self, other: &CounterLog) -> bool {
        let head = |log: &CounterLog| (log.file.clone(), log.task, log.names.clone());
        head(self) == head(other) && self.looks().eq(other.looks())
    }
}

impl Eq for CounterLog {}

/// A look as it is written: the time, then index and value of each change.
struct Samples<'a>(&'a CounterLog);

impl Serialize for Samples<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut samples = serializer.serialize_seq(Some(self.0.looks))?;
        let mut sample = Vec::new();
        for look in self.0.looks() {
            sample.clear();
            sample.push(look.time_ns);
            let changes = look.changes.iter();
            sample.extend(changes.flat_map(|(index, value)| [*index as u64, *value]));
            samples.serialize_element(&sample)?;
        }
        samples.end()
    }
}

impl Serialize for CounterLog {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut log = serializer.serialize_struct("CounterLog", 4)?;
        log.serialize_field("file", &self.file)?;
        match self.task {
            Some(task) => log.serialize_field("task", &task)?,
            None => log.skip_field("task")?,
        }
        log.serialize_field("names", &self.names)?;
        log.serialize_field("samples", &Samples(self))?;
        log.end()
    }
}

/// A log as it is read.
#[derive(Deserialize)]
struct Form {
    file: String,
    task: Option<u32>,
    names: Vec<String>,
    samples: Vec<Vec<u64>>,
}

impl TryFrom<Form> for CounterLog {
    type Error = String;

    fn try_from(form: Form) -> Result<CounterLog, String> {
        let mut log = CounterLog::new(form.file);
        (log.task, log.names) = (form.task, form.names);
        for (number, sample) in form.samples.iter().enumerate() {
            let wrong = |what: &str| format!("sample {number} of {}: {what}", log.file);
            let Some((time_ns, changes)) = sample.split_first() else {
                return Err(wrong("expected a time, found nothing"));
            };
            let (pairs, rest) = changes.as_chunks::<2>();
            if !rest.is_empty() {
                return Err(wrong("the last name has no value"));
            }
            let indices = || pairs.iter().map(|[index, _]| *index);
            if indices().any(|index| index >= log.names.len() as u64) {
                return Err(wrong("a value of a name that is not there"));
            }
            if !indices().is_sorted_by(|a, b| a < b) {
                return Err(wrong("names are not in order"));
            }
            if *time_ns < log.last_ns {
                return Err(wrong("it is earlier than the one before"));
            }
            let changes = pairs.iter();
            log.add(
                *time_ns,
                changes.map(|[index, value]| (*index as usize, *value)),
            );
        }
        Ok(log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn log(rows: &[(u64, &[u64])]) -> CounterLog {
        let mut log = CounterLog::new("proc/x");
        log.add_names(["a", "b", "c"]);
        rows.iter().for_each(|(time, row)| log.push(*time, row));
        log
    }

    #[test]
    fn only_changes_are_kept() {
        let log = log(&[(5, &[1, 2]), (7, &[1, 2]), (9, &[1, 0, u64::MAX])]);
        let looks: Vec<Look> = log.looks().collect();
        let look = |time_ns, changes: &[(usize, u64)]| Look {
            time_ns,
            changes: changes.to_vec(),
        };
        assert_eq!(
            looks,
            [
                look(5, &[(0, 1), (1, 2)]),
                look(7, &[]),
                look(9, &[(1, 0), (2, u64::MAX)])
            ]
        );
        assert_eq!(log.last("b"), Some(0));
        assert_eq!(log.last("d"), None);
        assert_eq!(log.values("c"), [(9, u64::MAX)]);
        assert_eq!(log.values("a"), [(5, 1), (7, 1), (9, 1)]);
        let text = serde_json::to_string(&log).expect("JSON");
        assert_eq!(
            text,
            "{\"file\":\"proc/x\",\"names\":[\"a\",\"b\",\"c\"],\"samples\":\
             [[5,0,1,1,2],[7],[9,1,0,2,18446744073709551615]]}"
        );
        // 2 + 4, 2, and 2 + 2 + 2: the difference from nothing to the largest number is -1.
        assert_eq!(log.bytes(), 14);
    }

    #[test]
    fn samples_that_cannot_be_are_refused() {
        let refused = |samples: &str| {
            let text =
                format!("{{\"file\":\"proc/x\",\"names\":[\"a\",\"b\"],\"samples\":{samples}}}");
            let read = serde_json::from_str::<CounterLog>(&text);
            read.expect_err("refused").to_string()
        };
        assert!(refused("[[]]").contains("sample 0 of proc/x: expected a time"));
        assert!(refused("[[1],[2,0]]").contains("sample 1 of proc/x: the last name"));
        assert!(refused("[[1,2,7]]").contains("not there"));
        assert!(refused("[[1,18446744073709551615,7]]").contains("not there"));
        assert!(refused("[[1,1,7,0,7]]").contains("not in order"));
        assert!(refused("[[1,0,7,0,7]]").contains("not in order"));
        assert!(refused("[[2],[1]]").contains("earlier"));
    }

    #[test]
    fn names_may_come_up_later() {
        let mut log = log(&[(1, &[1, 2, 3])]);
        log.add_names(["d"]);
        log.push(2, &[1, 2, 3, 0]);
        assert_eq!(log.values("d"), [(2, 0)]);
        let gauges = log.gauges(1, |name| name != "b");
        assert_eq!(gauges.names, ["a", "c", "d"]);
        assert_eq!(gauges.samples, [(1, vec![1, 3, 0]), (2, vec![1, 3, 0])]);
        assert_eq!(log.gauges(2, |name| name == "a").samples, [(1, vec![1])]);
        log.push(0, &[9, 9, 9, 9, 9]);
        assert_eq!(log.last_ns(), 2);
        assert_eq!(log.last("d"), Some(9));
    }

    /// Rows of three values, with times that never go back.
    fn rows() -> impl Strategy<Value = Vec<(u64, Vec<u64>)>> {
        let value = prop_oneof![0..4u64, any::<u64>()];
        let row = (0..1000u64, prop::collection::vec(value, 3));
        prop::collection::vec(row, 0..60).prop_map(|mut rows| {
            let mut time = 0;
            for (step, _) in &mut rows {
                time += *step;
                *step = time;
            }
            rows
        })
    }

    proptest! {
        #[test]
        fn what_was_said_is_read_again(rows in rows(), cut in 0..40_000u64) {
            let mut log = CounterLog::new("proc/x");
            log.add_names(["a", "b", "c"]);
            for (time, row) in &rows {
                log.push(*time, row);
            }
            prop_assert_eq!(&log.gauges(1, |_| true).samples, &rows);
            let text = serde_json::to_string(&log).expect("JSON");
            let read: CounterLog = serde_json::from_str(&text).expect("read");
            prop_assert_eq!(&read, &log);

            let kept: Vec<_> = rows.iter().filter(|(time, _)| *time >= cut).cloned().collect();
            let since: Vec<_> = kept.iter().map(|(time, row)| (time - cut, row.clone())).collect();
            prop_assert_eq!(log.since(cut).gauges(1, |_| true).samples, since);
            log.forget_before(cut);
            prop_assert_eq!(log.len(), kept.len());
            prop_assert_eq!(&log.gauges(1, |_| true).samples, &kept);
            let text = serde_json::to_string(&log).expect("JSON");
            let read: CounterLog = serde_json::from_str(&text).expect("read");
            prop_assert_eq!(&read, &log);
        }
    }
}
