//! No text makes the parser panic, run away or recurse without end.

use std::path::Path;

use lowmark_spec::{
    BuiltIn, KernelSpec, Overrides, SOURCE_BYTES_MAX, Source, parse, parse_machine,
};
use proptest::prelude::*;

fn parse_any(text: &str, overrides: &Overrides) -> Option<String> {
    let source = Source {
        name: "any.toml".into(),
        text: text.to_owned(),
    };
    let machine = parse_machine(&source)
        .err()
        .map(|error| error.render_plain());
    let workload = parse(&source, &BuiltIn, overrides)
        .err()
        .map(|error| error.render_plain());
    workload.or(machine)
}

/// All files that come with lowmark, as a ground for mutations.
fn valid_files() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = Vec::new();
    for directory in ["workloads", "machines", "crates/lowmark-spec/tests/broken"] {
        for entry in std::fs::read_dir(root.join(directory)).expect("the directory exists") {
            let path = entry.expect("readable").path();
            // Those that fill the budget are slow by intention.
            let slow = ["thpscale", "too-large"]
                .iter()
                .any(|s| path.ends_with(format!("{s}.toml")));
            if path.extension().is_some_and(|e| e == "toml") && !slow {
                texts.push(std::fs::read_to_string(path).expect("readable"));
            }
        }
    }
    texts.sort();
    texts
}

/// Pieces that mean something to the language, to be put in at random places.
const PIECES: [&str; 40] = [
    "\"",
    "'",
    "{",
    "}",
    "[",
    "]",
    "=",
    ",",
    "\n",
    "$",
    "${",
    "$$",
    "$idx",
    "0",
    "-1",
    "1e9",
    "inf",
    "nan",
    "9999999999999999999999",
    "0.0000000001",
    "\"9999999T\"",
    "1/0",
    "(",
    ")",
    "*",
    "true",
    "1979-05-27",
    "é",
    "\u{0}",
    "zipf(",
    "stride(0)",
    "repeat",
    "do = []",
    "run",
    "idx",
    "use",
    "[for]",
    "\\u0041",
    "#",
    "task",
];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_text(text in ".{0,300}") {
        parse_any(&text, &Overrides::default());
    }

    #[test]
    fn random_expressions(text in "[0-9a-zA-Z$(){}*/+., -]{0,40}") {
        let set = vec![("size".into(), text.clone())];
        let overrides = Overrides { set, kernels: vec![text], ..Overrides::default() };
        let base = include_str!("../../../workloads/swap-small.toml");
        parse_any(base, &overrides);
    }

    #[test]
    fn mutated_files(
        file in any::<prop::sample::Index>(),
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..30_usize, 0..PIECES.len()),
            1..4,
        ),
    ) {
        let files = valid_files();
        let mut text: Vec<char> = file.get(&files).chars().collect();
        for (at, cut, piece) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + cut).min(text.len());
            text.splice(at..end, PIECES[piece].chars());
        }
        parse_any(&text.into_iter().collect::<String>(), &Overrides::default());
    }

    #[test]
    fn kernels(text in "v?[0-9.]{0,6}[+=,a-z-]{0,30}") {
        let _ = KernelSpec::parse(&text);
    }
}

/// A parser that takes time by the square of the length would not end here.
#[test]
fn enormous_files_are_refused() {
    let error = parse_any(&"[".repeat(100 << 20), &Overrides::default());
    assert!(error.is_some_and(|e| e.contains("expected at most 1048576 bytes (1 MiB)")));
    for text in [
        "[", "{", "a=[", "a={b=", "a.", "\"", "[[a]]\n", "a=1\n", "[a.b]\n", "(", "a={",
    ] {
        let text = text.repeat(SOURCE_BYTES_MAX / text.len());
        assert!(parse_any(&text, &Overrides::default()).is_some());
    }
}

/// A small file cannot ask for more memory than the budget allows.
#[test]
fn amplification_is_bounded() {
    let head = "lowmark = 1\n[workload]\nname = \"x\"\n\
                [machine]\nuse = \"small-512m-ssd\"\n[kernel]\nuse = \"v3.6\"\n";
    let unrolled = format!(
        "{head}[task.main]\nrun = [{{ repeat = 1000000, index = \"i\", do = [\
         {{ repeat = 1000000, index = \"j\", do = [{{ sleep = \"1s\" }}] }}] }}]\n"
    );
    let threads = unrolled.replace("repeat = 1000000", "parallel = 4096");
    let copies = format!(
        "{head}{}[task.main]\nrun = [{{ sleep = \"1s\" }}]\n",
        (0..50)
            .map(|i| format!("[file.f{i}x]\ncopies = 100000\nsize = 1\n"))
            .collect::<String>()
    );
    let kernels = head.replace("\"v3.6\"", &format!("[{}]", "\"v3.6\",".repeat(50_000)))
        + "[task.main]\nprocesses = 1000\nrun = [{ sleep = \"1s\" }]\n";
    for text in [unrolled, threads, copies, kernels] {
        let error = parse_any(&text, &Overrides::default()).unwrap_or_default();
        assert!(error.contains("too large"), "{error}");
    }
}
