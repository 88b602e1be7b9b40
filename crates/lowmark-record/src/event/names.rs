//! Texts in events, each kept once.

use std::collections::HashMap;

/// Most texts that are told apart; beyond it a text becomes [`Names::OVERFLOW`], so that a hostile file
/// can't fill the memory.
const NAMES_MAX: usize = 1 << 16;

/// Longest text that is kept whole, bytes.
const NAME_BYTES_MAX: usize = 4096;

/// Most bytes of all texts together, for the same reason; each is kept twice.
const BYTES_MAX: usize = 32 << 20;

/// A text, by its number in [`Names`].
pub type NameId = u64;

/// The texts that the events of one recording hold. Numbers are given in the order of first use.
#[derive(Debug, Clone)]
pub struct Names {
    names: Vec<Box<str>>,
    ids: HashMap<Box<str>, NameId>,
    bytes: usize,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Names {
            names: Vec::new(),
            ids: HashMap::new(),
            bytes: 0,
        };
        names.intern(Names::OVERFLOW.as_bytes());
        names
    }
}

impl Names {
    /// What stands for texts beyond the limit.
    pub const OVERFLOW: &'static str = "<...>";

    /// The number of a text, given to it now if it is new. Bytes that are not UTF-8 are replaced, and of a
    /// very long text the beginning is kept.
    pub fn intern(&mut self, text: &[u8]) -> NameId {
        let text = String::from_utf8_lossy(&text[..text.len().min(NAME_BYTES_MAX)]);
        if let Some(&id) = self.ids.get(text.as_ref()) {
            return id;
        }
        if self.names.len() >= NAMES_MAX || self.bytes + text.len() > BYTES_MAX {
            return 0;
        }
        self.bytes += text.len();
        let id = self.names.len() as NameId;
        self.names.push(text.as_ref().into());
        self.ids.insert(text.as_ref().into(), id);
        id
    }

    /// The text of a number; [`Names::OVERFLOW`] for numbers that were never given.
    pub fn text(&self, id: NameId) -> &str {
        usize::try_from(id)
            .ok()
            .and_then(|id| self.names.get(id))
            .map_or(Names::OVERFLOW, |name| name)
    }
}

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names
    }
}

impl Eq for Names {}
