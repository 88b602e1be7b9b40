//! Who and what, found fast: names of events and of tasks repeat, so what was found last is remembered by a
//! small key that is cheap to compute, and compared in full.

use lowmark_record::{Kind, Tables};
use std::collections::HashMap;

const CACHE: usize = 1 << 10;

/// Tasks by name and process id.
#[derive(Debug)]
pub(crate) struct TaskCache {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    pid: i32,
    length: u8,
    name: [u8; 16],
    task: Option<u32>,
}

impl Default for TaskCache {
    fn default() -> Self {
        TaskCache {
            entries: vec![Entry::default(); CACHE],
        }
    }
}

impl TaskCache {
    /// The task's index in `tables`.
    #[inline]
    pub(crate) fn task(&mut self, name: &[u8], pid: i32, tables: &mut Tables) -> u32 {
        if name.len() > 16 {
            return tables.task(name, pid);
        }
        let mut padded = [0; 16];
        padded[..name.len()].copy_from_slice(name);
        let entry = &mut self.entries[pid as usize % CACHE];
        if let Some(task) = entry.task
            && entry.pid == pid
            && usize::from(entry.length) == name.len()
            && entry.name == padded
        {
            return task;
        }
        let task = tables.task(name, pid);
        *entry = Entry {
            pid,
            length: name.len() as u8,
            name: padded,
            task: Some(task),
        };
        task
    }
}

/// Tracepoints by name.
#[derive(Debug)]
pub(crate) struct KindCache {
    by_name: HashMap<&'static [u8], Kind>,
    last: Vec<Option<Kind>>,
}

impl Default for KindCache {
    fn default() -> Self {
        KindCache {
            by_name: Kind::ALL
                .iter()
                .map(|kind| (kind.name().as_bytes(), *kind))
                .collect(),
            last: vec![None; 256],
        }
    }
}

impl KindCache {
    /// The tracepoint of this name, if it is one of ours.
    #[inline]
    pub(crate) fn kind(&mut self, name: &[u8]) -> Option<Kind> {
        let tail = name.len().checked_sub(3).and_then(|at| name.get(at));
        let slot = usize::from(tail.copied().unwrap_or(0)) * 31 + name.len() * 7;
        let last = &mut self.last[slot % 256];
        if let Some(kind) = *last
            && kind.name().as_bytes() == name
        {
            return Some(kind);
        }
        *last = self.by_name.get(name).copied();
        *last
    }
}
