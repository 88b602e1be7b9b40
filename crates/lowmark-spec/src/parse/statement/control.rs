//! Statements on time, tasks and the run itself.

use crate::workload::{Cmp, Condition, Op, Start, Stmt, Times};

use super::super::error::{Problem, Result};
use super::super::exact::{Quantity, Unit};
use super::super::fields::Fields;
use super::super::objects::time_unit;
use super::super::scope::Scope;
use super::super::suggest;
use super::super::sysctl;
use super::super::tree::{Node, Value, shorten};
use super::Body;
use crate::kernel::is_setting;

/// Comparison operators, the longer before its prefix.
const COMPARISONS: [(&str, Cmp); 5] = [
    ("<=", Cmp::Le),
    (">=", Cmp::Ge),
    ("==", Cmp::Eq),
    ("<", Cmp::Lt),
    (">", Cmp::Gt),
];

/// Threads that one statement can start.
const PARALLEL_MAX: u32 = 4096;

impl Body<'_, '_> {
    fn task_index(&self, node: &Node) -> Result<usize> {
        let name = self.scope.text(node)?;
        self.shared
            .tasks
            .iter()
            .position(|task| task.name == name)
            .ok_or_else(|| {
                Problem::new(
                    node.span,
                    format!("unknown task `{}`", shorten(&name)),
                    suggest::help(
                        &name,
                        self.shared.tasks.iter().map(|task| task.name.as_str()),
                    ),
                )
            })
    }

    pub(super) fn barrier(&mut self, subject: &Node) -> Result<Op> {
        let barrier = self.shared.objects.barrier(self.scope, subject)?;
        self.shared.facts.arrives(barrier, self.task, self.parallel);
        Ok(Op::Barrier(barrier))
    }

    pub(super) fn stop_self(&mut self, subject: &Node) -> Result<Op> {
        let op = self.bare(subject, Op::StopSelf)?;
        self.shared.facts.stops(self.task, subject.span);
        Ok(op)
    }

    pub(super) fn resume(&mut self, subject: &Node) -> Result<Op> {
        let task = self.task_index(subject)?;
        self.shared.facts.resumes(task);
        Ok(Op::Resume { task })
    }

    pub(super) fn spawn(&mut self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let task = self.task_index(subject)?;
        let head = self.shared.tasks.get(task);
        if head.is_some_and(|head| head.start == Start::AtBegin) {
            return Err(Problem::new(
                subject.span,
                format!(
                    "expected a task with start = \"spawned\", found {}, which starts at the beginning",
                    subject.written()
                ),
                "add start = \"spawned\" to that task, or remove this statement",
            ));
        }
        let count = fields.or("count", Scope::some, 1)?;
        self.shared.facts.spawns(
            self.task,
            task,
            count.saturating_mul(self.times),
            subject.span,
        );
        Ok(Op::Spawn { task, count })
    }

    pub(super) fn wait(&mut self, subject: &Node) -> Result<Op> {
        let task = self.task_index(subject)?;
        if task == self.task {
            return Err(Problem::new(
                subject.span,
                format!(
                    "expected another task, found {}, the task itself",
                    subject.written()
                ),
                "a task that waits for itself never ends",
            ));
        }
        Ok(Op::Wait { task })
    }

    pub(super) fn kill(&mut self, subject: &Node) -> Result<Op> {
        let task = self.task_index(subject)?;
        self.shared.facts.kills(task);
        Ok(Op::Kill { task })
    }

    /// Each process begins without maps, and takes what it has mapped with it when it ends.
    pub(super) fn build(&mut self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let times = self.repeat_times(subject)?;
        if times == Times::Forever {
            self.shared.facts.never_ends(self.task, subject.span);
        }
        let body = fields.need_node("do", "do = [ … ], what each process does")?;
        let (outside, times_around) = (self.flow.enter_process(), self.times);
        if let Times::Count(count) = times {
            self.times = self.times.saturating_mul(count);
        }
        let body = self.statements(body);
        self.times = times_around;
        self.flow.leave_process(outside);
        Ok(Op::Build { times, body: body? })
    }

    pub(super) fn repeat(&mut self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let times = self.repeat_times(subject)?;
        if times == Times::Forever {
            self.shared.facts.never_ends(self.task, subject.span);
        }
        let body = fields.need_node("do", "do = [ … ]")?;
        if let Some(index) = fields.node("index") {
            return self.unrolled(times, index, body);
        }
        let (saved, times_around) = (self.flow.save(), self.times);
        if let Times::Count(count) = times {
            self.times = self.times.saturating_mul(count);
        }
        self.flow.enter();
        let body = self.statements(body);
        self.times = times_around;
        self.flow.leave(!matches!(times, Times::Count(0 | 1)))?;
        if times == Times::Count(0) {
            self.flow.restore(saved);
        }
        Ok(Op::Repeat { times, body: body? })
    }

    /// A loop whose statements see the number of the round: one copy of the body for each round.
    fn unrolled(&mut self, times: Times, index: &Node, body: &Node) -> Result<Op> {
        let Times::Count(rounds) = times else {
            return Err(Problem::new(
                index.span,
                "found `index` on a loop without a number of rounds",
                "an indexed loop is written out round by round: give `repeat` a count",
            ));
        };
        let name = self.new_index(index)?;
        let mut statements = Vec::new();
        for round in 0..rounds {
            let before = self.shared.problems.raised();
            statements.extend(self.numbered(&name, round, body)?);
            // Other rounds have the same statements, and mostly the same mistakes.
            if self.shared.problems.raised() > before {
                break;
            }
        }
        Ok(Op::Repeat {
            times: Times::Count(1),
            body: statements,
        })
    }

    fn repeat_times(&self, subject: &Node) -> Result<Times> {
        if let Value::Table(_) = subject.value {
            let fields = Fields::open(subject, subject.span, "`repeat`", &["for"], self.scope)?;
            return Ok(Times::For(fields.need(
                "for",
                "for = \"60s\"",
                Scope::some_duration,
            )?));
        }
        if let Value::Text(_) = subject.value
            && self.scope.text(subject).is_ok_and(|text| text == "forever")
        {
            return Ok(Times::Forever);
        }
        if self
            .scope
            .quantity(subject)
            .is_ok_and(|quantity| quantity.unit == Unit::TIME)
        {
            return Err(Problem::new(
                subject.span,
                format!("expected a count, found {}, a duration", subject.written()),
                "write repeat = { for = \"60s\" } to go on for a time",
            ));
        }
        Ok(Times::Count(self.scope.count(subject)?))
    }

    pub(super) fn until(&mut self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        const POLL_DEFAULT_NS: u64 = 100_000_000;
        let condition = self.condition(subject)?;
        let poll_ns = fields.or("poll", Scope::some_duration, POLL_DEFAULT_NS)?;
        let body = match fields.node("do") {
            None => Vec::new(),
            Some(body) => {
                self.flow.enter();
                let body = self.statements(body);
                self.flow.leave(true)?;
                body?
            }
        };
        Ok(Op::Until {
            condition,
            poll_ns,
            body,
        })
    }

    fn condition(&self, node: &Node) -> Result<Condition> {
        const HELP: &str =
            "write \"kswapd-idle\", or a vmstat field and a bound: \"nr_dirty < 1000\"";
        let text = self.scope.text(node)?;
        if text == "kswapd-idle" {
            return Ok(Condition::KswapdIdle);
        }
        let wrong = |what: &str| {
            let message = format!("expected {what}, found \"{}\"", shorten(&text));
            Problem::new(node.span, message, HELP)
        };
        let split = |&(sign, cmp): &(&'static str, Cmp)| Some((text.split_once(sign)?, cmp));
        let Some(((field, bound), cmp)) = COMPARISONS.iter().find_map(split) else {
            return Err(wrong("a condition"));
        };
        let field = field.trim();
        if !is_setting(field) {
            return Err(wrong("a vmstat field before the comparison"));
        }
        let value = self.scope.count(&Node::text(node.span, bound.trim()))?;
        Ok(Condition::Vmstat {
            field: field.to_owned(),
            cmp,
            value,
        })
    }

    /// Threads of the task: one for each body of a list, or a number of them with the same body.
    pub(super) fn parallel(&mut self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let alike = fields.node("do");
        let index = fields.node("index");
        let name = index.map(|index| self.new_index(index)).transpose()?;
        let threads = match alike {
            Some(body) => {
                let threads = self.scope.some_up_to(subject, PARALLEL_MAX)?;
                vec![body; threads as usize]
            }
            None => Self::bodies(subject, fields)?,
        };
        let before = self.flow.save();
        let around = std::mem::replace(&mut self.parallel, true);
        let (mut bodies, mut ends) = (Vec::with_capacity(threads.len()), Vec::new());
        let mut result = Ok(());
        for (number, node) in threads.into_iter().enumerate() {
            self.flow.restore(before.clone());
            let raised = self.shared.problems.raised();
            let body = match &name {
                Some(name) => self.numbered(name, number as u64, node),
                None => self.statements(node),
            };
            match body {
                Ok(body) => bodies.push(body),
                Err(problem) => result = Err(problem),
            }
            ends.push(self.flow.save());
            // Threads that are alike have the same mistakes.
            if alike.is_some() && (result.is_err() || self.shared.problems.raised() > raised) {
                break;
            }
        }
        self.flow.join(before, ends);
        self.parallel = around;
        result.map(|()| Op::Parallel { bodies })
    }

    /// The bodies of threads that are not alike.
    fn bodies<'n>(subject: &'n Node, fields: &Fields<'_, '_>) -> Result<Vec<&'n Node>> {
        const HELP: &str =
            "write { parallel = [ [ … ], [ … ] ] }, or { parallel = 4, index = \"i\", do = [ … ] }";
        if let Some(index) = fields.node("index") {
            return Err(Problem::new(index.span, "found `index` without `do`", HELP));
        }
        let Value::Array(nodes) = &subject.value else {
            let message = format!("expected lists of statements, found {}", subject.describe());
            return Err(Problem::new(subject.span, message, HELP));
        };
        if nodes.is_empty() {
            let message = "expected at least one body, found an empty list";
            return Err(Problem::new(subject.span, message, HELP));
        }
        Ok(nodes.iter().collect())
    }

    /// The name that a statement gives to the number of its round or thread.
    fn new_index(&self, index: &Node) -> Result<String> {
        let name = self.scope.text(index)?;
        self.scope.new_name(&name, index.span)?;
        Ok(name)
    }

    /// The statements of a body in which a name stands for a number.
    fn numbered(&mut self, name: &str, number: u64, body: &Node) -> Result<Vec<Stmt>> {
        let mut scope = self.scope.clone();
        scope
            .lets
            .push((name.to_owned(), Quantity::whole(number, Unit::NUMBER)));
        self.statements_in(&scope, body)
    }

    pub(super) fn phase(&mut self, subject: &Node) -> Result<Op> {
        let label = self.scope.label(subject)?;
        Ok(Op::Phase(self.shared.objects.phase_index(
            label,
            subject.span,
            self.shared.budget,
        )?))
    }

    pub(super) fn sample(&mut self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let name = self.scope.label(subject)?;
        let unit = fields.maybe("unit", time_unit)?;
        let series =
            self.shared
                .objects
                .series_index(&name, subject.span, unit, self.shared.budget)?;
        let body = fields.need_node("do", "do = [ … ], the statements to be timed")?;
        let around = std::mem::replace(&mut self.sampled, true);
        let body = self.statements(body);
        self.sampled = around;
        Ok(Op::Sample {
            series,
            body: body?,
        })
    }

    pub(super) fn sysctl(&self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let text = self.scope.text(subject)?;
        let name = sysctl::name(&text, subject.span)?;
        let value = fields.need("value", "value = 3", |scope, node| {
            sysctl::value(&name, &scope.text(node)?, node.span, scope)
        })?;
        Ok(Op::Sysctl { name, value })
    }

    pub(super) fn expect(&self, subject: &Node, fields: &Fields<'_, '_>) -> Result<Op> {
        let metric = self.scope.label(subject)?;
        let bound = |scope: &Scope<'_>, node: &Node| scope.count(node);
        let (min, max) = (fields.maybe("min", bound)?, fields.maybe("max", bound)?);
        match (min, max) {
            (None, None) => Err(fields.missing("min` or `max", "min = 0 or max = 1000")),
            (Some(low), Some(high)) if low > high => Err(Problem::new(
                fields.node("max").unwrap_or(subject).span,
                format!("expected `max` of at least `min`, found {high} below {low}"),
                "swap the two",
            )),
            _ => Ok(Op::Expect { metric, min, max }),
        }
    }
}
