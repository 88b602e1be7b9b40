//! Which maps are there at each statement of a body.
//!
//! Statements run in order, so a use before the `map`, or a second `map` without an `unmap`, can be told
//! before the run. A loop's body is read once; that its second round works is checked from two facts
//! about each map: what the body needs of it at its start and how it leaves it at its end.

use std::collections::BTreeMap;

use crate::workload::MapId;

use super::super::budget::MAPS_MAX;
use super::super::error::{Problem, Result};
use super::super::scope::{Scope, identifier};
use super::super::source::Span;
use super::super::suggest;
use super::super::tree::{Node, shorten};

/// A map at one place of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Never mapped, or unmapped.
    Absent,
    /// Mapped, with its length in bytes.
    Present(u64),
    /// A statement about it was wrong; nothing more is said about it.
    Unknown,
}

/// What a body needs of a map at its start, and the statement that needs it.
type Needs = BTreeMap<MapId, (bool, Span)>;

/// The maps of a process while the body of another one is read.
pub(crate) struct Outside {
    states: Vec<State>,
    needs: Vec<Needs>,
}

/// The maps of one instance at one place.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    names: Vec<String>,
    states: Vec<State>,
    /// One for each body around this place, the innermost last.
    needs: Vec<Needs>,
}

impl Flow {
    /// At the start of an instance; `names` are the maps that earlier instances of its task have.
    pub(crate) fn new(names: Vec<String>) -> Flow {
        let states = vec![State::Absent; names.len()];
        Flow {
            names,
            states,
            needs: Vec::new(),
        }
    }

    /// The names of all maps met so far, by index.
    pub(crate) fn into_names(self) -> Vec<String> {
        self.names
    }

    fn find(&mut self, name: &str) -> MapId {
        if let Some(map) = self.names.iter().position(|known| known == name) {
            return map;
        }
        self.names.push(name.to_owned());
        self.states.push(State::Absent);
        self.names.len() - 1
    }

    fn state(&self, map: MapId) -> State {
        self.states.get(map).copied().unwrap_or(State::Unknown)
    }

    fn set(&mut self, map: MapId, state: State) {
        if let Some(slot) = self.states.get_mut(map) {
            *slot = state;
        }
    }

    fn need(&mut self, map: MapId, present: bool, span: Span) {
        for needs in &mut self.needs {
            needs.entry(map).or_insert((present, span));
        }
    }

    /// A statement maps `node`'s name.
    pub(crate) fn map(&mut self, scope: &Scope<'_>, node: &Node, length: u64) -> Result<MapId> {
        let name = scope.text(node)?;
        identifier(&name, node.span, "a map")?;
        let map = self.find(&name);
        if self.names.len() > MAPS_MAX {
            return Err(Problem::new(
                node.span,
                format!("found more than {MAPS_MAX} names of maps in one task"),
                "every instance has its own maps: they can have the same name",
            ));
        }
        if let State::Present(_) = self.state(map) {
            return Err(Problem::new(
                node.span,
                format!("expected a new map, found `{name}`, which is mapped already"),
                format!("write {{ unmap = \"{name}\" }} before, or use another name"),
            ));
        }
        self.need(map, false, node.span);
        self.set(map, State::Present(length));
        Ok(map)
    }

    /// A statement uses `node`'s map: its index, and its length unless a mistake hides it.
    pub(crate) fn present(
        &mut self,
        scope: &Scope<'_>,
        node: &Node,
    ) -> Result<(MapId, Option<u64>)> {
        let name = scope.text(node)?;
        let Some(map) = self.names.iter().position(|known| *known == name) else {
            return Err(Problem::new(
                node.span,
                format!("unknown map `{}`", shorten(&name)),
                format!(
                    "a task maps it first: {{ map = \"{}\", kind = \"anon-private\", size = … }}; {}",
                    shorten(&name),
                    suggest::help(&name, self.names.iter().map(String::as_str))
                ),
            ));
        };
        match self.state(map) {
            State::Absent => Err(Problem::new(
                node.span,
                format!("expected a map that is there, found `{name}`, which is not mapped here"),
                format!("write {{ map = \"{name}\", … }} before; an `unmap` ends it"),
            )),
            state => {
                self.need(map, true, node.span);
                let length = if let State::Present(length) = state {
                    Some(length)
                } else {
                    None
                };
                Ok((map, length))
            }
        }
    }

    /// A statement unmaps a whole map.
    pub(crate) fn unmap(&mut self, map: MapId) {
        self.set(map, State::Absent);
    }

    /// A statement about a map is wrong: says nothing more about that map.
    pub(crate) fn poison(&mut self, scope: &Scope<'_>, statement: &str, subject: &Node) {
        if matches!(statement, "map" | "unmap")
            && let Ok(name) = scope.text(subject)
        {
            let map = self.find(&name);
            self.set(map, State::Unknown);
        }
    }

    /// A body begins.
    pub(crate) fn enter(&mut self) {
        self.needs.push(Needs::new());
    }

    /// The innermost body ends; if `again`, its second round must find what it needs.
    pub(crate) fn leave(&mut self, again: bool) -> Result<()> {
        let needs = self.needs.pop().unwrap_or_default();
        if !again {
            return Ok(());
        }
        for (map, (present, span)) in needs {
            let name = self.names.get(map).map_or("", String::as_str);
            match (self.state(map), present) {
                (State::Present(_), false) => {
                    return Err(Problem::new(
                        span,
                        format!("the second round of the loop would map `{name}` again"),
                        format!(
                            "end the loop's `do` with {{ unmap = \"{name}\" }}, or map before the loop"
                        ),
                    ));
                }
                (State::Absent, true) => {
                    return Err(Problem::new(
                        span,
                        format!("the second round of the loop would find `{name}` unmapped"),
                        "map inside the loop, or unmap after it",
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What the maps are now, to come back to.
    pub(crate) fn save(&self) -> Vec<State> {
        self.states.clone()
    }

    /// The body of another process begins, which has no maps yet; what is to be brought back by
    /// [`leave_process`](Self::leave_process).
    pub(crate) fn enter_process(&mut self) -> Outside {
        let states = self.save();
        self.restore(Vec::new());
        Outside {
            states,
            needs: std::mem::take(&mut self.needs),
        }
    }

    /// The body of another process ends, and its maps with it.
    pub(crate) fn leave_process(&mut self, outside: Outside) {
        self.restore(outside.states);
        self.needs = outside.needs;
    }

    /// Back to what was saved; maps met since are absent.
    pub(crate) fn restore(&mut self, mut saved: Vec<State>) {
        saved.resize(self.states.len(), State::Absent);
        self.states = saved;
    }

    /// After bodies that ran side by side from `before`: what any of them changed.
    pub(crate) fn join(&mut self, before: Vec<State>, ends: Vec<Vec<State>>) {
        self.restore(before.clone());
        for end in ends {
            for (map, state) in end.into_iter().enumerate() {
                if before.get(map).copied().unwrap_or(State::Absent) != state {
                    self.set(map, state);
                }
            }
        }
    }
}
