//! Reads a trace.dat or perf.data and prints what it holds and how fast it was read.
//!
//! `cargo run --release -p lowmark-trace --example decode_speed -- FILE [ROUNDS]`

use lowmark_trace::perf_data::PerfData;
use lowmark_trace::record::{Accounting, Error, RawRecord};
use lowmark_trace::trace_dat::TraceDat;
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Seek};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or("usage: decode_speed FILE [ROUNDS]")?;
    let rounds: u32 = arguments.next().map_or(Ok(20), |text| text.parse())?;
    // From memory, so that the disk is not measured.
    let bytes = std::fs::read(path)?;
    let source = || Cursor::new(bytes.as_slice());
    let mut opening = Duration::ZERO;
    let mut reading = Duration::ZERO;
    let mut last = (Accounting::default(), BTreeMap::new());
    for _ in 0..rounds {
        let start = Instant::now();
        let mut file = File::open(source())?;
        opening += start.elapsed();
        let start = Instant::now();
        last = file.read()?;
        reading += start.elapsed();
    }
    let (account, by_event) = last;
    let rate = account.records as f64 * f64::from(rounds) / reading.as_secs_f64() / 1e6;
    println!("{by_event:#?}\n{account:#?}");
    println!(
        "opened in {:.2} ms; {} records at {rate:.1} million/s",
        opening.as_secs_f64() * 1e3 / f64::from(rounds),
        account.records,
    );
    Ok(())
}

enum File<S> {
    TraceDat(TraceDat<S>),
    PerfData(PerfData<S>),
}

impl<S: Read + Seek> File<S> {
    fn open(mut source: S) -> Result<Self, Error> {
        let mut first = [0];
        let is_trace_dat = source.read(&mut first).is_ok() && first == [0x17];
        Ok(if is_trace_dat {
            File::TraceDat(TraceDat::open(source)?)
        } else {
            File::PerfData(PerfData::open(source)?)
        })
    }

    fn read(&mut self) -> Result<(Accounting, BTreeMap<String, u64>), Error> {
        let mut counts = vec![0u64; 1 << 16];
        let mut count = |record: RawRecord<'_>| {
            counts[usize::from(record.event)] += 1;
            ControlFlow::Continue(())
        };
        let (account, formats) = match self {
            File::TraceDat(file) => (file.for_each(&mut count)?, file.formats().clone()),
            File::PerfData(file) => (file.for_each(&mut count)?, file.formats().clone()),
        };
        let ids = (0..=u16::MAX).filter(|id| counts[usize::from(*id)] > 0);
        let by_event = ids.map(|id| {
            let name = formats
                .get(id)
                .map_or_else(|| format!("event {id}"), |f| f.name.clone());
            (name, counts[usize::from(id)])
        });
        let by_event = by_event.collect();
        Ok((account, by_event))
    }
}
