//! What a declaration of a cause is made of.

use super::evidence::Evidence;
use super::wait::Limit;
use serde::Serialize;

/// What a cause explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// What needed the room for which tasks waited.
    Demand,
    /// What made tasks wait.
    Limit,
    /// What the time of waits went into.
    Inside,
    /// How it came that tasks waited; its time is that of others.
    Note,
    /// Something else than waits for memory.
    Answer,
}

impl Role {
    /// All of them, in the order of tables.
    pub const ALL: [Role; 5] = [
        Role::Demand,
        Role::Limit,
        Role::Inside,
        Role::Note,
        Role::Answer,
    ];

    /// Heading of its causes.
    pub fn label(self) -> &'static str {
        match self {
            Role::Demand => "What needed room",
            Role::Limit => "What made tasks wait",
            Role::Inside => "What waits went into",
            Role::Note => "How it came",
            Role::Answer => "Something else",
        }
    }
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Exact from events.
    Exact,
    /// From counters, with the error that sharing out has.
    Counted,
    /// A hint.
    Hint,
}

impl Confidence {
    /// What it goes by, in tables.
    pub fn label(self) -> &'static str {
        match self {
            Confidence::Exact => "events",
            Confidence::Counted => "counters",
            Confidence::Hint => "a hint",
        }
    }
}

/// Whether something is so in a capture.
pub type Test = fn(&Evidence) -> bool;

/// A setting or a measure that may act on a cause.
#[derive(Debug, Clone, Copy)]
pub struct Knob {
    /// Its name.
    pub name: &'static str,
    /// What to do with it: up, down, a value.
    pub change: &'static str,
    /// What is to be expected.
    pub expect: &'static str,
    /// When it does not act, and why.
    pub useless: Option<(Test, &'static str)>,
}

impl Knob {
    /// One that acts.
    pub const fn new(name: &'static str, change: &'static str, expect: &'static str) -> Knob {
        Knob {
            name,
            change,
            expect,
            useless: None,
        }
    }

    /// The same, but for captures of which `test` says that it does not act, and why.
    #[must_use]
    pub const fn unless(self, test: Test, why: &'static str) -> Knob {
        Knob {
            useless: Some((test, why)),
            ..self
        }
    }

    /// One that does not act.
    pub const fn never(name: &'static str, why: &'static str) -> Knob {
        Knob::new(name, "", "").unless(|_| true, why)
    }
}

/// What a cause came to in a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Time of waits that were traced, ns.
    pub traced_ns: u64,
    /// Time of waits that is estimated, ns. Never added to the other without saying so.
    pub estimated_ns: u64,
    /// The figures it rests on.
    pub evidence: String,
}

impl Finding {
    /// A finding of so much traced time, ns.
    pub fn traced(traced_ns: u64, evidence: String) -> Finding {
        Finding {
            traced_ns,
            estimated_ns: 0,
            evidence,
        }
    }

    /// Traced and estimated time together, ns.
    pub fn total_ns(&self) -> u64 {
        self.traced_ns.saturating_add(self.estimated_ns)
    }

    /// The finding if there is any time in it.
    pub(super) fn if_any(self) -> Option<Finding> {
        (self.total_ns() > 0).then_some(self)
    }
}

/// A cause: one file each below `causes/`.
#[derive(Debug)]
pub struct Cause {
    /// Id, such as `G1`.
    pub id: &'static str,
    /// Name in tables.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// The clause that follows `because` in the first sentence.
    pub because: &'static str,
    /// What it explains.
    pub role: Role,
    /// Limits under which it occurs.
    pub limits: &'static [Limit],
    /// The evidence that it needs.
    pub needs: &'static str,
    /// Its arithmetic in words.
    pub formula: &'static str,
    /// Its arithmetic; none if the capture does not have the evidence or it is not there.
    pub arithmetic: fn(&Evidence) -> Option<Finding>,
    /// What acts on it, and what does not.
    pub knobs: &'static [Knob],
    /// Kernels on which it can be told.
    pub kernels: &'static str,
    /// How sure it is at best.
    pub confidence: Confidence,
    /// What it is confused with, and what tells them apart.
    pub confused: &'static str,
}
