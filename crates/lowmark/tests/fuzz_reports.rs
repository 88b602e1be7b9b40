//! The fuzz targets of reports without a fuzzer, on stable Rust: the committed corpus of `fuzz/` and a fixed number
//! of mutations of it, of which half change a number. See `docs/fuzzing.md`; the readers have a test of this kind
//! in `lowmark-trace`.

// What is public for the crate of the fuzz targets is not seen from outside of a test.
#[path = "../../../tests/random.rs"]
mod random;
#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/reports.rs"]
mod reports;

use random::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// Every input is reported on a second time.
const SECOND_TIME_EVERY: u8 = 1;

/// Longest execution of an input of some kilobytes, with room for a loaded machine.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Longest mutated input, bytes.
const INPUT_MAX: usize = 8 << 10;

#[test]
fn report() {
    smoke("report", 400);
}

#[test]
fn export() {
    smoke("export", 150);
}

#[test]
fn recording() {
    smoke("recording", 300);
}

/// Replays the corpus of a target and so many mutations of it, times what `LOWMARK_FUZZ_ROUNDS` says.
fn smoke(name: &str, executions: u64) {
    let rounds = std::env::var("LOWMARK_FUZZ_ROUNDS").ok();
    let rounds: u64 = rounds.map_or(1, |rounds| rounds.parse().expect("a number of rounds"));
    let target = reports::TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = target.expect("a target");
    let corpus = corpus(name);
    let run = |input: &[u8]| {
        let begin = Instant::now();
        let done = catch_unwind(AssertUnwindSafe(|| target(input, &mut |_| {})));
        let took = begin.elapsed();
        let shown = || String::from_utf8_lossy(input).escape_debug().to_string();
        assert!(done.is_ok(), "{name} fails with {}", shown());
        assert!(took < TIME_MAX, "{name} takes {took:?} with {}", shown());
        took
    };
    let mut slowest = Duration::ZERO;
    for input in &corpus {
        slowest = slowest.max(run(input));
    }
    let mut random = Random(name.len() as u64);
    for _ in 0..executions * rounds {
        let mut input = corpus[random.below(corpus.len())].clone();
        for _ in 0..=random.below(3) {
            mutate(&mut input, &corpus, &mut random);
        }
        input.truncate(INPUT_MAX);
        slowest = slowest.max(run(&input));
    }
    println!("{name}: {} files, slowest {slowest:?}", corpus.len());
}

/// The committed inputs of a target, in the order of their names.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let entries = std::fs::read_dir(directory.join(name)).expect("a corpus");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{name} has no corpus");
    let inputs = paths
        .iter()
        .map(|path| std::fs::read(path).expect("readable"));
    inputs.collect()
}

fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len() + 1);
    match random.below(8) {
        0 => input.truncate(at),
        1 => input
            .iter_mut()
            .skip(at)
            .take(1)
            .for_each(|byte| *byte = random.next() as u8),
        2 => {
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len() + 1);
            input.splice(at.., other[from..].iter().copied());
        }
        3 => {
            let end = (at + random.below(200)).min(input.len());
            input.extend_from_within(at..end);
        }
        _ => number(input, at, random),
    }
}

/// Makes another number of the next one in the text.
fn number(input: &mut Vec<u8>, at: usize, random: &mut Random) {
    let Some(distance) = input[at..].iter().position(u8::is_ascii_digit) else {
        return;
    };
    let from = at + distance;
    let digits = input[from..].iter().take_while(|b| b.is_ascii_digit());
    let count = digits.count();
    let other = match random.below(4) {
        0 => u64::MAX - random.next() % 3,
        1 => i64::MAX as u64,
        _ => random.next() >> random.below(64),
    };
    input.splice(from..from + count, other.to_string().into_bytes());
}
