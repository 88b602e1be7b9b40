//! Reading a table: known keys only, each with its type.

use super::error::{Problem, Result};
use super::scope::Scope;
use super::source::Span;
use super::suggest;
use super::tree::{Entry, Node};

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
