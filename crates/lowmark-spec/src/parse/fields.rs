//! Reading a table: known keys only, each with its type.
//!
//! A table of a machine file is declared as a list of [`Field`]s, from which its known keys, reading it
//! ([`Fields::fill`]) and writing it ([`lines`]) follow.

use super::error::{Problem, Result};
use super::scope::Scope;
use super::source::Span;
use super::suggest;
use super::tree::{Entry, Node};
use super::write::Place;

/// A field of a table that describes a `T`.
pub(crate) struct Field<T> {
    /// Its key.
    pub(crate) key: &'static str,
    /// What shows the field in the message that it is missing; none if it has a default.
    pub(crate) example: Option<&'static str>,
    /// Reads its value. None if the code that reads the table does: it needs more than the value.
    pub(crate) read: Option<ReadField<T>>,
    /// Its value in TOML; none if there is nothing to say.
    pub(crate) write: WriteField<T>,
}

/// Reads the value of a field into what the table describes.
pub(crate) type ReadField<T> = fn(&mut T, &Scope<'_>, &Node) -> Result<()>;
/// The value of a field in TOML, written at a place of a machine file.
pub(crate) type WriteField<T> = fn(&T, &Place<'_>) -> Option<String>;

impl<T> Field<T> {
    /// A field that the code which reads the table reads itself.
    pub(crate) const fn apart(
        key: &'static str,
        example: Option<&'static str>,
        write: WriteField<T>,
    ) -> Field<T> {
        Field {
            key,
            example,
            read: None,
            write,
        }
    }
}

/// `field!(key, member, form)`: the field that a member of the described struct holds, in a form of [`super::forms`].
/// With `needed EXAMPLE` it has no default.
macro_rules! field {
    ($key:literal, $member:ident, $form:expr) => {
        $crate::parse::fields::Field {
            key: $key,
            example: None,
            read: Some(|described, scope, node| {
                described.$member = ($form.read)(scope, node)?;
                Ok(())
            }),
            write: |described, _| ($form.write)(&described.$member),
        }
    };
    ($key:literal, $member:ident, $form:expr, needed $example:literal) => {
        $crate::parse::fields::Field {
            example: Some($example),
            ..field!($key, $member, $form)
        }
    };
}
pub(crate) use field;

/// The keys of a table.
pub(crate) fn keys<'f, T: 'f>(fields: impl IntoIterator<Item = &'f Field<T>>) -> Vec<&'static str> {
    fields.into_iter().map(|field| field.key).collect()
}

/// The lines of a table that describe `described`. What is as in `default`, which is what a file that says nothing means,
/// is left out, unless `[fitted]` names it.
pub(crate) fn lines<'f, T: 'f>(
    fields: impl IntoIterator<Item = &'f Field<T>>,
    described: &T,
    default: &T,
    place: &Place<'_>,
) -> Vec<String> {
    let line = |field: &Field<T>| {
        let value = (field.write)(described, place)?;
        let said = field.example.is_some()
            || place.is_fitted(field.key)
            || (field.write)(default, place).as_ref() != Some(&value);
        said.then(|| format!("{} = {value}", field.key))
    };
    fields.into_iter().filter_map(line).collect()
}

/// A table whose keys are known to be allowed.
pub(crate) struct Fields<'t, 's> {
    owner: String,
    entries: &'t [Entry],
    span: Span,
    pub(crate) scope: &'s Scope<'s>,
}

impl<'t, 's> Fields<'t, 's> {
    /// Opens a table. `owner` names it in messages; a key outside `keys` is an error.
    pub(crate) fn open(
        node: &'t Node,
        span: Span,
        owner: &str,
        keys: &[&str],
        scope: &'s Scope<'s>,
    ) -> Result<Fields<'t, 's>> {
        let entries = node.entries(&format!("the keys of {owner}"))?;
        for entry in entries {
            if !keys.contains(&entry.key.as_str()) {
                return Err(unknown_key(entry, owner, keys));
            }
        }
        Ok(Fields {
            owner: owner.to_owned(),
            entries,
            span,
            scope,
        })
    }

    /// Where the table stands.
    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// The value of a key, unread.
    pub(crate) fn node(&self, key: &str) -> Option<&'t Node> {
        self.entries
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &entry.node)
    }

    /// The value of a key, unread; an error if it is missing. `example` shows one.
    pub(crate) fn need_node(&self, key: &str, example: &str) -> Result<&'t Node> {
        self.node(key).ok_or_else(|| self.missing(key, example))
    }

    /// Reads a key that may be missing.
    pub(crate) fn maybe<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Scope<'s>, &'t Node) -> Result<T>,
    ) -> Result<Option<T>> {
        self.node(key)
            .map(|node| read(self.scope, node))
            .transpose()
    }

    /// Reads a key with a default.
    pub(crate) fn or<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Scope<'s>, &'t Node) -> Result<T>,
        default: T,
    ) -> Result<T> {
        Ok(self.maybe(key, read)?.unwrap_or(default))
    }

    /// Reads a key that must be there. `example` shows one.
    pub(crate) fn need<T>(
        &self,
        key: &str,
        example: &str,
        read: impl FnOnce(&Scope<'s>, &'t Node) -> Result<T>,
    ) -> Result<T> {
        read(self.scope, self.need_node(key, example)?)
    }

    /// Reads all fields of a table into `described`. A new one must have those without a default.
    pub(crate) fn fill<T>(&self, table: &[Field<T>], described: &mut T, new: bool) -> Result<()> {
        for Field {
            key, example, read, ..
        } in table
        {
            let Some(read) = read else {
                continue;
            };
            match (self.node(key), example) {
                (Some(node), _) => read(described, self.scope, node)?,
                (None, Some(example)) if new => return Err(self.missing(key, example)),
                (None, _) => {}
            }
        }
        Ok(())
    }

    /// An error if a key is there; `why` says why it does not belong.
    pub(crate) fn refuse(&self, key: &str, why: &str, help: &str) -> Result<()> {
        match self.entries.iter().find(|entry| entry.key == key) {
            Some(entry) => Err(Problem::new(
                entry.key_span,
                format!("found `{key}` in {}, {why}", self.owner),
                help,
            )),
            None => Ok(()),
        }
    }

    /// An error if both keys are there.
    pub(crate) fn either(&self, a: &str, b: &str) -> Result<()> {
        match (self.node(a), self.node(b)) {
            (Some(first), Some(_)) => self
                .refuse(
                    b,
                    &format!("expected either `{a}` or `{b}`, not both"),
                    &format!("remove `{a}` or `{b}`"),
                )
                .map_err(|problem| problem.note(first.span, "the other one")),
            _ => Ok(()),
        }
    }

    /// A required key is not there.
    pub(crate) fn missing(&self, key: &str, example: &str) -> Problem {
        Problem::new(
            self.span,
            format!("{} needs `{key}`", self.owner),
            format!("add {example}"),
        )
    }
}

/// A key that nothing reads.
pub(crate) fn unknown_key(entry: &Entry, owner: &str, keys: &[&str]) -> Problem {
    Problem::new(
        entry.key_span,
        format!(
            "unknown key `{}` in {owner}",
            super::tree::shorten(&entry.key)
        ),
        suggest::help(&entry.key, keys.iter().copied()),
    )
}
