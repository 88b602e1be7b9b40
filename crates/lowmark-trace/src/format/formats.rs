//! The formats of one file, found by the id in a record.

use super::{Format, FormatError};

/// Rejected formats that are kept; more are only counted.
const REJECTED_KEPT: usize = 16;

/// A text that was no format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Group it stood in.
    pub system: String,
    /// What is wrong with it.
    pub error: FormatError,
}

/// All formats of a file.
#[derive(Debug, Default)]
pub struct Formats {
    formats: Vec<Format>,
    /// Index in `formats` plus one, by id; 0 where there is none.
    by_id: Vec<u32>,
    rejected: Vec<Rejected>,
    rejected_count: u64,
}

impl Formats {
    /// The format of the event with that id.
    #[inline]
    pub fn get(&self, id: u16) -> Option<&Format> {
        let index = self.by_id.get(usize::from(id))?.checked_sub(1)?;
        self.formats.get(index as usize)
    }

    /// The format of a group's event.
    pub fn find(&self, system: &str, name: &str) -> Option<&Format> {
        let mut formats = self.formats.iter();
        formats.find(|format| format.system == system && format.name == name)
    }

    /// All formats, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Format> {
        self.formats.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.formats.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.formats.is_empty()
    }

    /// Texts that could not be parsed, the first few, and how many there were. Records of these events
    /// are delivered all the same.
    pub fn rejected(&self) -> (&[Rejected], u64) {
        (&self.rejected, self.rejected_count)
    }

    /// Parses a text and takes it in, or notes that it was none. Of two with one id the first counts.
    pub fn add(&mut self, system: &str, text: &str) {
        match Format::parse(system, text) {
            Ok(format) => self.insert(format),
            Err(error) => {
                self.rejected_count += 1;
                if self.rejected.len() < REJECTED_KEPT {
                    let system = system.to_owned();
                    self.rejected.push(Rejected { system, error });
                }
            }
        }
    }

    fn insert(&mut self, format: Format) {
        let id = usize::from(format.id);
        if self.by_id.len() <= id {
            self.by_id.resize(id + 1, 0);
        }
        if self.by_id[id] == 0 {
            self.formats.push(format);
            // At most one for each of 65536 ids.
            self.by_id[id] = self.formats.len() as u32;
        }
    }
}
