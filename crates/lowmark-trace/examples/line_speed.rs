//! How fast lines are found and taken apart: `line_speed FILE [REPEATS]`.
//!
//! Twice for each repeat: from memory, which is finding and parsing alone, and from the file with all that
//! opening it takes; `-` reads standard input, once.

use lowmark_trace::input::{Input, InputError, Kind, Lines, TextKind};
use lowmark_trace::text::{Line, parse_raw};
use std::io::Read;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: line_speed FILE [REPEATS]")?;
    let repeats = arguments.next().map_or(Ok(9), |repeats| repeats.parse())?;
    if path == "-" {
        let start = Instant::now();
        print("standard input", start, &count(lines_of(Input::stdin()?)?)?);
        return Ok(());
    }
    let path = Path::new(&path);
    let mut memory = Vec::new();
    Input::open(path)?.into_reader().read_to_end(&mut memory)?;
    for _ in 0..repeats {
        let start = Instant::now();
        print("memory", start, &count(Lines::new("memory", &memory[..]))?);
        let start = Instant::now();
        print("file", start, &count(lines_of(Input::open(path)?)?)?);
    }
    Ok(())
}

struct Counts {
    lines: u64,
    events: u64,
    bytes: u64,
}

fn print(from: &str, start: Instant, counts: &Counts) {
    let elapsed_s = start.elapsed().as_secs_f64();
    println!(
        "{from}: {} lines, {} events: {:.1} M lines/s, {:.0} MB/s",
        counts.lines,
        counts.events,
        counts.lines as f64 / elapsed_s / 1e6,
        counts.bytes as f64 / elapsed_s / 1e6
    );
}

fn lines_of(input: Input) -> Result<Lines<impl Read>, InputError> {
    match input.kind() {
        Kind::Text(kind) if kind != TextKind::Plain => Ok(input.into_lines()),
        _ => Err(input.unrecognised()),
    }
}

/// A sum over the parts keeps them from being optimised away.
fn count(mut lines: Lines<impl Read>) -> Result<Counts, InputError> {
    let (mut count, mut events, mut bytes, mut sum) = (0, 0, 0, 0u64);
    while let Some(line) = lines.next_line()? {
        count += 1;
        bytes += line.bytes.len() as u64 + 1;
        if let Line::Event(event) = parse_raw(&line) {
            events += 1;
            let lengths = event.comm.len() + event.event.len() + event.text.len();
            sum = sum.wrapping_add(lengths as u64 + u64::from(event.pid.unsigned_abs()));
        }
    }
    std::hint::black_box(sum);
    Ok(Counts {
        lines: count,
        events,
        bytes,
    })
}
