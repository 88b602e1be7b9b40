//! Writes the accesses of a zipf replay as a trace that libCacheSim reads (oracleGeneral: per access the
//! time, the object, its size and when it is accessed next).
//!
//! The pages are those that the model's `touch … order = "zipf"` visits in the replay: the same seed, the
//! same stream, the same permutation.
//!
//! `cargo run --release -p lowmark-model --example zipf_trace -- THETA FILE`

#[path = "../benches/cases.rs"]
mod cases;

use cases::{SEED, TASK, ZIPF_ACCESSES, ZIPF_PAGES};
use lowmark_spec::random::{Stream, Zipf};
use std::fs::File;
use std::io::{BufWriter, Error, Write};

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let (Some(theta), Some(path)) = (args.next(), args.next()) else {
        return Err(Error::other("usage: zipf_trace THETA FILE"));
    };
    let theta: f64 = theta.parse().map_err(Error::other)?;
    let pages = pages((theta * 1000.0).round() as u32);
    let mut file = BufWriter::new(File::create(path)?);
    for (time, (page, next)) in pages.iter().zip(next_accesses(&pages)).enumerate() {
        file.write_all(&(time as u32).to_le_bytes())?;
        file.write_all(&u64::from(*page).to_le_bytes())?;
        file.write_all(&1u32.to_le_bytes())?;
        file.write_all(&next.to_le_bytes())?;
    }
    file.flush()
}

/// The pages in order; see `Visit` in the model's `task/touch.rs`.
fn pages(theta_milli: u32) -> Vec<u32> {
    let mut stream = Stream::new(SEED, TASK, 0);
    let mut factor = 1 + stream.below(ZIPF_PAGES);
    while gcd(factor, ZIPF_PAGES) != 1 {
        factor += 1;
    }
    let shift = stream.below(ZIPF_PAGES);
    let ranks = Zipf::new(ZIPF_PAGES, theta_milli);
    (0..ZIPF_ACCESSES)
        .map(|_| ((ranks.draw(&mut stream) * factor + shift) % ZIPF_PAGES) as u32)
        .collect()
}

/// For each access the number of the next one to the same page, counted from 1; -1 if there is none.
fn next_accesses(pages: &[u32]) -> Vec<i64> {
    let mut next_of_page = vec![-1; ZIPF_PAGES as usize];
    let mut next: Vec<i64> = pages
        .iter()
        .enumerate()
        .rev()
        .map(|(at, &page)| std::mem::replace(&mut next_of_page[page as usize], at as i64 + 1))
        .collect();
    next.reverse();
    next
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
