//! Tasks: `[task.NAME]` with its instances.
//!
//! 1. [`heads`] reads of every task how many instances it has and when they start, so that statements
//!    can refer to tasks further down.
//! 2. [`bodies`] reads `run` once for each instance, with its `idx`.

use crate::workload::{CgroupId, Sharing, Start, Stmt, Task};

use super::budget::INSTANCES_MAX;
use super::error::{Problem, Problems, Result};
use super::fields::Fields;
use super::objects::Objects;
use super::scope::{Instance, Scope, identifier};
use super::source::Span;
use super::statement::{Body, Shared};
use super::tree::{Entry, Node};

/// A task without its statements.
#[derive(Debug, Clone)]
pub(crate) struct TaskHead {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) sharing: Sharing,
    pub(crate) start: Start,
    pub(crate) cgroup: Option<CgroupId>,
    pub(crate) instances: u64,
}

/// Reads all tasks but their statements. A task that is not understood stays, with no instances, so
/// that the others can name it.
pub(crate) fn heads(
    entries: &[Entry],
    objects: &Objects,
    scope: &Scope<'_>,
    problems: &mut Problems,
) -> Vec<TaskHead> {
    let mut heads = Vec::with_capacity(entries.len());
    let mut total = 0_u64;
    for entry in entries {
        let read = head(entry, objects, scope);
        let head = problems.keep(read).unwrap_or_else(|| TaskHead {
            name: entry.key.clone(),
            span: entry.key_span,
            sharing: Sharing::Processes,
            start: Start::AtBegin,
            cgroup: None,
            instances: 0,
        });
        total = total.saturating_add(head.instances);
        heads.push(head);
    }
    if total > INSTANCES_MAX
        && let Some(last) = entries.last()
    {
        problems.push(Problem::new(
            last.key_span,
            format!("expected at most {INSTANCES_MAX} instances of all tasks, found {total}"),
            "lower `processes` or `threads`",
        ));
    }
    heads
}

fn head(entry: &Entry, objects: &Objects, scope: &Scope<'_>) -> Result<TaskHead> {
    const KEYS: [&str; 5] = ["processes", "threads", "start", "cgroup", "run"];
    const STARTS: [(&str, Start); 2] = [("begin", Start::AtBegin), ("spawned", Start::Spawned)];
    identifier(&entry.key, entry.key_span, "a task")?;
    let owner = format!("the task `{}`", entry.key);
    let fields = Fields::open(&entry.node, entry.key_span, &owner, &KEYS, scope)?;
    fields.either("processes", "threads")?;
    fields.need_node("run", "run = [ … ], its statements")?;
    let (sharing, instances) = match fields.maybe("threads", Scope::some)? {
        Some(threads) => (Sharing::Threads, threads),
        None => (Sharing::Processes, fields.or("processes", Scope::some, 1)?),
    };
    if instances > INSTANCES_MAX {
        return Err(Problem::new(
            entry.key_span,
            format!("expected at most {INSTANCES_MAX} instances, found {instances}"),
            "lower `processes` or `threads`",
        ));
    }
    let start = fields.or(
        "start",
        |scope, node| scope.choice(node, "when the task starts", &STARTS),
        Start::AtBegin,
    )?;
    let cgroup = fields.maybe("cgroup", |scope, node| objects.cgroup_of_task(scope, node))?;
    Ok(TaskHead {
        name: entry.key.clone(),
        span: entry.key_span,
        sharing,
        start,
        cgroup,
        instances,
    })
}

/// Reads the statements of all tasks, whose heads are those of `shared`.
pub(crate) fn bodies(entries: &[Entry], scope: &Scope<'_>, shared: &mut Shared<'_>) -> Vec<Task> {
    let mut tasks = Vec::with_capacity(entries.len());
    for (id, (entry, head)) in entries.iter().zip(shared.tasks).enumerate() {
        let mut task = Task {
            name: head.name.clone(),
            sharing: head.sharing,
            start: head.start,
            cgroup: head.cgroup,
            maps: Vec::new(),
            instances: Vec::new(),
        };
        let Some(run) = entry.node.get("run") else {
            continue;
        };
        for idx in 0..head.instances {
            let before = shared.problems.raised();
            let body = instance(id, head, idx, run, &mut task.maps, scope, shared);
            task.instances.extend(shared.problems.keep(body));
            // Other instances have the same statements, and mostly the same mistakes.
            if shared.problems.raised() > before {
                break;
            }
        }
        tasks.push(task);
    }
    tasks
}

fn instance(
    task: usize,
    head: &TaskHead,
    idx: u64,
    run: &Node,
    maps: &mut Vec<String>,
    scope: &Scope<'_>,
    shared: &mut Shared<'_>,
) -> Result<Vec<Stmt>> {
    let (threads, processes) = match head.sharing {
        Sharing::Threads => (head.instances, 1),
        Sharing::Processes => (1, head.instances),
    };
    let scope = Scope {
        instance: Some(Instance {
            idx,
            threads,
            processes,
        }),
        ..scope.clone()
    };
    shared.budget.charge(run.span, 0)?;
    let mut body = Body::new(shared, &scope, task, std::mem::take(maps));
    let statements = body.statements(run);
    *maps = body.into_map_names();
    statements
}
