//! Writing a machine file: what is declared for reading, the other way round.
//!
//! 1. `[machine]` and its parts come in the order in which [`super::machine`] declares them, fields in that of their tables.
//! 2. Fields that are as a file without them means are left out. `[fitted]` names constants of the file, so these are
//!    written in any case.
//! 3. What a file must cite a source for, and the machine has none for, gets the one that the caller gives.

use super::fields::{Field, lines};
use super::forms::{key, quoted};
use super::{LANGUAGE_VERSION, machine};
use crate::machine::Machine;

/// Writes a machine file: [`parse_machine`](crate::parse_machine) reads the same machine from it. Devices and costs of
/// which the machine's description does not say where they come from are said to come from `source`, which must not
/// be empty.
///
/// A machine can have been put together in ways that no file describes, such as two swap areas with the same negative
/// priority; the file then says what is nearest.
pub fn write_machine(machine: &Machine, source: &str) -> String {
    let mut writer = Writer {
        machine,
        source,
        text: format!("lowmark = {LANGUAGE_VERSION}\n"),
        uncited: Vec::new(),
    };
    machine::write(&mut writer);
    writer.text
}

/// A machine file that is being written.
pub(super) struct Writer<'m> {
    /// What it describes.
    pub(super) machine: &'m Machine,
    /// What is cited for that of which nothing else is.
    pub(super) source: &'m str,
    /// What is written so far.
    text: String,
    /// Names for which `[sources]` must have a text, such as `device.sda`.
    pub(super) uncited: Vec<String>,
}

impl<'m> Writer<'m> {
    /// The place of the table `path`, such as `device.sda`; that of `[machine]` is empty.
    pub(super) fn place(&self, path: &str) -> Place<'m> {
        Place {
            machine: self.machine,
            path: path.to_owned(),
        }
    }

    /// Writes a section; `header` has its brackets.
    pub(super) fn section(&mut self, header: &str, lines: &[String]) {
        self.text += &format!("\n{header}\n");
        for line in lines {
            self.text += &format!("{line}\n");
        }
    }

    /// Writes the tables of the list `name`, as which a file has `items`.
    pub(super) fn list<T>(&mut self, name: &str, fields: &[Field<T>], items: &[T], default: &T) {
        let place = self.place(name);
        // `[fitted]` finds fields of a table, not those of a list of one table.
        let header = if items.len() == 1 && place.has_fitted() {
            format!("[{name}]")
        } else {
            format!("[[{name}]]")
        };
        for item in items {
            self.section(&header, &lines(fields, item, default, &place));
        }
    }
}

/// A place in a machine file, as far as what is written there depends on it.
pub(super) struct Place<'m> {
    machine: &'m Machine,
    /// Dotted name of the table.
    path: String,
}

impl Place<'_> {
    /// The place of a table in this one.
    pub(super) fn inside(&self, key: &str) -> Self {
        Place {
            machine: self.machine,
            path: self.name(key),
        }
    }

    fn name(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    /// Whether `[fitted]` names a field of this table, or one in it.
    pub(super) fn is_fitted(&self, key: &str) -> bool {
        let wanted = self.name(key);
        self.any_fitted(|name| {
            let rest = name.strip_prefix(&wanted);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }

    /// Whether `[fitted]` names any field of this table.
    fn has_fitted(&self) -> bool {
        self.any_fitted(|name| {
            let rest = name.strip_prefix(&self.path);
            rest.is_some_and(|rest| rest.starts_with('.'))
        })
    }

    fn any_fitted(&self, is: impl Fn(&str) -> bool) -> bool {
        // Both names mean the same field.
        let short = |name: &'_ String| is(name.strip_prefix("machine.").unwrap_or(name));
        self.machine.fitted.keys().any(short)
    }

    /// The name of the device of this number.
    pub(super) fn device(&self, number: usize) -> Option<String> {
        let device = self.machine.devices.get(number);
        device.map(|device| quoted(&device.name))
    }
}

/// A table between braces.
pub(super) fn inline<T>(
    fields: &[Field<T>],
    described: &T,
    default: &T,
    place: &Place<'_>,
) -> String {
    match lines(fields, described, default, place).join(", ") {
        all if all.is_empty() => "{}".into(),
        all => format!("{{ {all} }}"),
    }
}

/// The header of the table `name` in the section `section`, such as `[device.sda]`.
pub(super) fn header(section: &str, name: &str) -> String {
    format!("[{section}.{}]", key(name))
}
