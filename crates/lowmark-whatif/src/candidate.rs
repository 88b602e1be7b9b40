//! Loads that come into question for what was recorded.

use lowmark_spec::machine::PAGE_SIZE;
use serde::Serialize;
use std::fmt::Write as _;

/// Whose memory it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Private memory of one process.
    Private,
    /// Shared memory.
    Shared,
}

/// In which order pages are touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// From the first page on, again and again.
    Forward,
    /// Once from the first page on, and then from the last one down.
    Backward,
    /// Once from the first page on, and then at random.
    Random,
    /// At random from the beginning.
    AllRandom,
}

impl Order {
    pub(crate) const ALL: [Order; 4] = [
        Order::Forward,
        Order::Backward,
        Order::Random,
        Order::AllRandom,
    ];
}

/// Whether pages that were written once are written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Every touch writes.
    Write,
    /// The first touch of a page writes, later ones read.
    ReadLater,
}

/// A load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Whose memory it is.
    pub kind: Kind,
    /// In which order pages are touched.
    pub order: Order,
    /// Whether pages are written again.
    pub access: Access,
    /// Pages of the mapping.
    pub pages: u64,
    /// Touches behind the first ones of all pages; where all are at random, all touches.
    pub touches: u64,
}

impl Candidate {
    /// What it does, one sentence without a full stop.
    pub fn describe(&self) -> String {
        let kind = match self.kind {
            Kind::Private => "private",
            Kind::Shared => "shared",
        };
        let mib = (self.pages * PAGE_SIZE) >> 20;
        let times = |touches: u64| {
            let hundredths = touches * 100 / self.pages.max(1);
            format!("{}.{:02}", hundredths / 100, hundredths % 100)
        };
        let later = match self.access {
            Access::Write => "written",
            Access::ReadLater => "read",
        };
        let mut text = format!("{} pages ({mib} MiB) of {kind} memory", self.pages);
        let _ = match self.order {
            Order::AllRandom => write!(
                text,
                ", written at random, {} times as many touches as pages",
                times(self.touches)
            ),
            _ if self.touches == 0 => write!(text, ", written once in order"),
            Order::Forward => write!(
                text,
                ", written once in order and then {later} in order, {} times over",
                times(self.touches)
            ),
            Order::Backward => write!(
                text,
                ", written once in order and then {later} backward, {} times over",
                times(self.touches)
            ),
            Order::Random => write!(
                text,
                ", written once in order and then {later} at random, {} times as many touches as pages",
                times(self.touches)
            ),
        };
        text
    }

    /// The load in the workload language, for a machine and a kernel by their names.
    pub fn text(&self, machine: &str, kernel: &str) -> String {
        let kind = match self.kind {
            Kind::Private => "anon-private",
            Kind::Shared => "anon-shared",
        };
        let access = match self.access {
            Access::Write => "write",
            Access::ReadLater => "read",
        };
        let mut text = format!(
            "lowmark = 1\n\n[workload]\nname = \"whatif\"\ntitle = \"{}\"\n\n\
             [machine]\nuse = \"{machine}\"\n\n[kernel]\nuse = \"{kernel}\"\n\n\
             [task.load]\nrun = [\n  {{ map = \"m\", kind = \"{kind}\", size = \"{}*PAGE\" }},\n",
            self.describe(),
            self.pages
        );
        let order = match self.order {
            Order::Forward => "seq",
            Order::Backward => "reverse",
            Order::Random | Order::AllRandom => "random",
        };
        if self.order == Order::AllRandom {
            let _ = writeln!(
                text,
                "  {{ touch = \"m\", access = \"write\", order = \"random\", count = {} }},",
                self.touches
            );
        } else {
            text.push_str("  { touch = \"m\", access = \"write\" },\n");
            if self.touches > 0 {
                let _ = writeln!(
                    text,
                    "  {{ touch = \"m\", access = \"{access}\", order = \"{order}\", count = {} }},",
                    self.touches
                );
            }
        }
        text.push_str("]\n");
        text
    }
}
