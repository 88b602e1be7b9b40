//! Kernels: `VERSION[-CHANGE][+MECHANISM=VARIANT | +CHANGE]…[,SYSCTL=VALUE | ,-CHANGE]…`.
//!
//! A dash begins a change that is taken out only right after the version and right after a comma: names of
//! changes and variants have dashes of their own.

use std::collections::BTreeMap;

use crate::kernel::{KernelPart, KernelSpec, Toggle, setting_name, version_name};

use super::error::{Problem, Result};
use super::scope::Scope;
use super::source::Span;
use super::sysctl;
use super::tree::{Node, shorten};

const EXAMPLE: &str = "write for example v3.6, 6.12, v3.6+swapin_readahead=hugh-new, v6.18-eevdf or \
                       v3.6,page_cluster=4";

/// Where the parts of a kernel stand.
#[derive(Debug)]
pub(crate) struct Places {
    whole: Span,
    version: Span,
    toggles: Vec<Span>,
    /// Of values of settings, by name.
    pub(crate) settings: BTreeMap<String, Span>,
}

impl Places {
    /// The place of a part.
    pub(crate) fn of(&self, part: &KernelPart) -> Span {
        let known = match part {
            KernelPart::Whole => None,
            KernelPart::Version => Some(&self.version),
            KernelPart::Toggle(number) => self.toggles.get(*number),
            KernelPart::Setting(name) => self.settings.get(name),
        };
        known.copied().unwrap_or(self.whole)
    }
}

/// Parses `text`, the value of `node`.
pub(crate) fn read(node: &Node, text: &str, scope: &Scope<'_>) -> Result<(KernelSpec, Places)> {
    let mut reader = Reader {
        node,
        text,
        scope,
        places: Places {
            whole: node.span,
            version: node.span,
            toggles: Vec::new(),
            settings: BTreeMap::new(),
        },
    };
    let mut parts = text.split(',');
    let mut added = parts.next().unwrap_or("").split('+');
    let (version, removed) = reader.version(added.next().unwrap_or(""))?;
    let mut spec = KernelSpec {
        text: text.to_owned(),
        version,
        toggles: Vec::new(),
        sysctl: BTreeMap::new(),
    };
    if let Some(change) = removed {
        reader.remove(change, &mut spec)?;
    }
    for part in added {
        reader.add(part, &mut spec)?;
    }
    for part in parts {
        match part.strip_prefix('-') {
            Some(change) => reader.remove(change, &mut spec)?,
            None => reader.set(part, &mut spec)?,
        }
    }
    Ok((spec, reader.places))
}

/// Reads the parts of a kernel's name, and knows where they stand.
struct Reader<'t> {
    node: &'t Node,
    text: &'t str,
    scope: &'t Scope<'t>,
    places: Places,
}

impl Reader<'_> {
    /// The place of `part`, a slice of the text.
    fn place(&self, part: &str) -> Span {
        // Places can be told only if nothing was substituted.
        let literal =
            matches!(&self.node.value, super::tree::Value::Text(written) if written == self.text);
        let start = part.as_ptr() as usize - self.text.as_ptr() as usize;
        if literal {
            self.node.part(start..start + part.len())
        } else {
            self.node.span
        }
    }

    fn wrong(&self, part: &str, expected: &str) -> Problem {
        let message = format!("expected {expected}, found \"{}\"", shorten(part));
        Problem::new(self.place(part), message, EXAMPLE)
    }

    /// The version, and the change that is taken out right after it.
    fn version<'p>(&mut self, part: &'p str) -> Result<(String, Option<&'p str>)> {
        // The dash of a release candidate is part of the version.
        let dashes = part.match_indices('-').map(|(at, _)| at);
        let ends = dashes.filter(|&at| !is_candidate(&part[at + 1..]));
        let (version, change) = match ends.into_iter().next() {
            Some(at) => (&part[..at], Some(&part[at + 1..])),
            None => (part, None),
        };
        match version_name(version) {
            Some(name) => {
                self.places.version = self.place(version);
                Ok((name, change))
            }
            None => Err(self.wrong(part, "a kernel version")),
        }
    }

    /// `-CHANGE`.
    fn remove(&mut self, change: &str, spec: &mut KernelSpec) -> Result<()> {
        if !is_word(change) {
            return Err(self.wrong(change, "a change after `-`"));
        }
        self.keep(change, Toggle::Remove(change.to_owned()), spec)
    }

    /// `+MECHANISM=VARIANT` or `+CHANGE`.
    fn add(&mut self, part: &str, spec: &mut KernelSpec) -> Result<()> {
        let (name, variant) = match part.split_once('=') {
            Some((mechanism, variant)) => (mechanism, Some(variant)),
            None => (part, None),
        };
        if !is_word(name) {
            return Err(self.wrong(part, "a mechanism or change after `+`"));
        }
        if variant.is_some_and(|variant| !is_word(variant)) {
            return Err(self.wrong(part, "a variant after `=`"));
        }
        let toggle = match variant {
            Some(variant) => Toggle::Set {
                mechanism: name.to_owned(),
                variant: variant.to_owned(),
            },
            None => Toggle::Apply(name.to_owned()),
        };
        self.keep(part, toggle, spec)
    }

    fn keep(&mut self, part: &str, toggle: Toggle, spec: &mut KernelSpec) -> Result<()> {
        if spec.toggles.iter().any(|kept| kept.name() == toggle.name()) {
            return Err(self.wrong(part, "every mechanism and change at most once"));
        }
        spec.toggles.push(toggle);
        self.places.toggles.push(self.place(part));
        Ok(())
    }

    /// `SYSCTL=VALUE`.
    fn set(&mut self, part: &str, spec: &mut KernelSpec) -> Result<()> {
        if let Some(problem) = sysctl::other_size(part, self.place(part)) {
            return Err(problem);
        }
        let setting = part
            .split_once('=')
            .and_then(|(name, value)| Some((setting_name(name)?, value)))
            .filter(|(_, value)| !value.trim().is_empty());
        let Some((name, value)) = setting else {
            return Err(self.wrong(part, "a setting name=value or a change -name after `,`"));
        };
        let place = self.place(value);
        let value = sysctl::value(&name, value, place, self.scope)?;
        self.places.settings.insert(name.clone(), place);
        if spec.sysctl.insert(name, value).is_some() {
            return Err(self.wrong(part, "every setting at most once"));
        }
        Ok(())
    }
}

/// Whether what follows a dash makes a release candidate of the version: `rc4`. Without its number it is a
/// slip, not a change called `rc`.
fn is_candidate(text: &str) -> bool {
    let word = text.split('-').next().unwrap_or("");
    word.strip_prefix("rc")
        .is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
}

/// The name of a mechanism, a change or a variant.
fn is_word(text: &str) -> bool {
    const BYTES_MAX: usize = 64;
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    (1..=BYTES_MAX).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(plain)
}
