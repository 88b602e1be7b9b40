//! Which statements a version of the kernel does not know.

use super::support::Unsupported;
use crate::kernel::thp;
use crate::kernel::{Version, v};
use lowmark_spec::workload::{Advice, MapKind, Op, Stmt, Workload};

/// A statement that came with a later kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Later {
    /// Which.
    pub statement: Unsupported,
    /// The first version that knows it.
    pub since: Version,
}

/// Everything in a workload that a version does not know, each kind once per line.
pub(crate) fn later(workload: &Workload, version: Version) -> Vec<Later> {
    let mut found = Vec::new();
    for task in &workload.tasks {
        for body in &task.instances {
            let kinds = kinds_of(body, task.maps.len());
            each(body, &mut |stmt| {
                let (what, since) = match since(&stmt.op, &kinds) {
                    Some((what, since)) if since > version => (what, since),
                    _ => return,
                };
                let entry = Later {
                    statement: Unsupported {
                        task: task.name.clone(),
                        line: stmt.line,
                        statement: format!("{} {what}", stmt.op.name()),
                    },
                    since,
                };
                if !found.contains(&entry) {
                    found.push(entry);
                }
            });
        }
    }
    found
}

/// Calls `look` for every statement of a body and of those inside.
fn each(body: &[Stmt], look: &mut dyn FnMut(&Stmt)) {
    for stmt in body {
        look(stmt);
        for inner in stmt.op.bodies() {
            each(inner, look);
        }
    }
}

/// What each map of an instance is; nothing of one that is now this and now that.
pub(super) fn kinds_of(body: &[Stmt], maps: usize) -> Vec<Option<MapKind>> {
    let mut kinds = vec![Vec::new(); maps];
    each(body, &mut |stmt| {
        if let Op::Map { map, kind, .. } = &stmt.op
            && let Some(kinds) = kinds.get_mut(*map)
        {
            kinds.push(*kind);
        }
    });
    let only = |kinds: Vec<MapKind>| {
        let first = *kinds.first()?;
        kinds.iter().all(|&kind| kind == first).then_some(first)
    };
    kinds.into_iter().map(only).collect()
}

/// What about a statement came with a version, and with which; `kinds` says what the maps are.
fn since(op: &Op, kinds: &[Option<MapKind>]) -> Option<(String, Version)> {
    let (map, advice) = match op {
        Op::Map { map, advice, .. } => (*map, (*advice)?),
        Op::Advise { map, advice, .. } => (*map, *advice),
        // `memory.reclaim`, 94968384dde1.
        Op::Reclaim { .. } => return Some(("of a memory cgroup".to_owned(), v(5, 19))),
        _ => return None,
    };
    let kind = kinds.get(map).copied().flatten();
    let private = kind == Some(MapKind::AnonPrivate);
    let shared = matches!(kind, Some(MapKind::AnonShared | MapKind::FileShared(_)));
    let (word, since) = match advice {
        // `VM_NO_THP` had shared maps in it until e496cf3d7821.
        Advice::Hugepage if shared => ("hugepage of a shared map", v(4, 8)),
        Advice::Nohugepage if shared => ("nohugepage of a shared map", v(4, 8)),
        Advice::Hugepage => ("hugepage", thp::SINCE),
        Advice::Nohugepage => ("nohugepage", thp::SINCE),
        // 1998cc048901: before, only files could be read ahead.
        Advice::Willneed if private => ("willneed of private memory", v(3, 9)),
        Advice::Free => ("free", v(4, 5)),
        Advice::Cold => ("cold", v(5, 4)),
        Advice::Pageout => ("pageout", v(5, 4)),
        Advice::Populate => ("populate", v(5, 14)),
        Advice::PopulateRead => ("populate-read", v(5, 14)),
        _ => return None,
    };
    let with = match op {
        Op::Map { .. } => "with advice ",
        _ => "",
    };
    Some((format!("{with}{word}"), since))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmark_spec::{BuiltIn, Overrides, Source, parse};

    /// What version 3.6 does not know of a task with a private map `p` and a shared one `s`.
    fn found(statement: &str, version: Version) -> Vec<(String, Version)> {
        let text = format!(
            "lowmark = 1\n[workload]\nname = \"w\"\n[machine]\nuse = \"small-512m-ssd\"\n[kernel]\nuse = \"v3.6\"\n\
             [cgroup.box]\n[task.main]\nrun = [\n{{ map = \"p\", kind = \"anon-private\", size = \"8M\" }},\n\
             {{ map = \"s\", kind = \"anon-shared\", size = \"8M\" }},\n\
             {{ repeat = 2, do = [{{ sleep = \"1ms\" }}, {statement}] }},\n]\n"
        );
        let source = Source {
            name: "w.toml".into(),
            text,
        };
        let scenarios = parse(&source, &BuiltIn, &Overrides::default());
        let scenarios = scenarios.unwrap_or_else(|error| panic!("{}", error.render_plain()));
        let later = later(&scenarios[0].workload, version).into_iter();
        later
            .map(|it| {
                assert_eq!(
                    (it.statement.task.as_str(), it.statement.line),
                    ("main", 13)
                );
                (it.statement.statement, it.since)
            })
            .collect()
    }

    #[test]
    fn what_came_later_is_named_with_its_version() {
        let advise =
            |map: &str, word: &str| format!("{{ advise = \"{map}\", advice = \"{word}\" }}");
        for (map, word, text, since) in CASES {
            let statement = advise(map, word);
            assert_eq!(
                found(&statement, before(since)),
                [(text.to_owned(), since)],
                "{map} {word}"
            );
            assert_eq!(found(&statement, since), []);
        }
        assert_eq!(found(&advise("p", "dontneed"), v(3, 6)), []);
        let reclaim = "{ reclaim = \"1M\", cgroup = \"box\" }";
        let later = ("reclaim of a memory cgroup".to_owned(), v(5, 19));
        assert_eq!(found(reclaim, v(5, 18)), [later]);
        assert_eq!(found(reclaim, v(5, 19)), []);
    }

    const CASES: [(&str, &str, &str, Version); 9] = [
        ("p", "hugepage", "advise hugepage", thp::SINCE),
        ("s", "hugepage", "advise hugepage of a shared map", v(4, 8)),
        (
            "s",
            "nohugepage",
            "advise nohugepage of a shared map",
            v(4, 8),
        ),
        (
            "p",
            "willneed",
            "advise willneed of private memory",
            v(3, 9),
        ),
        ("p", "free", "advise free", v(4, 5)),
        ("p", "cold", "advise cold", v(5, 4)),
        ("s", "pageout", "advise pageout", v(5, 4)),
        ("p", "populate", "advise populate", v(5, 14)),
        ("s", "populate-read", "advise populate-read", v(5, 14)),
    ];

    /// The last version of the model before one.
    fn before(version: Version) -> Version {
        let earlier = crate::kernel::versions().iter().filter(|&&it| it < version);
        *earlier.max().expect("the model has older ones")
    }
}
