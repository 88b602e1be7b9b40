//! Events kept in memory, without the slots that are empty.

use super::{Event, Kind, Names, SLOTS};

/// Words before the values: time; task and CPU; kind and which slots are present.
const HEAD: usize = 3;

/// Events in order of time, with the texts that they hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventLog {
    /// Texts that the events name.
    pub names: Names,
    words: Vec<u64>,
    len: usize,
}

impl EventLog {
    /// Adds an event behind the others.
    pub fn push(&mut self, event: &Event) {
        let place = u64::from(event.task) << 32 | u64::from(event.cpu);
        let form = (event.kind as u64) << 32 | u64::from(event.present);
        self.words.extend([event.time_ns, place, form]);
        let present = (0..SLOTS).filter(|slot| event.present >> slot & 1 != 0);
        self.words.extend(present.map(|slot| event.values[slot]));
        self.len += 1;
    }

    /// Forgets the events and keeps the texts: events that follow name them by the same numbers.
    pub fn forget(&mut self) {
        self.words.clear();
        self.len = 0;
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The events in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter { words: &self.words }
    }

    /// The task of each event gets the number that it has elsewhere.
    pub fn renumber(&mut self, mut number: impl FnMut(u32) -> u32) {
        let mut rest = self.words.as_mut_slice();
        while let [_, place, form, values @ ..] = rest {
            let task = (*place >> 32) as u32;
            *place = u64::from(number(task)) << 32 | (*place & u64::from(u32::MAX));
            let present = (*form as u32).count_ones() as usize;
            rest = values.get_mut(present..).unwrap_or_default();
        }
    }

    /// A log of these events, whose texts `names` holds.
    pub fn of(names: Names, events: &[Event]) -> EventLog {
        let mut log = EventLog {
            names,
            ..EventLog::default()
        };
        events.iter().for_each(|event| log.push(event));
        log
    }
}

impl<'a> IntoIterator for &'a EventLog {
    type Item = Event;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// The events of a log, in order.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    words: &'a [u64],
}

impl Iterator for Iter<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let (head, mut rest) = self.words.split_at_checked(HEAD)?;
        let kind = Kind::ALL[(head[2] >> 32) as usize];
        let mut event = Event::new(kind, head[0], head[1] as u32, (head[1] >> 32) as u32);
        event.present = head[2] as u32;
        for slot in 0..SLOTS {
            if event.present >> slot & 1 != 0 {
                let (value, tail) = rest.split_first()?;
                event.values[slot] = *value;
                rest = tail;
            }
        }
        self.words = rest;
        Some(event)
    }
}
