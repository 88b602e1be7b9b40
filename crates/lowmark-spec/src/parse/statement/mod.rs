//! Statements: one inline table each, exactly one of whose keys names it.
//!
//! 1. [`Body::statement`] finds the statement's name among the keys and checks the other keys against
//!    [`STATEMENTS`].
//! 2. The modules below read the parameters: [`memory`], [`io`], [`control`].
//! 3. Bodies inside a statement are read by the same code, one level deeper; [`Flow`](flow::Flow) follows
//!    which maps are there.

mod control;
pub(crate) mod flow;
mod io;
mod memory;

use crate::machine::Machine;
use crate::workload::{Amount, Op, Stmt};

use super::budget::{Budget, NESTING_MAX};
use super::check::Facts;
use super::error::{Problem, Problems, Result};
use super::fields::Fields;
use super::objects::Objects;
use super::scope::Scope;
use super::source::Sources;
use super::suggest;
use super::task::TaskHead;
use super::tree::{Node, Value};
use flow::Flow;

/// Every statement with its other parameters.
pub const STATEMENTS: [(&str, &[&str]); 43] = [
    (
        "map",
        &["kind", "file", "size", "offset", "advice", "lock", "exec"],
    ),
    ("unmap", &["offset", "length", "every"]),
    ("punch", &["offset", "length", "every"]),
    (
        "touch",
        &[
            "access", "order", "step", "passes", "count", "offset", "length", "rate",
        ],
    ),
    ("memset", &["offset", "length"]),
    ("advise", &["advice", "offset", "length"]),
    ("probe", &["offset", "what"]),
    ("mlock", &["lock", "offset", "length"]),
    ("node", &[]),
    ("read", io::PARAMETERS),
    ("write", io::PARAMETERS),
    ("append", io::PARAMETERS),
    ("fsync", &["pick"]),
    ("fdatasync", &["pick"]),
    ("sync_range", &["offset", "length"]),
    ("sync", &[]),
    ("drop_caches", &[]),
    ("reclaim", &["cgroup"]),
    ("create", &["pick"]),
    ("delete", &["pick"]),
    ("truncate", &["size", "pick"]),
    ("stat_walk", &[]),
    ("copy", &["to", "block"]),
    (
        "alloc",
        &[
            "order",
            "gfp",
            "count",
            "pace",
            "busy",
            "give_up_success",
            "give_up_fail",
            "series",
        ],
    ),
    ("free", &[]),
    ("sleep", &[]),
    ("think", &[]),
    ("burn", &[]),
    ("barrier", &[]),
    ("stop_self", &[]),
    ("resume", &[]),
    ("spawn", &["count"]),
    ("wait", &[]),
    ("kill", &[]),
    ("pipe", &["to", "chunk", "depth"]),
    ("build", &["do"]),
    ("repeat", &["index", "do"]),
    ("until", &["poll", "do"]),
    ("parallel", &["index", "do"]),
    ("phase", &[]),
    ("sample", &["unit", "do"]),
    ("sysctl", &["value"]),
    ("expect", &["min", "max"]),
];

/// Everything that the statements of all tasks can refer to.
pub(crate) struct Shared<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) sources: &'a Sources,
    pub(crate) tasks: &'a [TaskHead],
    pub(crate) objects: &'a mut Objects,
    pub(crate) facts: &'a mut Facts,
    pub(crate) budget: &'a mut Budget,
    pub(crate) problems: &'a mut Problems,
}

/// A place in the body of one instance.
pub(crate) struct Body<'b, 'a> {
    shared: &'b mut Shared<'a>,
    scope: &'b Scope<'b>,
    /// Index of the task that this body belongs to.
    task: usize,
    flow: Flow,
    /// How often the statement runs at least: product of the `repeat` counts around it.
    times: u64,
    /// Whether a `parallel` is around it.
    parallel: bool,
    /// Whether a `sample` is around it.
    sampled: bool,
    depth: usize,
}

impl<'b, 'a> Body<'b, 'a> {
    /// At the start of an instance; `maps` are the names that earlier instances gave to their maps.
    pub(crate) fn new(
        shared: &'b mut Shared<'a>,
        scope: &'b Scope<'b>,
        task: usize,
        maps: Vec<String>,
    ) -> Body<'b, 'a> {
        let flow = Flow::new(maps);
        Body {
            shared,
            scope,
            task,
            flow,
            times: 1,
            parallel: false,
            sampled: false,
            depth: 0,
        }
    }

    /// Reads statements here, in another scope.
    fn statements_in(&mut self, scope: &Scope<'_>, node: &Node) -> Result<Vec<Stmt>> {
        let mut inner = Body {
            shared: &mut *self.shared,
            scope,
            flow: std::mem::take(&mut self.flow),
            ..*self
        };
        let statements = inner.statements(node);
        self.flow = inner.flow;
        statements
    }

    /// The names of all maps, by index.
    pub(crate) fn into_map_names(self) -> Vec<String> {
        self.flow.into_names()
    }

    /// Reads a list of statements. A broken one is reported, and the others are read all the same.
    pub(crate) fn statements(&mut self, node: &Node) -> Result<Vec<Stmt>> {
        let nodes = node.elements("statements")?;
        if nodes.is_empty() {
            return Err(Problem::new(
                node.span,
                "expected at least one statement, found an empty list",
                "write for example [{ sleep = \"1s\" }]",
            ));
        }
        if self.depth >= NESTING_MAX {
            return Err(Problem::new(
                node.span,
                format!("found more than {NESTING_MAX} bodies inside each other"),
                "move the inner statements into a task of their own and `spawn` it",
            ));
        }
        self.depth += 1;
        let mut statements = Vec::with_capacity(nodes.len());
        for node in nodes {
            let statement = self.statement(node);
            statements.extend(self.shared.problems.keep(statement));
            if self.shared.budget.is_exhausted() {
                break;
            }
        }
        self.depth -= 1;
        Ok(statements)
    }

    fn statement(&mut self, node: &Node) -> Result<Stmt> {
        self.shared.budget.charge(node.span, node.span.len())?;
        let entries = node.entries("one statement")?;
        // A name with parameters of its own may also be the parameter of another statement: `to` a `write` of
        // `pipe`. The first key that fits all others decides.
        let named = |key: &str| STATEMENTS.iter().find(|(name, _)| *name == key);
        let candidates: Vec<_> = entries
            .iter()
            .filter_map(|entry| Some((entry, named(&entry.key)?)))
            .collect();
        let fits = |allowed: &[&str], name: &str| {
            candidates
                .iter()
                .all(|(entry, _)| entry.key == name || allowed.contains(&entry.key.as_str()))
        };
        let chosen = candidates
            .iter()
            .find(|(_, (name, allowed))| fits(allowed, name));
        let Some((subject, (name, allowed))) = chosen else {
            let names: Vec<&str> = candidates
                .iter()
                .map(|(entry, _)| entry.key.as_str())
                .collect();
            return Err(not_one_statement(node, &names));
        };
        let line = self.shared.sources.line(node.span);
        let owner = format!("the statement `{name}`");
        let keys: Vec<&str> = std::iter::once(*name)
            .chain(allowed.iter().copied())
            .collect();
        let op = Fields::open(node, node.span, &owner, &keys, self.scope)
            .and_then(|fields| self.operation(name, &subject.node, &fields));
        if op.is_err() {
            self.flow.poison(self.scope, name, &subject.node);
        }
        Ok(Stmt { line, op: op? })
    }

    fn operation(&mut self, name: &str, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        match name {
            "map" => self.map(subject, fields),
            "unmap" => self.unmap(subject, fields),
            "punch" => self.punch(subject, fields),
            "touch" => self.touch(subject, fields),
            "memset" => self.memset(subject, fields),
            "advise" => self.advise(subject, fields),
            "probe" => self.probe(subject, fields),
            "mlock" => self.mlock(subject, fields),
            "node" => self.node(subject),
            "alloc" => self.alloc(subject, fields),
            "free" => self.free(subject),
            "read" => Ok(Op::Read(self.file_io(subject, fields)?)),
            "write" => Ok(Op::Write(self.file_io(subject, fields)?)),
            "append" => self.append(subject, fields),
            "fsync" => self.fsync(subject, fields, false),
            "fdatasync" => self.fsync(subject, fields, true),
            "sync_range" => self.sync_range(subject, fields),
            "sync" => self.bare(subject, Op::Sync),
            "drop_caches" => self.drop_caches(subject),
            "reclaim" => self.reclaim(subject, fields),
            "create" => Ok(Op::Create {
                file: self.file_ref(subject, fields)?,
            }),
            "delete" => Ok(Op::Delete {
                file: self.file_ref(subject, fields)?,
            }),
            "truncate" => self.truncate(subject, fields),
            "stat_walk" => self.stat_walk(subject),
            "copy" => self.copy(subject, fields),
            "pipe" => self.pipe(subject, fields),
            "sleep" => Ok(Op::Sleep(self.scope.duration_dist(subject)?)),
            "think" => Ok(Op::Think(self.scope.duration_dist(subject)?)),
            "burn" => Ok(Op::Burn(self.scope.duration_dist(subject)?)),
            "barrier" => self.barrier(subject),
            "stop_self" => self.stop_self(subject),
            "resume" => self.resume(subject),
            "spawn" => self.spawn(subject, fields),
            "wait" => self.wait(subject),
            "kill" => self.kill(subject),
            "build" => self.build(subject, fields),
            "repeat" => self.repeat(subject, fields),
            "until" => self.until(subject, fields),
            "parallel" => self.parallel(subject, fields),
            "phase" => self.phase(subject),
            "sample" => self.sample(subject, fields),
            "sysctl" => self.sysctl(subject, fields),
            _ => self.expect(subject, fields),
        }
    }

    /// A statement without a subject, written `{ sync = true }`.
    fn bare(&self, subject: &Node, op: Op) -> Result<Op> {
        match subject.value {
            Value::Boolean(true) => Ok(op),
            _ => Err(Problem::new(
                subject.span,
                format!("expected true, found {}", subject.describe()),
                format!("write {{ {} = true }}", op.name()),
            )),
        }
    }

    /// `passes` or `count`; one pass when neither is there.
    fn amount(&self, fields: &Fields<'_, '_>) -> Result<Amount> {
        fields.either("passes", "count")?;
        match fields.maybe("count", Scope::count)? {
            Some(count) => Ok(Amount::Count(count)),
            None => Ok(Amount::Passes(fields.or("passes", Scope::count, 1)?)),
        }
    }
}

fn not_one_statement(node: &Node, names: &[&str]) -> Problem {
    let all = STATEMENTS.iter().map(|(name, _)| *name);
    let entries = node.entries("one statement").unwrap_or(&[]);
    match (names, entries.first()) {
        ([first, second, ..], _) => Problem::new(
            node.span,
            format!("expected one statement, found both `{first}` and `{second}`"),
            format!("write {{ {first} = … }}, {{ {second} = … }}"),
        ),
        (_, None) => Problem::new(
            node.span,
            "expected a statement, found an empty table",
            "write for example { sleep = \"1s\" }",
        ),
        (_, Some(first)) => {
            // The misspelt name is the key that comes nearest to a statement, else the first.
            let near = |key: &str| suggest::nearest(key, all.clone());
            let entry = entries
                .iter()
                .find(|entry| near(&entry.key).is_some())
                .unwrap_or(first);
            Problem::new(
                entry.key_span,
                format!("unknown statement `{}`", super::tree::shorten(&entry.key)),
                suggest::help(&entry.key, all),
            )
        }
    }
}
