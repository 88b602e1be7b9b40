//! Reads traces and prints for each what was understood, and how fast.

use lowmark_record::{Event, Sink, Tables};
use lowmark_trace::input::Input;
use std::path::Path;
use std::time::Instant;

#[derive(Default)]
struct Counter {
    events: u64,
}

impl Sink for Counter {
    fn event(&mut self, event: &Event, _tables: &Tables) {
        self.events += u64::from(std::hint::black_box(event.time_ns) > 0);
    }
}

fn main() {
    for path in std::env::args().skip(1) {
        let start = Instant::now();
        let input = match Input::open(Path::new(&path)) {
            Ok(input) => input,
            Err(error) => {
                println!("{path}: {error}");
                continue;
            }
        };
        let mut counter = Counter::default();
        match lowmark_trace::read(input, &mut counter) {
            Ok(source) => {
                let rate = counter.events as f64 / start.elapsed().as_secs_f64() / 1e6;
                println!(
                    "{path}: {} events, {rate:.2} M/s, {:?}",
                    counter.events, source.account
                );
            }
            Err(error) => println!("{path}: {error}"),
        }
    }
}
