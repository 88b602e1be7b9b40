//! From pages of the kernel's ring buffer to the events of a recording.
//!
//! The pages are written as a trace.dat, with the formats of this very kernel, and read by the reader of such files: what
//! is checked there holds here too. Addresses of shrinkers get the names that `/proc/kallsyms` has for them, as the
//! kernel's own text would have them.

use super::instance::Formats;
use super::pages::Pages;
use crate::guest::trace_notes;
use lowmark_record::event::{NO_CPU, ValueType};
use lowmark_record::{Event, Field, Recording, Sink, Tables, TaskTimes};
use lowmark_trace::input::Input;
use lowmark_trace::record::Endian;
use lowmark_trace::trace_dat::Head;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, BufWriter, Write};

/// What a capture knows of its events.
#[derive(Debug)]
pub(super) struct Captured {
    pub(super) pages: Pages,
    pub(super) formats: Formats,
    pub(super) page_size: usize,
    /// Names of tasks by process.
    pub(super) comms: BTreeMap<u32, String>,
    /// Events that were lost, as the kernel says.
    pub(super) lost: u64,
}

impl Captured {
    /// Gives a recording the events from `from_ns` on, counted from there. What its reader should know of them.
    pub(super) fn read_into(
        self,
        from_ns: u64,
        recording: &mut Recording,
    ) -> io::Result<Vec<String>> {
        let counts = self.pages.counts();
        if counts.iter().all(|count| *count == 0) {
            return Ok(vec![
                "none of the events that are recorded happened".to_owned(),
            ]);
        }
        let mut file = tempfile::NamedTempFile::new()?;
        self.write(&counts, &mut file)?;
        // The pages are in the file now.
        drop(self.pages);
        let mut into = Into::new(from_ns, recording);
        let source = Input::open(file.path())
            .map_err(lowmark_trace::ReadError::from)
            .and_then(|input| lowmark_trace::read(input, &mut into))
            .map_err(|error| io::Error::other(format!("the events cannot be read: {error}")))?;
        Ok(trace_notes(&source))
    }

    fn write(&self, counts: &[u64], file: &mut tempfile::NamedTempFile) -> io::Result<()> {
        let comm = |(pid, comm): (&u32, &String)| format!("{pid} {}\n", comm.replace('\n', " "));
        let head = Head {
            endian: if cfg!(target_endian = "big") {
                Endian::Big
            } else {
                Endian::Little
            },
            long_size: size_of::<usize>() as u8,
            page_size: self.page_size as u32,
            header_page: self.formats.header_page.clone(),
            header_event: self.formats.header_event.clone(),
            formats: self.formats.events.clone(),
            comms: self.comms.iter().map(comm).collect(),
            pages: counts.to_vec(),
        };
        let mut out = BufWriter::new(file);
        out.write_all(&head.bytes())?;
        for cpu in 0..counts.len() {
            self.pages.write(cpu as u32, self.page_size, &mut out)?;
        }
        out.flush()
    }
}

/// Takes events, which come in order of time, into a recording.
pub(super) struct Into<'a> {
    from_ns: u64,
    tasks: Tasks,
    symbols: Symbols,
    recording: &'a mut Recording,
}

impl<'a> Into<'a> {
    /// Takes those from `from_ns` on, counted from there.
    pub(super) fn new(from_ns: u64, recording: &'a mut Recording) -> Into<'a> {
        Into {
            from_ns,
            tasks: Tasks::of(recording),
            symbols: Symbols::default(),
            recording,
        }
    }
}

impl Sink for Into<'_> {
    fn event(&mut self, event: &Event, tables: &Tables) {
        let Some(time_ns) = event.time_ns.checked_sub(self.from_ns) else {
            return;
        };
        let log = &mut self.recording.events;
        let mut event = *event;
        event.time_ns = time_ns;
        if event.cpu == NO_CPU {
            event.cpu = 0;
        }
        event.task = self
            .tasks
            .index(event.task, tables, &mut self.recording.tasks);
        // The trace has a table of texts of its own.
        let texts = event.kind.fields().iter();
        for field in texts.filter(|field| field.spec().value == ValueType::Text) {
            let Some(id) = event.get(*field) else {
                continue;
            };
            let text = tables.names.text(id);
            let id = match field {
                Field::Shrinker => log.names.intern(self.symbols.name(text).as_bytes()),
                _ => log.names.intern(text.as_bytes()),
            };
            event.set(*field, id);
        }
        log.push(&event);
    }
}

/// Tasks of the trace as the recording numbers them.
struct Tasks {
    by_pid: HashMap<u32, u32>,
    by_index: Vec<Option<u32>>,
}

impl Tasks {
    fn of(recording: &Recording) -> Tasks {
        let known = recording.tasks.iter().enumerate();
        Tasks {
            by_pid: known.map(|(at, task)| (task.pid, at as u32)).collect(),
            by_index: Vec::new(),
        }
    }

    /// The task of an event; it is added if it is new.
    fn index(&mut self, task: u32, tables: &Tables, tasks: &mut Vec<TaskTimes>) -> u32 {
        let at = task as usize;
        if self.by_index.len() <= at {
            self.by_index.resize(at + 1, None);
        }
        if let Some(known) = self.by_index[at] {
            return known;
        }
        let actor = tables.actor(task);
        let pid = actor.and_then(|actor| u32::try_from(actor.pid).ok());
        let pid = pid.unwrap_or(u32::MAX);
        let index = *self.by_pid.entry(pid).or_insert_with(|| {
            tasks.push(TaskTimes {
                name: actor.map_or_else(String::new, |actor| actor.name.clone()),
                pid,
                kthread: pid == 0,
                user_ns: 0,
                system_ns: 0,
                start_ns: 0,
                end_ns: None,
            });
            tasks.len() as u32 - 1
        });
        self.by_index[at] = Some(index);
        index
    }
}

/// Names of the kernel's functions by address.
#[derive(Default)]
struct Symbols {
    /// In order; none before the first is looked for.
    table: Option<Vec<(u64, String)>>,
}

impl Symbols {
    /// What the kernel prints with `%pS` for an address in hexadecimal digits, but for the size; the text itself if
    /// it is none, or if the names may not be read.
    fn name(&mut self, text: &str) -> String {
        let address = text
            .strip_prefix("0x")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let Some(address) = address else {
            return text.to_owned();
        };
        let table = self.table.get_or_insert_with(|| {
            table(&fs::read_to_string("/proc/kallsyms").unwrap_or_default())
        });
        let after = table.partition_point(|(start, _)| *start <= address);
        let found = after.checked_sub(1).map(|at| &table[at]);
        // Where addresses are hidden, all of them are 0.
        match found.filter(|(start, _)| *start > 0) {
            Some((start, name)) => format!("{name}+{:#x}", address - start),
            None => text.to_owned(),
        }
    }
}

/// The functions of a `/proc/kallsyms`: lines of address, type and name.
fn table(text: &str) -> Vec<(u64, String)> {
    let functions = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let is_function = ["t", "T", "w", "W"].contains(&words.next()?);
        is_function.then_some((address, words.next()?.to_owned()))
    });
    let mut table: Vec<(u64, String)> = functions.collect();
    table.sort();
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_get_the_names_of_functions() {
        let text = "ffffffff81000000 T _text\nffffffff81200040 t super_cache_scan\n\
            ffffffff81200400 D a_table\nffffffff81200800 t shadow_lru_isolate\t[ext4]\n";
        let mut symbols = Symbols {
            table: Some(table(text)),
        };
        assert_eq!(symbols.name("0xffffffff81200040"), "super_cache_scan+0x0");
        assert_eq!(symbols.name("0xffffffff81200444"), "super_cache_scan+0x404");
        assert_eq!(symbols.name("0xffffffff81200801"), "shadow_lru_isolate+0x1");
        assert_eq!(symbols.name("0x10"), "0x10");
        assert_eq!(symbols.name("mb_cache_scan"), "mb_cache_scan");
        symbols.table = Some(table("0000000000000000 T _text\n"));
        assert_eq!(symbols.name("0xffffffff81200040"), "0xffffffff81200040");
    }
}
