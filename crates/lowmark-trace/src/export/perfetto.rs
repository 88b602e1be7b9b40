//! Perfetto's native format, for <https://ui.perfetto.dev> and `trace_processor`.
//!
//! ```text
//!   events ──┬─> bundle.rs   the events themselves, in bundles of one CPU
//!            ├─> stalls.rs   slices on a track `stalls` of each thread
//!            └─> rates.rs    counter tracks: pages scanned and reclaimed, dirty pages
//!   counters ──────────────> counter tracks: free pages, LRU sizes
//!            schema.rs       the messages
//! ```
//!
//! All packets are of one sequence. Times are given as the boot clock's, whatever clock the source had. Which
//! threads make up a process no event says: every thread is shown as a process of its own.

mod bundle;
mod rates;
pub mod schema;
mod stalls;

use super::output::FileOutput;
use super::row::{NO_NAME, actor};
use super::{ExportError, Exported, Exporter, Format, Options};
use bundle::Symbols;
use lowmark_record::event::NO_CPU;
use lowmark_record::{Event, Sink, Tables};
use prost::Message;
use rates::Rates;
use schema::{
    CLOCK_BOOTTIME, CLOCK_MONOTONIC, Clock, ClockSnapshot, CounterDescriptor, Data, FtraceEvent,
    FtraceEventBundle, InternedData, ProcessDescriptor, SEQ_INCREMENTAL_STATE_CLEARED,
    SEQ_NEEDS_INCREMENTAL_STATE, SystemInfo, TYPE_COUNTER, ThreadDescriptor, TracePacket,
    TrackDescriptor, TrackEvent,
};
use stalls::Stalls;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Events of a bundle.
const BUNDLE_EVENTS: usize = 512;

/// Events that wait in all bundles, at most.
const WAITING_EVENTS: usize = 16_384;

/// The sequence of all packets.
const SEQUENCE: u32 = 1;

/// First byte of a packet in the trace: field 1, length-delimited.
const PACKET_TAG: u8 = 0x0a;

/// `UNIT_COUNT`.
const UNIT_COUNT: i32 = 2;

/// What a track is for, in the upper half of its number.
#[derive(Debug, Clone, Copy)]
enum Tracks {
    Process = 1,
    Thread = 2,
    Stalls = 3,
    Counter = 4,
}

impl Tracks {
    fn uuid(self, number: u32) -> u64 {
        (self as u64) << 32 | u64::from(number)
    }
}

/// What the trace knows of a thread.
#[derive(Debug, Clone, Copy, Default)]
struct Thread {
    named: bool,
    stalls: bool,
}

/// The exporter.
pub(super) struct Perfetto {
    out: FileOutput,
    lowmark: String,
    begun: bool,
    /// Events that wait, by CPU.
    bundles: BTreeMap<u32, Vec<FtraceEvent>>,
    waiting: usize,
    symbols: Symbols,
    stalls: Stalls,
    rates: Rates,
    threads: HashMap<i32, Thread>,
    counters: HashMap<String, u64>,
    last_ns: u64,
    exported: Exported,
}

impl Perfetto {
    pub(super) fn create(path: &Path, options: &Options) -> Result<Perfetto, ExportError> {
        Ok(Perfetto {
            out: FileOutput::create(path, Format::Perfetto.name())?,
            lowmark: options.lowmark.clone(),
            begun: false,
            bundles: BTreeMap::new(),
            waiting: 0,
            symbols: Symbols::default(),
            stalls: Stalls::default(),
            rates: Rates::default(),
            threads: HashMap::new(),
            counters: HashMap::new(),
            last_ns: 0,
            exported: Exported::default(),
        })
    }

    /// Writes a packet.
    fn packet(&mut self, timestamp: Option<u64>, flags: u32, data: Data) {
        let symbols = std::mem::take(&mut self.symbols.new);
        let packet = TracePacket {
            timestamp,
            trusted_packet_sequence_id: Some(SEQUENCE),
            interned_data: (!symbols.is_empty()).then_some(InternedData {
                kernel_symbols: symbols,
            }),
            sequence_flags: Some(flags).filter(|flags| *flags != 0),
            data: Some(data),
        };
        let out = &mut self.out.buffer;
        out.push(PACKET_TAG);
        // A vector grows as far as it must.
        let _ = packet.encode_length_delimited(out);
        self.out.flush_if_full();
    }

    /// Writes what stands before everything else, with the time of the first event.
    fn begin(&mut self, time_ns: u64) {
        if self.begun {
            return;
        }
        self.begun = true;
        let clock = |clock_id| Clock {
            clock_id: Some(clock_id),
            timestamp: Some(time_ns),
        };
        let snapshot = ClockSnapshot {
            clocks: vec![clock(CLOCK_BOOTTIME), clock(CLOCK_MONOTONIC)],
            primary_trace_clock: Some(CLOCK_BOOTTIME),
        };
        let snapshot = Data::ClockSnapshot(snapshot);
        self.packet(Some(time_ns), SEQ_INCREMENTAL_STATE_CLEARED, snapshot);
        let info = SystemInfo {
            tracing_service_version: Some(format!("lowmark {}", self.lowmark)),
        };
        self.packet(Some(time_ns), 0, Data::SystemInfo(info));
    }

    fn describe(&mut self, track: TrackDescriptor) {
        self.packet(None, 0, Data::TrackDescriptor(track));
    }

    /// Tells the name of a thread when it is first known.
    fn introduce(&mut self, name: &str, pid: i32) {
        let thread = self.threads.entry(pid).or_default();
        if thread.named || name == NO_NAME {
            return;
        }
        thread.named = true;
        self.describe(TrackDescriptor {
            uuid: Some(Tracks::Process.uuid(pid.cast_unsigned())),
            process: Some(ProcessDescriptor {
                pid: Some(pid),
                process_name: Some(name.to_owned()),
            }),
            ..TrackDescriptor::default()
        });
        self.describe(thread_track(pid, Some(name)));
    }

    fn slices(&mut self, event: &Event, pid: i32, tables: &Tables) {
        let track = Tracks::Stalls.uuid(pid.cast_unsigned());
        let mut slices = Vec::new();
        let names = &tables.names;
        self.stalls.event(event, pid, track, names, |time, slice| {
            slices.push((time, slice))
        });
        if slices.is_empty() {
            return;
        }
        let thread = self.threads.entry(pid).or_default();
        if !thread.stalls {
            thread.stalls = true;
            let named = thread.named;
            if !named {
                self.describe(thread_track(pid, None));
            }
            self.describe(TrackDescriptor {
                uuid: Some(track),
                name: Some("stalls".to_owned()),
                parent_uuid: Some(Tracks::Thread.uuid(pid.cast_unsigned())),
                ..TrackDescriptor::default()
            });
        }
        for (time, slice) in slices {
            self.packet(Some(time), 0, Data::TrackEvent(slice));
        }
    }

    fn write_bundle(&mut self, cpu: u32, event: Vec<FtraceEvent>) {
        self.waiting -= event.len();
        let bundle = FtraceEventBundle {
            cpu: Some(cpu),
            event,
        };
        let bundle = Data::FtraceEvents(bundle);
        self.packet(None, SEQ_NEEDS_INCREMENTAL_STATE, bundle);
    }

    fn write_bundles(&mut self) {
        for (cpu, events) in std::mem::take(&mut self.bundles) {
            self.write_bundle(cpu, events);
        }
    }

    /// The track of a counter, described if it is new.
    fn counter_track(&mut self, name: &str, from_events: bool) -> u64 {
        if let Some(uuid) = self.counters.get(name) {
            return *uuid;
        }
        let uuid = Tracks::Counter.uuid(self.counters.len() as u32);
        self.counters.insert(name.to_owned(), uuid);
        self.describe(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.to_owned()),
            counter: Some(CounterDescriptor {
                unit: Some(UNIT_COUNT),
                unit_name: unit(name, from_events).map(str::to_owned),
            }),
            ..TrackDescriptor::default()
        });
        uuid
    }

    fn value(&mut self, time_ns: u64, name: &str, value: u64, from_events: bool) {
        let track = self.counter_track(name, from_events);
        let value = TrackEvent {
            r#type: Some(TYPE_COUNTER),
            track_uuid: Some(track),
            counter_value: Some(i64::try_from(value).unwrap_or(i64::MAX)),
            ..TrackEvent::default()
        };
        self.packet(Some(time_ns), 0, Data::TrackEvent(value));
        self.exported.counters += 1;
    }

    fn rates(&mut self, tell: impl FnOnce(&mut Rates, &mut dyn FnMut(u64, &'static str, u64))) {
        let mut values = Vec::new();
        tell(&mut self.rates, &mut |time_ns, name, value| {
            values.push((time_ns, name, value));
        });
        for (time_ns, name, value) in values {
            self.value(time_ns, name, value, true);
        }
    }
}

/// The unit of a counter: what `/proc/vmstat` calls `nr_*` is counted in pages, and so is all that events tell.
fn unit(name: &str, from_events: bool) -> Option<&'static str> {
    if name.ends_with("per second") {
        Some("pages/s")
    } else {
        (name.starts_with("nr_") || from_events).then_some("pages")
    }
}

fn thread_track(pid: i32, name: Option<&str>) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(Tracks::Thread.uuid(pid.cast_unsigned())),
        thread: Some(ThreadDescriptor {
            pid: Some(pid),
            tid: Some(i64::from(pid)),
            thread_name: name.map(str::to_owned),
        }),
        ..TrackDescriptor::default()
    }
}

impl Sink for Perfetto {
    fn event(&mut self, event: &Event, tables: &Tables) {
        self.begin(event.time_ns);
        let (name, pid) = actor(tables, event.task);
        // 0 is every CPU's idle task, which no track stands for.
        if let Some(pid) = pid.filter(|pid| *pid > 0) {
            self.introduce(name, pid);
            self.slices(event, pid, tables);
        }
        self.rates(|rates, give| rates.event(event, give));
        let message = bundle::message(event, pid, &tables.names, &mut self.symbols);
        let cpu = if event.cpu == NO_CPU { 0 } else { event.cpu };
        let bundle = self.bundles.entry(cpu).or_default();
        bundle.push(message);
        self.waiting += 1;
        if bundle.len() == BUNDLE_EVENTS {
            let bundle = std::mem::take(bundle);
            self.write_bundle(cpu, bundle);
        } else if self.waiting == WAITING_EVENTS {
            self.write_bundles();
        }
        self.exported.events += 1;
        self.exported.unsorted += u64::from(event.time_ns < self.last_ns);
        self.last_ns = event.time_ns;
    }
}

impl Exporter for Perfetto {
    fn counter(&mut self, time_ns: u64, name: &str, value: u64) {
        self.begin(time_ns);
        self.value(time_ns, name, value, false);
    }

    fn failed(&self) -> bool {
        self.out.failed()
    }

    fn finish(mut self: Box<Self>) -> Result<Exported, ExportError> {
        self.begin(0);
        let mut ends = Vec::new();
        let track = |pid: i32| Tracks::Stalls.uuid(pid.cast_unsigned());
        self.stalls
            .finish(track, |time, end| ends.push((time, end)));
        for (time, end) in ends {
            self.packet(Some(time), 0, Data::TrackEvent(end));
        }
        self.rates(Rates::finish);
        self.write_bundles();
        let (path, bytes) = self.out.finish()?;
        Ok(Exported {
            files: vec![path],
            bytes,
            ..self.exported
        })
    }
}
