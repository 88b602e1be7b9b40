//! What `docs/workloads.md` says of who carries a statement out is what the backends say.

use lowmark_spec::{BuiltIn, Overrides, STATEMENTS, Source, Workload, parse};

const REFERENCE: &str = include_str!("../../../../docs/workloads.md");
const IN_PART: &str = "model in part, guest";

/// A workload with a statement, and all that the examples of the reference name. `task` says more of its task.
fn workload(statement: &str, task: &str) -> Workload {
    let map = if statement.starts_with("{ map = ") {
        ""
    } else {
        "{ map = \"m\", kind = \"anon-private\", size = \"1G\" }, \
         { map = \"f\", kind = \"file-shared\", file = \"data\" }, "
    };
    let map = if statement.starts_with("{ free = ") {
        "{ alloc = \"pages\", order = 9, gfp = \"hugetlb\" }, "
    } else {
        map
    };
    let statement = if statement.starts_with("{ probe = ") {
        format!("{{ sample = \"fault\", do = [{statement}] }}")
    } else {
        statement.to_owned()
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
        [cgroup.box]
        max = "512M"
        [file.data]
        size = "1G"
        [file.out]
        exists = false
        size = "1G"
        [fileset.tree]
        files = 100
        size = "64K"
        [barrier.start]
        parties = 1
        [task.main]
        {task}
        run = [ {map} {statement}, {{ barrier = "start" }}, {{ spawn = "worker" }} ]
        [task.worker]
        processes = 8
        start = "spawned"
        run = [ {{ sleep = "1s" }} ]
        "#
    );
    let source = Source {
        name: statement,
        text,
    };
    match parse(&source, &BuiltIn, &Overrides::default()) {
        Ok(scenarios) => scenarios[0].workload.clone(),
        Err(error) => panic!("{}", error.render_plain()),
    }
}

/// Which backends carry a workload out, as the reference writes it.
fn backends(workload: &Workload) -> &'static str {
    let on_model = lowmark_model::unsupported(workload).is_empty();
    let in_guests = lowmark_real::runner::unsupported(workload).is_empty();
    match (on_model, in_guests) {
        (true, true) => "model, guest",
        (true, false) => "model",
        (false, true) => "guest",
        (false, false) => "none",
    }
}

/// Rows of statements in part: the statements of each, and who carries them out.
fn parts() -> Vec<(Vec<&'static str>, &'static str)> {
    let begin = REFERENCE.find("| statement | on |\n").expect("a table");
    let rows = REFERENCE[begin..].lines().skip(2);
    let rows = rows.take_while(|line| line.starts_with("| `{"));
    let parts = rows.map(|row| {
        let cells: Vec<&str> = row.split(" | ").collect();
        let statements = cells[0].split('`').filter(|text| text.starts_with("{ "));
        (statements.collect(), cells[1].trim_end_matches(" |"))
    });
    parts.collect()
}

#[test]
fn the_reference_says_who_carries_a_statement_out() {
    for (name, _) in STATEMENTS {
        let heading = format!("| `{name}` | ");
        let row = REFERENCE
            .lines()
            .find_map(|line| line.strip_prefix(&heading));
        let row = row.unwrap_or_else(|| panic!("no row for {name}"));
        let on = row.split(" | ").next().unwrap_or_default();
        if on == IN_PART {
            continue;
        }
        let begin = row.rfind(&format!("`{{ {name} = ")).expect("an example");
        let example = row[begin + 1..].split('`').next().unwrap_or_default();
        assert_eq!(on, backends(&workload(example, "")), "{name}");
    }
}

/// What is carried out in part has an example of what is, and of what is not.
#[test]
fn the_reference_says_what_is_carried_out_in_part() {
    let parts = parts();
    let mut seen = Vec::new();
    for (statements, on) in &parts {
        assert!(!statements.is_empty());
        for statement in statements {
            let workload = workload(statement, "");
            assert_eq!(*on, backends(&workload), "{statement}");
            let name = statement[2..].split(' ').next().unwrap_or_default();
            seen.push((name, lowmark_model::unsupported(&workload).is_empty()));
        }
    }
    for (name, _) in STATEMENTS {
        let row = format!("| `{name}` | {IN_PART} | ");
        let in_part = REFERENCE.lines().any(|line| line.starts_with(&row));
        let both = [true, false]
            .iter()
            .all(|&on_model| seen.contains(&(name, on_model)));
        assert_eq!(in_part, both, "{name}");
    }
    assert_eq!(
        backends(&workload("{ stop_self = true }", "threads = 2")),
        "model"
    );
}

/// Every advice is where the reference says.
#[test]
fn advice_is_taken_as_the_reference_says() {
    let begin = REFERENCE
        .find("| advice | since | effect |")
        .expect("a table");
    let rows = REFERENCE[begin..].lines().skip(2);
    let rows = rows.take_while(|line| line.starts_with("| `"));
    let words = rows.flat_map(|row| {
        let cell = row.trim_start_matches("| ").split(" | ").next();
        cell.unwrap_or_default().split('`').skip(1).step_by(2)
    });
    let words: Vec<&str> = words.collect();
    assert_eq!(words.len(), 12, "{words:?}");
    for advice in words {
        let on = "model, guest";
        let later = format!("{{ advise = \"m\", advice = \"{advice}\" }}");
        let map = format!(
            "{{ map = \"a\", kind = \"anon-private\", size = \"1M\", advice = \"{advice}\" }}"
        );
        for statement in [later, map] {
            assert_eq!(backends(&workload(&statement, "")), on, "{statement}");
        }
    }
}
