//! trace.dat files written here: versions, byte orders, compressions, and what pages can hold.

use crate::writer::{Buffer, Codec, Cpu, EVENT, Lost, Machine, PAGE, PC, Page, file_6, file_7};
use lowmark_trace::format::Formats;
use lowmark_trace::record::{Accounting, Endian, Error, RawRecord};
use lowmark_trace::trace_dat::TraceDat;
use std::io::Cursor;
use std::ops::ControlFlow;

/// Time, CPU, pid, nid, name of the task.
pub(crate) type Seen = (u64, u32, i64, i64, Option<String>);

/// What a record says; -99 where it lacks a field.
pub(crate) fn seen(record: &RawRecord<'_>, formats: &Formats, endian: Endian) -> Seen {
    let format = formats.get(record.event);
    let read = |name| {
        let field = format.and_then(|format| format.field(name));
        field
            .and_then(|field| field.read(record.data, endian))
            .unwrap_or(-99)
    };
    (
        record.time_ns,
        record.cpu,
        read("common_pid"),
        read("nid"),
        record.comm.map(str::to_owned),
    )
}

pub(crate) fn read(file: &[u8]) -> Result<(Vec<Seen>, Accounting), Error> {
    let mut trace = TraceDat::open(Cursor::new(file))?;
    let (formats, endian) = (trace.formats().clone(), trace.endian());
    let mut all = Vec::new();
    let account = trace.for_each(&mut |record| {
        all.push(seen(&record, &formats, endian));
        ControlFlow::Continue(())
    })?;
    Ok((all, account))
}

/// Two CPUs of the main buffer and one of an instance, with all that a page can hold.
pub(crate) fn buffers(machine: Machine) -> Vec<Buffer> {
    let page = |time| Page::new(machine, time);
    let cpu0 = vec![
        page(1000)
            .event(10, 7, 0)
            .extend(1 << 30)
            .event(5, 8, 1)
            .finish(Lost::No),
        page(3 << 30)
            .discarded(3)
            .long_event(4, 7, 2)
            .unused(20)
            .finish(Lost::Counted(5)),
        page((3 << 30) + 100)
            .absolute(4 << 30)
            .event(1, 9, 3)
            .finish(Lost::Uncounted),
    ];
    let cpu1 = vec![
        page(1005)
            .event(5, 7, 4)
            .event(0, 7, 5)
            .event(10, 7, 6)
            .finish(Lost::No),
    ];
    let instance = vec![page(500).event(1, 0, 7).event(2000, 7, 8).finish(Lost::No)];
    let cpu = |cpu, pages| Cpu { cpu, pages };
    vec![
        Buffer {
            name: "",
            cpus: vec![cpu(0, cpu0), cpu(1, cpu1)],
        },
        Buffer {
            name: "small",
            cpus: vec![cpu(0, instance), cpu(1, Vec::new())],
        },
    ]
}

fn check(file: &[u8]) {
    let (seen, account) = read(file).expect("a file");
    let (swapd, ab, idle) = (
        Some("kswapd0".into()),
        Some("a b".into()),
        Some("<idle>".into()),
    );
    let expected = [
        (501, 0, 0, 7, idle),
        (1010, 0, 7, 0, swapd.clone()),
        (1010, 1, 7, 4, swapd.clone()),
        (1010, 1, 7, 5, swapd.clone()),
        (1020, 1, 7, 6, swapd.clone()),
        (2501, 0, 7, 8, swapd.clone()),
        ((1 << 30) + 1015, 0, 8, 1, ab),
        ((3 << 30) + 7, 0, 7, 2, swapd),
        ((4 << 30) + 1, 0, 9, 3, None),
    ];
    assert_eq!(seen, expected);
    let expected = Accounting {
        records: 9,
        lost_events: 5,
        gaps_uncounted: 1,
        padding: 2,
        time_markers: 2,
        ..Accounting::default()
    };
    assert_eq!(account, expected);
}

pub(crate) const MACHINES: [Machine; 4] = [
    PC,
    Machine {
        endian: Endian::Little,
        long: 4,
    },
    Machine {
        endian: Endian::Big,
        long: 8,
    },
    Machine {
        endian: Endian::Big,
        long: 4,
    },
];

#[test]
fn version_6_of_any_machine() {
    for machine in MACHINES {
        check(&file_6(machine, &buffers(machine), &[]));
    }
}

#[test]
fn version_7_of_any_machine_and_compression() {
    for machine in MACHINES {
        for codec in [Codec::None, Codec::Zlib, Codec::Zstd] {
            check(&file_7(machine, codec, &buffers(machine)));
        }
    }
}

#[test]
fn options_shift_time_and_tell_of_losses() {
    let options: [(u16, &[u8]); 5] = [
        (2, b"CPU: 0\nentries: 1\noverrun: 12\ndropped events: 3\n\0"),
        (4, b"local global [mono] boot\0"),
        (5, b"Linux host 6.18.44 x86_64\0"),
        (7, b"-1000\0"),
        (99, b"what is this"),
    ];
    let file = file_6(PC, &buffers(PC), &options);
    let (seen, account) = read(&file).expect("a file");
    assert_eq!(seen[1].0, 10);
    assert_eq!(account.overwritten, 15);
    let trace = TraceDat::open(Cursor::new(&file)).expect("a file");
    assert_eq!(trace.version(), 6);
    assert_eq!(trace.options().clock, "mono");
    assert_eq!(
        trace.options().uname.as_deref(),
        Some("Linux host 6.18.44 x86_64")
    );
    assert_eq!(trace.options().skipped.get(&99), Some(&1));
    assert_eq!(trace.comm(8), Some("a b"));
    let names: Vec<_> = trace
        .buffers()
        .iter()
        .map(|buffer| buffer.name.as_str())
        .collect();
    assert_eq!(names, ["", "small"]);
    assert_eq!(
        trace
            .formats()
            .find("vmscan", "mm_vmscan_kswapd_sleep")
            .map(|f| f.id),
        Some(EVENT)
    );
}

#[test]
fn who_breaks_gets_no_more_and_may_begin_again() {
    let file = file_7(PC, Codec::Zstd, &buffers(PC));
    let mut trace = TraceDat::open(Cursor::new(file)).expect("a file");
    let mut count = 0;
    let account = trace.for_each(&mut |_| {
        count += 1;
        if count == 3 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!((count, account.expect("a file").records), (3, 3));
    let account = trace.for_each(&mut |_| ControlFlow::Continue(()));
    assert_eq!(account.expect("a file").records, 9);
}

#[test]
fn a_time_that_goes_back_is_counted() {
    let pages = vec![
        Page::new(PC, 5000).event(1, 7, 0).finish(Lost::No),
        Page::new(PC, 4000)
            .event(1, 7, 1)
            .event(0, 7, 2)
            .finish(Lost::No),
        Page::new(PC, 6000).event(1, 7, 3).finish(Lost::No),
    ];
    let buffers = [Buffer {
        name: "",
        cpus: vec![Cpu { cpu: 0, pages }],
    }];
    let (seen, account) = read(&file_6(PC, &buffers, &[])).expect("a file");
    assert_eq!(
        seen.iter().map(|seen| seen.3).collect::<Vec<_>>(),
        [0, 1, 2, 3]
    );
    assert_eq!(account.unsorted, 2);
    assert!(!account.is_complete());
}

#[test]
fn a_file_cut_short_gives_what_is_there_and_says_where() {
    let file = file_6(PC, &buffers(PC), &[]);
    // The last page is that of the instance, whose second event is cut off.
    let end = file.len() - PAGE + 16 + 20;
    let (seen, account) = read(&file[..end]).expect("a file");
    assert_eq!(seen.len(), 8);
    assert_eq!(account.damaged, 0);
    let truncated = account.truncated.expect("cut short");
    assert_eq!(truncated.offset, end as u64);
    assert!(truncated.what.contains("CPU 0"), "{}", truncated.what);
}

#[test]
fn without_its_last_options_a_version_7_says_so() {
    let file = file_7(PC, Codec::Zstd, &buffers(PC));
    let (seen, account) = read(&file[..file.len() - 20]).expect("a file");
    assert_eq!(seen.len(), 7);
    assert!(account.truncated.is_some());
}

fn error(file: &[u8]) -> String {
    match TraceDat::open(Cursor::new(file)) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn errors_say_where_and_what_was_expected() {
    let file = file_6(PC, &buffers(PC), &[]);
    let with = |at: usize, byte: u8| {
        let mut file = file.clone();
        file[at] = byte;
        error(&file)
    };
    assert_eq!(
        error(b"PERFILE2 and more"),
        "at offset 0: expected \"\\u{17}\\u{8}Dtracing\", found \"PERFILE2 a\""
    );
    assert!(
        error(&file[..5]).contains("cut short"),
        "{}",
        error(&file[..5])
    );
    assert!(
        with(10, b'5').contains("version of the file is \"5\""),
        "{}",
        with(10, b'5')
    );
    assert_eq!(
        with(12, 2),
        "at offset 12: expected the byte order, 0 (little) or 1 (big), found 2"
    );
    assert_eq!(
        with(13, 3),
        "at offset 13: expected the size of a long, 4 or 8, found 3"
    );
    assert!(
        with(16, 0xff).contains("offset 14: expected a page size"),
        "{}",
        with(16, 0xff)
    );
    let tag = memchr::memmem::find(&file, b"flyrecord").expect("a tag");
    let text = with(tag, b'g');
    assert!(
        text.contains(&format!("offset {tag}: expected \"flyrecord\"")),
        "{text}"
    );
    let options = memchr::memmem::find(&file, b"options  ").expect("a tag");
    assert!(with(options - 4, 0).contains("expected data of at least one CPU, found none"));
    let many = with(options - 3, 0xff);
    assert!(
        many.contains("the number of CPUs is given as 65282, more than the 8192"),
        "{many}"
    );
    let mut latency = file.clone();
    latency[tag..tag + 10].copy_from_slice(b"latency  \0");
    assert!(error(&latency).contains("trace-cmd report"));
}

#[test]
fn compressions_that_are_not_read_are_named() {
    let mut file = file_7(PC, Codec::Zlib, &buffers(PC));
    let name = memchr::memmem::find(&file, b"zlib").expect("a name");
    file[name..name + 4].copy_from_slice(b"lzma");
    assert!(
        error(&file).contains("compressed by \"lzma\""),
        "{}",
        error(&file)
    );
}
