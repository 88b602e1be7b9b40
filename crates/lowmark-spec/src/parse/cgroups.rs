//! Memory cgroups: the sections `[cgroup.NAME]`.
//!
//! 1. Each section is read for itself; `parent` is a name that may stand further down.
//! 2. [`arrange`] turns names into indices and puts the groups in the order in which the kernel goes through them
//!    (`css_next_descendant_pre`): a group before those inside it, siblings in the order of the file. So a group and
//!    all below it are neighbours.
//! 3. A soft limit is of version 1, and then all groups are: what only version 2 has is a problem beside it.

use super::budget::Budget;
use super::error::{Problem, Problems, Result};
use super::fields::Fields;
use super::objects::Objects;
use super::scope::Scope;
use super::source::Span;
use super::suggest;
use super::tree::{Node, shorten};
use crate::workload::{Cgroup, CgroupId};

/// Memory cgroups of a workload.
const CGROUPS_MAX: usize = 15;

/// A section that was read.
#[derive(Debug, Clone)]
pub(crate) struct CgroupDef {
    group: Cgroup,
    /// The name of the group that it is in, and where that stands.
    parent: Option<(String, Span)>,
    /// Where the section stands.
    span: Span,
}

/// Reads a section. A task may name the group even if its limits are not understood.
pub(crate) fn read(
    defs: &mut Vec<CgroupDef>,
    name: &str,
    span: Span,
    node: &Node,
    scope: &Scope<'_>,
    budget: &mut Budget,
) -> Result<()> {
    const KEYS: [&str; 7] = ["parent", "max", "high", "low", "min", "swap_max", "soft"];
    if defs.len() == CGROUPS_MAX {
        return Err(Problem::new(
            span,
            format!("expected at most {CGROUPS_MAX} cgroups, found `{name}` beside them"),
            "let tasks share a cgroup",
        ));
    }
    let index = defs.len();
    defs.push(CgroupDef {
        group: Cgroup {
            name: name.to_owned(),
            ..Cgroup::default()
        },
        parent: None,
        span,
    });
    let owner = format!("the cgroup `{name}`");
    let fields = Fields::open(node, span, &owner, &KEYS, scope)?;
    let parent = match fields.node("parent") {
        Some(node) => Some((scope.text(node)?, node.span)),
        None => None,
    };
    let group = Cgroup {
        max: fields.maybe("max", Scope::some_size)?,
        high: fields.maybe("high", Scope::some_size)?,
        low: fields.maybe("low", Scope::size)?,
        min: fields.maybe("min", Scope::size)?,
        swap_max: fields.maybe("swap_max", Scope::size)?,
        soft: fields.maybe("soft", Scope::size)?,
        name: name.to_owned(),
        ..Cgroup::default()
    };
    budget.charge(span, name.len())?;
    defs[index] = CgroupDef {
        group,
        parent,
        span,
    };
    Ok(())
}

/// The groups in the kernel's order, with their parents and paths. A parent that does not exist or is below its own
/// child is a problem, and the group is then a child of the root.
pub(crate) fn arrange(defs: &[CgroupDef], problems: &mut Problems) -> Vec<Cgroup> {
    let mut parents: Vec<Option<usize>> = Vec::with_capacity(defs.len());
    for def in defs {
        let found = def.parent.as_ref().map(|parent| named(defs, parent));
        parents.push(found.and_then(|found| problems.keep(found)));
    }
    for at in 0..defs.len() {
        if let Some((_, span)) = &defs[at].parent
            && is_below_itself(&parents, at)
        {
            problems.push(Problem::new(
                *span,
                format!("found the cgroup `{}` inside itself", defs[at].group.name),
                "remove `parent` from one of the groups of this circle: a group without it is a child of the root",
            ));
            parents[at] = None;
        }
    }
    let mut groups = Vec::with_capacity(defs.len());
    place(defs, &parents, None, None, &mut groups);
    of_one_version(defs, problems);
    groups
}

/// A soft limit makes all groups of the workload those of version 1, which lack what version 2 has.
fn of_one_version(defs: &[CgroupDef], problems: &mut Problems) {
    let Some(legacy) = defs.iter().find(|def| def.group.soft.is_some()) else {
        return;
    };
    for def in defs {
        let group = &def.group;
        let later = [
            ("high", group.high),
            ("low", group.low),
            ("min", group.min),
            ("swap_max", group.swap_max),
        ];
        for (field, _) in later.iter().filter(|(_, value)| value.is_some()) {
            problems.push(Problem::new(
                def.span,
                format!(
                    "found `{field}`, which is of version 2, in the cgroup `{}`, and `soft`, which is of version 1, in `{}`",
                    group.name, legacy.group.name
                ),
                "all groups are of one version: remove the one or the other",
            ));
        }
    }
}

fn named(defs: &[CgroupDef], (name, span): &(String, Span)) -> Result<usize> {
    let mut known = defs.iter().map(|def| def.group.name.as_str());
    known.position(|known| known == name).ok_or_else(|| {
        let names = defs.iter().map(|def| def.group.name.as_str());
        Problem::new(
            *span,
            format!("unknown cgroup `{}`", shorten(name)),
            suggest::help(name, names),
        )
    })
}

fn is_below_itself(parents: &[Option<usize>], group: usize) -> bool {
    let mut above = parents[group];
    for _ in parents {
        match above {
            Some(at) if at == group => return true,
            Some(at) => above = parents[at],
            None => return false,
        }
    }
    false
}

/// Places the children of a group, each with all that is below it.
fn place(
    defs: &[CgroupDef],
    parents: &[Option<usize>],
    parent: Option<usize>,
    placed: Option<CgroupId>,
    groups: &mut Vec<Cgroup>,
) {
    for (at, def) in defs
        .iter()
        .enumerate()
        .filter(|(at, _)| parents[*at] == parent)
    {
        let name = &def.group.name;
        let path = match placed {
            Some(above) => format!("{}/{name}", groups[above].path),
            None => name.clone(),
        };
        let here = groups.len();
        groups.push(Cgroup {
            path,
            parent: placed,
            ..def.group.clone()
        });
        place(defs, parents, Some(at), Some(here), groups);
    }
}

impl Objects {
    /// Index of a cgroup.
    pub(crate) fn cgroup(&self, scope: &Scope<'_>, node: &Node) -> Result<CgroupId> {
        let name = scope.text(node)?;
        let mut known = self.cgroups.iter();
        known.position(|group| group.name == name).ok_or_else(|| {
            let names = self.cgroups.iter().map(|group| group.name.as_str());
            Problem::new(
                node.span,
                format!("unknown cgroup `{}`", shorten(&name)),
                format!(
                    "cgroups are defined in sections [cgroup.NAME]; {}",
                    suggest::help(&name, names)
                ),
            )
        })
    }

    /// Index of a cgroup that a task may be in: one without groups inside it, as version 2 asks
    /// (`cgroup_migrate_vet_dst`).
    pub(crate) fn cgroup_of_task(&self, scope: &Scope<'_>, node: &Node) -> Result<CgroupId> {
        let group = self.cgroup(scope, node)?;
        let Some(inner) = self
            .cgroups
            .iter()
            .find(|other| other.parent == Some(group))
        else {
            return Ok(group);
        };
        Err(Problem::new(
            node.span,
            format!(
                "found a task in the cgroup `{}`, which has `{}` inside it",
                self.cgroups[group].name, inner.name
            ),
            "a group with groups inside it holds no tasks: put the task into one of those",
        ))
    }
}

#[cfg(test)]
mod tests {
    use crate::{BuiltIn, Overrides, Source, parse};

    /// Children stand before their parents in the file; the kernel goes through a group before what is inside it, and
    /// through siblings as they were made.
    #[test]
    fn groups_stand_in_the_order_in_which_the_kernel_goes_through_them() {
        let text = r#"
            lowmark = 1
            [workload]
            name = "tree"
            memory_recursiveprot = true
            [machine]
            use = "guest-256m"
            [kernel]
            use = "v6.18"
            [cgroup.leaf]
            parent = "middle"
            [cgroup.first]
            min = "1M"
            [cgroup.top]
            max = "64M"
            [cgroup.last]
            parent = "top"
            swap_max = 0
            [cgroup.middle]
            parent = "top"
            [task.main]
            cgroup = "last"
            run = [{ reclaim = "4K", cgroup = "top" }]
        "#;
        let source = Source {
            name: "tree".into(),
            text: text.into(),
        };
        let scenarios = parse(&source, &BuiltIn, &Overrides::default()).expect("it is right");
        let workload = &scenarios[0].workload;
        let groups = workload.cgroups.iter();
        let tree: Vec<_> = groups.map(|g| (g.path.as_str(), g.parent)).collect();
        let expected = [
            ("first", None),
            ("top", None),
            ("top/last", Some(1)),
            ("top/middle", Some(1)),
            ("top/middle/leaf", Some(3)),
        ];
        assert_eq!(tree, expected);
        assert_eq!(workload.tasks[0].cgroup, Some(2));
        assert_eq!(
            (workload.cgroups[0].min, workload.cgroups[2].swap_max),
            (Some(1 << 20), Some(0))
        );
        assert!(workload.recursive_protection);
    }

    /// What is wrong with two groups and a task.
    fn wrong(groups: &str, statement: &str) -> String {
        let text = format!(
            "lowmark = 1\n[workload]\nname = \"soft\"\n[machine]\nuse = \"guest-256m\"\n[kernel]\nuse = \"v6.1\"\n{groups}\n\
             [task.main]\ncgroup = \"a\"\nrun = [{statement}]\n"
        );
        let source = Source {
            name: "soft.toml".into(),
            text,
        };
        match parse(&source, &BuiltIn, &Overrides::default()) {
            Ok(scenarios) => {
                assert_eq!(scenarios[0].workload.cgroups[0].soft, Some(8 << 20));
                String::new()
            }
            Err(error) => error.to_string(),
        }
    }

    /// A soft limit makes all groups those of version 1; what only version 2 has does not go with it.
    #[test]
    fn soft_limits_are_of_version_1() {
        let sleep = "{ sleep = \"1s\" }";
        let soft = "[cgroup.a]\nsoft = \"8M\"\nmax = \"16M\"\n[cgroup.b]\n";
        assert_eq!(wrong(soft, sleep), "");
        for (groups, statement, part) in [
            (format!("{soft}high = \"1M\""), sleep, "`high`"),
            (format!("{soft}low = \"1M\""), sleep, "`low`"),
            (format!("{soft}min = \"1M\""), sleep, "`min`"),
            (format!("{soft}swap_max = 0"), sleep, "`swap_max`"),
            (
                soft.to_owned(),
                "{ reclaim = \"4K\", cgroup = \"b\" }",
                "`reclaim`",
            ),
        ] {
            let error = wrong(&groups, statement);
            assert!(error.contains("soft.toml"), "{error}");
            assert!(
                error.contains(part) && error.contains("version 1"),
                "{error}"
            );
        }
    }
}
