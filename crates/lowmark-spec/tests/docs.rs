//! The reference names every statement and parameter, and its examples parse.

use lowmark_spec::workload::Stmt;
use lowmark_spec::{BuiltIn, Overrides, STATEMENTS, Source, parse};

const REFERENCE: &str = include_str!("../../../docs/workloads.md");

#[test]
fn every_statement_and_parameter_is_described() {
    for (name, parameters) in STATEMENTS {
        let heading = format!("| `{name}` |");
        let row = REFERENCE.lines().find(|line| line.starts_with(&heading));
        let row = row.unwrap_or_else(|| panic!("no row for {name}"));
        for parameter in parameters {
            assert!(
                row.contains(&format!("`{parameter}`")),
                "{name} without {parameter}"
            );
        }
        assert!(
            row.contains(&format!("{{ {name} = ")),
            "no example of {name}"
        );
    }
}

/// Blocks that start with the language version are whole files.
#[test]
fn whole_examples_parse() {
    let blocks: Vec<&str> = REFERENCE.split("```").skip(1).step_by(2).collect();
    let files: Vec<&str> = blocks
        .iter()
        .filter_map(|b| b.strip_prefix("toml\n"))
        .filter(|b| b.starts_with("lowmark = 1"))
        .collect();
    assert!(!files.is_empty());
    for text in files {
        let source = Source {
            name: "docs/workloads.md".into(),
            text: text.to_owned(),
        };
        if let Err(error) = parse(&source, &BuiltIn, &Overrides::default()) {
            panic!("{}", error.render_plain());
        }
    }
}

/// The example of each statement parses in a workload that has what the examples name.
#[test]
fn every_example_parses() {
    for (name, _) in STATEMENTS {
        let heading = format!("| `{name}` |");
        let row = REFERENCE
            .lines()
            .find(|line| line.starts_with(&heading))
            .unwrap_or_default();
        let begin = row
            .rfind(&format!("`{{ {name} = "))
            .map(|at| at + 1)
            .unwrap_or_default();
        let example = row
            .get(begin..)
            .and_then(|rest| rest.split('`').next())
            .unwrap_or_default();
        let first = if name == "map" {
            ""
        } else {
            "{ map = \"m\", kind = \"anon-private\", size = \"1G\" }, "
        };
        let first = if name == "free" {
            "{ alloc = \"pages\" }, "
        } else {
            first
        };
        let example = if name == "probe" {
            format!("{{ sample = \"fault\", do = [{example}] }}")
        } else {
            example.to_owned()
        };
        let text = format!(
            r#"
            lowmark = 1
            [workload]
            name = "example"
            end = {{ after = "60s" }}
            [machine]
            use = "server-64g-2node"
            [kernel]
            use = "v4.4"
            [file.data]
            size = "1G"
            [file.out]
            exists = false
            size = "1G"
            [fileset.tree]
            directories = 10
            files = 100
            size = "64K"
            [cgroup.box]
            max = "512M"
            [barrier.start]
            parties = 1
            [task.main]
            run = [ {first} {example}, {{ barrier = "start" }}, {{ spawn = "worker" }} ]
            [task.worker]
            processes = 8
            start = "spawned"
            run = [ {{ sleep = "1s" }} ]
            "#
        );
        let source = Source {
            name: format!("example of {name}"),
            text,
        };
        match parse(&source, &BuiltIn, &Overrides::default()) {
            Ok(scenarios) => {
                assert!(
                    has(&scenarios[0].workload.tasks[0].instances[0], name),
                    "{name}"
                );
            }
            Err(error) => panic!("{}{example}", error.render_plain()),
        }
    }
}

/// Whether a statement of this name is in a body.
fn has(body: &[Stmt], name: &str) -> bool {
    let inside = |statement: &Stmt| {
        statement
            .op
            .bodies()
            .into_iter()
            .any(|body| has(body, name))
    };
    body.iter()
        .any(|statement| statement.op.name() == name || inside(statement))
}
