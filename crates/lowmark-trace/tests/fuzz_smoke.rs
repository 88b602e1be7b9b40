//! The fuzz targets of `fuzz/` without a fuzzer, on stable Rust: the committed corpus is replayed, and so are
//! a fixed number of mutations of it. See `docs/fuzzing.md`.
//!
//! 1. The bodies of the targets are those of the fuzzer; what they check is said there.
//! 2. Mutations come from a generator with a fixed seed: a failure is one on every machine. Its input is
//!    printed in full.
//! 3. Memory is bounded for the process: the readers run beside each other in threads, and all of them
//!    together must not exceed [`RESIDENT_MAX`] and [`ADDRESSES_MAX`]. The system tells, for an allocator
//!    that counts cannot be written without `unsafe`.
//! 4. Time is printed, not judged; work is bounded by the targets themselves.
//! 5. What only large inputs show, a small part of a file that is read again and again or kept many times,
//!    no fuzzer meets by chance: `large_inputs_*` are written by hand.

// What is public for the crate of the fuzz targets is not seen from outside of a test.
#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/harness.rs"]
mod harness;
#[path = "../../../tests/random.rs"]
mod random;

use harness::{CANARY, TARGETS, Target};
use lowmark_record::{Account, Event, Sink, Tables};
use lowmark_trace::input::Input;
use lowmark_trace::perf_data::PerfData;
use lowmark_trace::trace_dat::TraceDat;
use random::Random;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Cursor, Read as _, Write as _};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Most memory in use, bytes.
const RESIDENT_MAX: u64 = 256 << 20;
/// Most addresses taken, bytes: memory that was asked for and never touched is among them, and what the
/// allocator sets aside for each thread.
const ADDRESSES_MAX: u64 = 4 << 30;
/// Longest mutated input, bytes.
const INPUT_MAX: usize = 8 << 10;
/// Executions between two looks at the memory.
const BATCH: u64 = 256;

#[test]
fn text_line() {
    smoke("text_line", 40_000);
}

#[test]
fn stream() {
    smoke("stream", 12_000);
}

#[test]
fn trace_dat() {
    smoke("trace_dat", 25_000);
}

#[test]
fn perf_data() {
    smoke("perf_data", 25_000);
}

#[test]
fn format() {
    smoke("format", 40_000);
}

#[test]
fn ring_buffer() {
    smoke("ring_buffer", 100_000);
}

#[test]
fn event_json() {
    smoke("event_json", 40_000);
}

/// The alarm itself: a bug that is planted behind numbers that no file of the corpus holds.
#[test]
fn a_planted_bug_is_found() {
    let corpus = corpus("event_json");
    let words = dictionary("event_json");
    let mut known = BTreeSet::new();
    for input in &corpus {
        harness::event_json(input, &mut |value| {
            known.insert(value);
        });
    }
    let mut planted = |value| assert!(known.contains(&value) || value % 101 != CANARY % 101);
    let mut random = Random(1);
    let found = (0..100_000).any(|_| {
        let input = mutated(&corpus, &words, &mut random);
        execute(harness::event_json, &input, &mut planted).is_err()
    });
    assert!(found, "the canary was not found");
}

/// The pieces of real recordings, whole and cut, through all readers that take files.
#[test]
fn fixtures() {
    let files = [
        &include_bytes!("fixtures/trace.dat.xz")[..],
        include_bytes!("fixtures/perf.data.xz"),
    ];
    for packed in files {
        let mut file = Vec::new();
        let mut decoder = liblzma::read::XzDecoder::new(packed);
        decoder.read_to_end(&mut file).expect("xz");
        for target in [harness::trace_dat, harness::perf_data, harness::stream] {
            target(packed, &mut |_| {});
            for part in 1..=16 {
                target(&file[..file.len() * part / 16], &mut |_| {});
            }
        }
    }
    check_memory("fixtures", 0);
}

/// Each fork copies the name of its maker.
#[test]
fn large_inputs_names_of_tasks() {
    let mut file = b"PERFILE2".to_vec();
    file.extend(16u64.to_le_bytes());
    let mut record = |kind: u32, body: &[u8]| {
        file.extend(kind.to_le_bytes());
        file.extend([0, 0]);
        file.extend((8 + body.len() as u16).to_le_bytes());
        file.extend(body);
    };
    record(64, &attr());
    record(3, &[&[1, 0, 0, 0].repeat(2)[..], &[b'a'; 65_000]].concat());
    for task in 2..60_000u32 {
        let words = [task, 1, task, 1, 0, 0];
        record(7, words.map(u32::to_le_bytes).as_flattened());
    }
    let mut perf = PerfData::open(Cursor::new(file)).expect("a file");
    let account = perf
        .for_each(&mut |_| ControlFlow::Continue(()))
        .expect("readable");
    assert_eq!(account.other["fork"], 59_998);
    assert!(perf.comm(59_999).is_some_and(|name| name.len() <= 64));
    check_memory("forks", 0);
}

/// Many events name one long list of ids as theirs.
#[test]
fn large_inputs_ids_of_events() {
    const ATTRS: u64 = 20_000;
    const IDS: u64 = 400_000;
    let attr = [attr(), words(&[104, 8 * IDS])].concat();
    let (size, ids) = (attr.len() as u64 * ATTRS, words(&[7]).repeat(IDS as usize));
    let header = [
        104,
        attr.len() as u64,
        104 + 8 * IDS,
        size,
        104,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    ];
    let file = [
        b"PERFILE2",
        words(&header).as_slice(),
        &ids,
        &attr.repeat(ATTRS as usize),
    ]
    .concat();
    let error = PerfData::open(Cursor::new(file))
        .err()
        .expect("forged")
        .to_string();
    assert!(error.contains("the number of ids"), "{error}");
}

/// Options whose next ones are they themselves; and many, a megabyte of nothing in a kilobyte each.
#[test]
fn large_inputs_chains_of_options() {
    let option = [&[99, 0, 0, 0, 0x10, 0][..], &[0; 1 << 20]].concat();
    for (sections, last, expected) in [
        (1, Some(0), "a ring"),
        (3, Some(1), "a ring"),
        (10, None, "the size of all options"),
    ] {
        let mut file = b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0zlib\x001.2\0".to_vec();
        let mut places = vec![file.len() + 8];
        file.extend(words(&[places[0] as u64]));
        for number in 0..sections {
            let room = 64 << 10;
            let place = places[number];
            let back = last
                .filter(|_| number + 1 == sections)
                .map(|index| places[index]);
            let next = back.unwrap_or(place + room) as u64;
            let body = [option.repeat(7), vec![0, 0, 8, 0, 0, 0], words(&[next])].concat();
            let packed = zlib(&body);
            file.extend(words(&[1 << 16, packed.len() as u64]));
            file.extend((packed.len() as u32).to_le_bytes());
            file.extend((body.len() as u32).to_le_bytes());
            file.extend(packed);
            assert!(file.len() <= place + room);
            file.resize(place + room, 0);
            places.push(place + room);
        }
        let error = TraceDat::open(Cursor::new(file));
        let error = error.err().expect("forged").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// What is kept of a line is not as long as the line.
#[test]
fn large_inputs_long_names() {
    struct Longest(usize);
    impl Sink for Longest {
        fn event(&mut self, event: &Event, tables: &Tables) {
            let actor = tables.actor(event.task).expect("a task");
            self.0 = self.0.max(actor.name.len());
        }
    }
    let long = "x".repeat(100_000);
    let text = format!(
        "{long}-1 [000] d..1. 1.0: mm_vmscan_kswapd_sleep: nid=0\n\
         a-1 [000] d..1. 1.0: {long}: nid=0\n\
         CPU:0 [LOST {max} EVENTS]\nCPU:0 [LOST {max} EVENTS]\n",
        max = u64::MAX
    );
    let input = Input::from_reader("text", Cursor::new(text)).expect("a text");
    let mut longest = Longest(0);
    let account: Account = lowmark_trace::read(input, &mut longest)
        .expect("a trace")
        .account;
    assert_eq!((account.understood, account.lost), (1, u64::MAX));
    assert!(longest.0 <= 64);
    assert!(account.not_understood.keys().all(|kind| kind.len() <= 100));
}

/// A tracepoint with task, time and record.
fn attr() -> Vec<u8> {
    words(&[2 | 64 << 32, 600, 1, 1 << 1 | 1 << 2 | 1 << 10, 0, 0, 0, 0])
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn memory_is_seen() {
    let block = std::hint::black_box(vec![1u8; 48 << 20]);
    if let Some(memory) = memory() {
        assert!(memory.resident >= block.len() as u64);
        assert!(memory.addresses >= memory.resident);
    }
}

/// Replays the corpus of a target and so many mutations of it, times what `LOWMARK_FUZZ_ROUNDS` says.
fn smoke(name: &str, executions: u64) {
    let rounds = std::env::var("LOWMARK_FUZZ_ROUNDS").ok();
    let rounds: u64 = rounds.map_or(1, |rounds| rounds.parse().expect("a number of rounds"));
    let executions = executions * rounds;
    let (_, target) = TARGETS[TARGETS
        .iter()
        .position(|(known, _)| *known == name)
        .expect("a target")];
    let corpus = corpus(name);
    let words = dictionary(name);
    let mut slowest = Duration::ZERO;
    let mut run = |input: &[u8]| {
        let begin = Instant::now();
        if execute(target, input, &mut |_| {}).is_err() {
            panic!(
                "{name} fails with {} bytes: {}",
                input.len(),
                escaped(input)
            );
        }
        slowest = slowest.max(begin.elapsed());
    };
    corpus.iter().for_each(|input| run(input));
    check_memory(name, 0);
    let mut random = Random(name.len() as u64);
    for number in 1..=executions {
        run(&mutated(&corpus, &words, &mut random));
        if number % BATCH == 0 {
            check_memory(name, number);
        }
    }
    check_memory(name, executions);
    let (files, slowest) = (corpus.len(), slowest.as_micros());
    let peak = memory().map_or(0, |memory| memory.resident >> 20);
    println!(
        "{name}: {files} files, {executions} mutations, slowest {slowest} us, {peak} MiB in all"
    );
}

fn check_memory(what: &str, executions: u64) {
    let Some(memory) = memory() else {
        return;
    };
    let used = [memory.resident, memory.addresses];
    let fits = memory.resident <= RESIDENT_MAX && memory.addresses <= ADDRESSES_MAX;
    assert!(fits, "{what}: {used:?} bytes after {executions} executions");
}

fn execute(
    target: Target,
    input: &[u8],
    look: &mut dyn FnMut(u64),
) -> Result<(), Box<dyn std::any::Any + Send>> {
    catch_unwind(AssertUnwindSafe(|| target(input, look)))
}

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The committed inputs of a target, in the order of their names.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let directory = fuzz().join("corpus").join(name);
    let entries = std::fs::read_dir(directory).expect("a corpus");
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

/// The words of a target's dictionary: lines `"text"` with `\xNN`.
fn dictionary(name: &str) -> Vec<Vec<u8>> {
    let path = fuzz().join("dictionaries").join(format!("{name}.dict"));
    let text = std::fs::read_to_string(path).expect("a dictionary");
    let quoted = text
        .lines()
        .filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
    quoted.map(unescaped).collect()
}

fn unescaped(word: &str) -> Vec<u8> {
    let mut parts = word.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).expect("two digits"));
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}

/// An input as `printf` takes it.
fn escaped(input: &[u8]) -> String {
    let mut text = String::new();
    for byte in input {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\x{byte:02x}");
    }
    text
}

/// One of the corpus with one to four changes.
fn mutated(corpus: &[Vec<u8>], words: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(4) {
        mutate(&mut input, corpus, words, random);
    }
    input.truncate(INPUT_MAX);
    input
}

fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let length = random.below(16.min(input.len() - at) + 1);
    let range = at..at + length;
    match random.below(9) {
        0 => input
            .iter_mut()
            .skip(at)
            .take(1)
            .for_each(|byte| *byte ^= 1 << random.below(8)),
        1 => input
            .iter_mut()
            .skip(at)
            .take(1)
            .for_each(|byte| *byte = random.next() as u8),
        2 => drop(input.drain(range)),
        3 => drop(input.splice(at..at, (0..=random.below(8)).map(|_| random.next() as u8))),
        4 => input.extend_from_within(range),
        5 => input.truncate(at),
        6 => {
            // A part of another file instead of the rest, or of a few bytes.
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len() + 1);
            let end = if random.below(2) == 0 {
                input.len()
            } else {
                range.end
            };
            input.splice(at..end, other[from..].iter().copied());
        }
        7 => {
            let word = &words[random.below(words.len())];
            let end = if random.below(2) == 0 {
                at
            } else {
                (at + word.len()).min(input.len())
            };
            input.splice(at..end, word.iter().copied());
        }
        _ => {
            // Numbers: digits where there are some, else a word of small or large value.
            let digits = input.iter().skip(at).position(u8::is_ascii_digit);
            match digits
                .map(|distance| at + distance)
                .filter(|_| random.below(2) == 0)
            {
                Some(from) => {
                    let is_digit = |byte: &&u8| byte.is_ascii_digit();
                    let count = input[from..].iter().take_while(is_digit).count();
                    let number = random.next() >> random.below(64);
                    input.splice(from..from + count, number.to_string().into_bytes());
                }
                None => {
                    let number = (random.next() >> random.below(64)).to_le_bytes();
                    let end = (at + 8).min(input.len());
                    input[at..end].copy_from_slice(&number[..end - at]);
                }
            }
        }
    }
}

/// The most that this process has used so far, bytes.
struct Memory {
    resident: u64,
    addresses: u64,
}

/// None where the system does not tell.
fn memory() -> Option<Memory> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = |name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    Some(Memory {
        resident: kib("VmHWM:")? << 10,
        addresses: kib("VmPeak:")? << 10,
    })
}
