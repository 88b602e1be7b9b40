//! The events of a recording, line by line.

use super::{EVENTS_FILE, LINE_MAX, StoreError, open};
use crate::event::{Event, EventLog, Names};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// What a line is.
const EVENT: &str = "one event as a JSON object";

/// Reads the events of a recording one by one, in memory of one line.
#[derive(Debug)]
pub struct EventReader {
    path: PathBuf,
    input: BufReader<File>,
    line: usize,
    buffer: Vec<u8>,
    names: Names,
}

impl EventReader {
    /// Opens the events of the recording in `dir`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] if it has none, [`StoreError::Io`] if they cannot be opened.
    pub fn open(dir: &Path) -> Result<EventReader, StoreError> {
        let path = dir.join(EVENTS_FILE);
        let file = open(&path, "the events that recording.json announces")?;
        Ok(EventReader {
            path,
            input: BufReader::new(file),
            line: 0,
            buffer: Vec::new(),
            names: Names::default(),
        })
    }

    /// Texts that the events read so far name.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// All events that are left.
    ///
    /// # Errors
    ///
    /// As for [`EventReader::next_event`].
    pub fn read_all(mut self) -> Result<EventLog, StoreError> {
        let mut log = EventLog::default();
        while let Some(event) = self.next_event()? {
            log.push(&event);
        }
        log.names = self.names;
        Ok(log)
    }

    /// The event of the next line that is not blank, or none at the end.
    ///
    /// # Errors
    ///
    /// A [`StoreError`] that names the file, the line and what was expected there.
    pub fn next_event(&mut self) -> Result<Option<Event>, StoreError> {
        let mut names = std::mem::take(&mut self.names);
        let event = self.next_with(&mut names);
        self.names = names;
        event
    }

    /// The same, with the texts in a table of the caller's.
    fn next_with(&mut self, names: &mut Names) -> Result<Option<Event>, StoreError> {
        loop {
            self.buffer.clear();
            let mut input = (&mut self.input).take(LINE_MAX + 1);
            let read = input.read_until(b'\n', &mut self.buffer);
            let length = read.map_err(StoreError::io(&self.path, "read the events"))?;
            if length == 0 {
                return Ok(None);
            }
            self.line += 1;
            if length as u64 > LINE_MAX {
                return Err(StoreError::TooLong {
                    path: self.path.clone(),
                    line: self.line,
                    limit: LINE_MAX,
                    expected: EVENT,
                });
            }
            let text = std::str::from_utf8(&self.buffer).map_err(|_| StoreError::NotUtf8 {
                path: self.path.clone(),
                line: self.line,
            })?;
            if !text.trim().is_empty() {
                return Event::from_json(text, names)
                    .map(Some)
                    .map_err(|e| StoreError::syntax(&self.path, EVENT, self.line, &e));
            }
        }
    }
}

/// Events of a recording that fit what the rest of it says.
pub(super) struct Events<'a> {
    dir: &'a Path,
    /// None before the first event.
    reader: Option<EventReader>,
    /// Events and tasks that the recording says it has.
    count: u64,
    tasks: usize,
    found: u64,
    last: u64,
}

impl<'a> Events<'a> {
    pub(super) fn of(dir: &'a Path, (count, tasks): (u64, usize)) -> Events<'a> {
        Events {
            dir,
            reader: None,
            count,
            tasks,
            found: 0,
            last: 0,
        }
    }

    /// The next one, whose texts are added to `names`.
    pub(super) fn next(&mut self, names: &mut Names) -> Result<Option<Event>, StoreError> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => match EventReader::open(self.dir) {
                // A recording without events has no file of events; if there is one, it has to be empty.
                Err(StoreError::Missing { .. }) if self.count == 0 => return Ok(None),
                reader => none.insert(reader?),
            },
        };
        if let Some(event) = reader.next_with(names)? {
            check_event(&reader.path, reader.line, &event, self.tasks, self.last)?;
            self.last = event.time_ns;
            self.found += 1;
            return Ok(Some(event));
        }
        if self.found == self.count {
            return Ok(None);
        }
        Err(StoreError::EventCount {
            path: reader.path.clone(),
            expected: self.count,
            found: self.found,
        })
    }
}

/// Each event names a task that exists, and time does not go back.
pub(super) fn check_events(path: &Path, events: &EventLog, tasks: usize) -> Result<(), StoreError> {
    let mut last = 0;
    for (index, event) in events.iter().enumerate() {
        check_event(path, index + 1, &event, tasks, last)?;
        last = event.time_ns;
    }
    Ok(())
}

fn check_event(
    path: &Path,
    line: usize,
    event: &Event,
    tasks: usize,
    last: u64,
) -> Result<(), StoreError> {
    let wrong = |expected: String, found: String| StoreError::Inconsistent {
        path: path.to_owned(),
        line,
        expected,
        found,
    };
    if event.task as usize >= tasks {
        return Err(wrong(
            format!("the index of one of {tasks} tasks"),
            format!("task {}", event.task),
        ));
    }
    if event.time_ns < last {
        return Err(wrong(
            format!("a time of at least {last} ns"),
            format!("{}", event.time_ns),
        ));
    }
    Ok(())
}
