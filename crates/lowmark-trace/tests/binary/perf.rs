//! perf.data files written here: file and pipe, compressed, of both byte orders.

use crate::trace::{Seen, seen};
use crate::writer::{Bytes, EVENT, Machine, PC, tracing_data};
use lowmark_trace::perf_data::PerfData;
use lowmark_trace::record::{Accounting, Endian, Error};
use std::io::Cursor;
use std::ops::ControlFlow;

const BIG: Machine = Machine {
    endian: Endian::Big,
    long: 8,
};
/// TID, TIME, ID, CPU, RAW.
const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 6 | 1 << 7 | 1 << 10;
const IDENTIFIER: u64 = 1 << 16;

pub(crate) fn read(file: &[u8]) -> Result<(Vec<Seen>, Accounting), Error> {
    let mut perf = PerfData::open(Cursor::new(file))?;
    let (formats, endian) = (perf.formats().clone(), perf.endian());
    let mut all = Vec::new();
    let account = perf.for_each(&mut |record| {
        all.push(seen(&record, &formats, endian));
        ControlFlow::Continue(())
    })?;
    Ok((all, account))
}

fn record(file: &mut Bytes, kind: u32, body: &[u8]) {
    file.u32(kind).u16(0).u16(body.len() as u16 + 8).raw(body);
}

fn bytes(machine: Machine) -> Bytes {
    Bytes::new(machine.endian)
}

/// An attr of a tracepoint, or of another kind.
fn attr(machine: Machine, kind: u32, sample_type: u64) -> Vec<u8> {
    let sample_id_all = match machine.endian {
        Endian::Little => 1 << 18,
        Endian::Big => 1 << 45,
    };
    let mut attr = bytes(machine);
    attr.u32(kind)
        .u32(64)
        .u64(EVENT.into())
        .u64(1)
        .u64(sample_type)
        .u64(0)
        .u64(sample_id_all);
    attr.u64(0).u64(0);
    attr.bytes
}

fn sample(machine: Machine, time: u64, cpu: u32, tid: u32, nid: u32) -> Vec<u8> {
    let mut body = bytes(machine);
    body.u32(tid).u32(tid).u64(time).u64(100).u32(cpu).u32(0);
    body.u32(12).u16(EVENT).u16(0).u32(tid).u32(nid);
    body.bytes
}

/// The trailer of what is no sample.
fn trailer(body: &mut Bytes, time: u64) -> &mut Bytes {
    body.u32(0).u32(0).u64(time).u64(100).u32(0).u32(0)
}

fn comm(machine: Machine, time: u64, tid: u32, name: &[u8; 8]) -> Vec<u8> {
    let mut body = bytes(machine);
    body.u32(tid).u32(tid).raw(name);
    trailer(&mut body, time);
    body.bytes
}

/// Records in the order of perf: CPU after CPU, round after round.
fn records(machine: Machine) -> Bytes {
    let mut data = bytes(machine);
    let mut fork = bytes(machine);
    fork.u32(8).u32(7).u32(8).u32(7).u64(1500);
    trailer(&mut fork, 1500);
    let mut lost = bytes(machine);
    lost.u64(100).u64(3);
    record(&mut data, 3, &comm(machine, 900, 7, b"shell\0\0\0"));
    record(&mut data, 9, &sample(machine, 1000, 0, 7, 0));
    record(&mut data, 9, &sample(machine, 2000, 0, 8, 1));
    record(&mut data, 7, &fork.bytes);
    record(&mut data, 9, &sample(machine, 1001, 1, 7, 2));
    record(&mut data, 68, &[]);
    record(&mut data, 3, &comm(machine, 2500, 8, b"worker\0\0"));
    record(&mut data, 9, &sample(machine, 3000, 0, 8, 3));
    record(&mut data, 2, trailer(&mut lost, 3000).bytes.as_slice());
    record(&mut data, 9, &sample(machine, 1999, 1, 9, 4));
    record(&mut data, 68, &[]);
    record(&mut data, 9, &sample(machine, 4000, 1, 8, 5));
    data
}

fn file(machine: Machine, attrs: &[Vec<u8>], data: &[u8]) -> Vec<u8> {
    let mut file = bytes(machine);
    file.raw(match machine.endian {
        Endian::Little => b"PERFILE2",
        Endian::Big => b"2ELIFREP",
    });
    let attrs_size = 80 * attrs.len() as u64;
    let ids = 104 + attrs_size;
    let start = ids + 8 * attrs.len() as u64;
    file.u64(104)
        .u64(80)
        .u64(104)
        .u64(attrs_size)
        .u64(start)
        .u64(data.len() as u64);
    file.u64(0).u64(0).u64(1 << 1 | 1 << 3).u64(0).u64(0).u64(0);
    for (index, attr) in attrs.iter().enumerate() {
        file.raw(attr).u64(ids + 8 * index as u64).u64(8);
    }
    for index in 0..attrs.len() {
        file.u64(100 + index as u64);
    }
    file.raw(data);
    let formats = tracing_data(machine);
    let place = file.len() as u64 + 32;
    file.u64(place)
        .u64(formats.len() as u64)
        .u64(0)
        .u64(0)
        .raw(&formats);
    file.bytes
}

fn pipe(machine: Machine, data: &[u8]) -> Vec<u8> {
    let mut file = bytes(machine);
    file.raw(match machine.endian {
        Endian::Little => b"PERFILE2",
        Endian::Big => b"2ELIFREP",
    });
    file.u64(16);
    let mut body = bytes(machine);
    body.raw(&attr(machine, 2, SAMPLE_TYPE)).u64(100);
    record(&mut file, 64, &body.bytes);
    let formats = tracing_data(machine);
    let size = formats.len().next_multiple_of(8);
    let mut body = bytes(machine);
    body.u32(size as u32);
    record(&mut file, 66, &body.bytes);
    file.raw(&formats).raw(&vec![0; size - formats.len()]);
    file.raw(data);
    file.bytes
}

/// The same records as a zstd stream, cut into records anywhere.
fn compressed(machine: Machine, kind: u32) -> Bytes {
    let packed = zstd::bulk::compress(&records(machine).bytes, 3).expect("memory");
    let mut data = bytes(machine);
    for piece in packed.chunks(50) {
        let mut body = bytes(machine);
        if kind == 83 {
            body.u64(piece.len() as u64);
        }
        body.raw(piece);
        if kind == 83 {
            body.align(8);
        }
        record(&mut data, kind, &body.bytes);
    }
    data
}

fn tracepoint(machine: Machine) -> Vec<Vec<u8>> {
    vec![attr(machine, 2, SAMPLE_TYPE)]
}

pub(crate) fn all_files() -> Vec<Vec<u8>> {
    [PC, BIG]
        .into_iter()
        .flat_map(|machine| {
            let attrs = tracepoint(machine);
            [
                file(machine, &attrs, &records(machine).bytes),
                file(machine, &attrs, &compressed(machine, 81).bytes),
                file(machine, &attrs, &compressed(machine, 83).bytes),
                pipe(machine, &records(machine).bytes),
            ]
        })
        .collect()
}

#[test]
fn all_kinds_of_files_give_the_same_in_order_of_time() {
    let name = |text: &str| Some(text.to_owned());
    for file in all_files() {
        let (seen, account) = read(&file).expect("a file");
        let expected = [
            (1000, 0, 7, 0, name("shell")),
            (1001, 1, 7, 2, name("shell")),
            (1999, 1, 9, 4, None),
            (2000, 0, 8, 1, name("shell")),
            (3000, 0, 8, 3, name("worker")),
            (4000, 1, 8, 5, name("worker")),
        ];
        assert_eq!(seen, expected);
        assert_eq!(
            (account.records, account.lost_events, account.unsorted),
            (6, 3, 0)
        );
        assert_eq!((account.damaged, &account.truncated), (0, &None));
        assert_eq!(
            (account.other["comm"], account.other["finished_round"]),
            (2, 2)
        );
    }
}

#[test]
fn samples_of_other_events_are_told_apart_by_id_and_counted() {
    let mut data = bytes(PC);
    record(&mut data, 9, &sample(PC, 1000, 0, 7, 0));
    let mut other = bytes(PC);
    other.u32(7).u32(7).u64(1001).u64(101).u32(0).u32(0).u32(0);
    record(&mut data, 9, &other.bytes);
    let attrs = [attr(PC, 2, SAMPLE_TYPE), attr(PC, 1, SAMPLE_TYPE)];
    let (seen, account) = read(&file(PC, &attrs, &data.bytes)).expect("a file");
    assert_eq!(seen.len(), 1);
    assert_eq!(account.other["sample of an event of type 1"], 1);

    // Of different layouts, by an id that comes first.
    let mut data = bytes(PC);
    let mut body = bytes(PC);
    body.u64(100).raw(&sample(PC, 1000, 0, 7, 0));
    record(&mut data, 9, &body.bytes);
    let mut body = bytes(PC);
    body.u64(101).u64(5);
    record(&mut data, 9, &body.bytes);
    let attrs = [
        attr(PC, 2, SAMPLE_TYPE | IDENTIFIER),
        attr(PC, 0, IDENTIFIER | 1 << 2),
    ];
    let (seen, account) = read(&file(PC, &attrs, &data.bytes)).expect("a file");
    assert_eq!((seen.len(), account.damaged), (1, 0));
    let attrs = [attr(PC, 2, SAMPLE_TYPE), attr(PC, 0, 1 << 2)];
    let error = read(&file(PC, &attrs, &data.bytes))
        .expect_err("not told apart")
        .to_string();
    assert!(error.contains("different layouts"), "{error}");
}

#[test]
fn an_interrupted_recording_gives_its_records_without_formats() {
    let data = records(PC).bytes;
    let whole = file(PC, &tracepoint(PC), &data);
    let mut interrupted = whole[..192 + data.len()].to_vec();
    interrupted[48..56].fill(0);
    let (seen, account) = read(&interrupted).expect("a file");
    assert_eq!((seen.len(), seen[0].3), (6, -99));
    let flaw = account.truncated.expect("said");
    assert!(
        flaw.what.contains("perf record was interrupted"),
        "{}",
        flaw.what
    );

    let (seen, account) = read(&whole[..150 + data.len()]).expect("a file");
    assert_eq!(seen.len(), 5);
    assert_eq!(
        account.truncated.map(|flaw| flaw.offset),
        Some(150 + data.len() as u64)
    );
}

#[test]
fn errors_say_where_and_what_was_expected() {
    let error = |file: &[u8]| read(file).expect_err("no perf.data").to_string();
    assert!(error(b"\x17\x08\x44tracing6").contains("expected the magic of a perf.data"));
    let whole = file(PC, &tracepoint(PC), &[]);
    let with = |at: usize, value: u64| {
        let mut file = whole.clone();
        file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        error(&file)
    };
    assert!(
        with(16, 0).contains("offset 16: expected the size of an attr"),
        "{}",
        with(16, 0)
    );
    assert!(
        with(32, 0).contains("at least one event"),
        "{}",
        with(32, 0)
    );
    assert!(with(32, u64::MAX).contains("the number of attrs is given as"));
    assert!(
        with(176, u64::MAX).contains("the number of ids is given as"),
        "{}",
        with(176, u64::MAX)
    );
    assert!(error(&whole[..60]).contains("cut short"));
}
