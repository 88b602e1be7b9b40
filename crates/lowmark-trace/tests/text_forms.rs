//! Every form of line that is known, with its parts.

use lowmark_trace::text::{EventLine, Header, Line, Time, Why, parse};

/// What an event line is expected to hold.
struct Expected {
    comm: &'static str,
    pid: i32,
    tgid: Option<i32>,
    cpu: Option<u32>,
    flags: Option<&'static str>,
    time: Time,
    system: Option<&'static str>,
    event: &'static str,
    text: &'static str,
}

impl Expected {
    fn with(mut self, change: impl FnOnce(&mut Expected)) -> Self {
        change(&mut self);
        self
    }
}

const NOTHING: Expected = Expected {
    comm: "",
    pid: 0,
    tgid: None,
    cpu: None,
    flags: None,
    time: Time::Ns(0),
    system: None,
    event: "",
    text: "",
};

#[track_caller]
fn check(line: &str, expected: Expected) {
    let expected = EventLine {
        comm: expected.comm.as_bytes(),
        pid: expected.pid,
        tgid: expected.tgid,
        cpu: expected.cpu,
        flags: expected.flags.map(str::as_bytes),
        time: expected.time,
        system: expected.system.map(str::as_bytes),
        event: expected.event.as_bytes(),
        text: expected.text.as_bytes(),
        again: false,
        named_again: false,
    };
    assert_eq!(parse(line.as_bytes()), Line::Event(expected), "{line}");
    // Blanks before a line are padding only.
    let padded = format!("     {line}");
    assert_eq!(parse(padded.as_bytes()), Line::Event(expected), "{padded}");
}

/// `check!(line, comm pid [cpu], flags, time, event, text; other fields)`
macro_rules! check {
    ($line:expr, $comm:expr, $pid:expr, $cpu:expr, $flags:expr, $time:expr, $event:expr, $text:expr
     $(; $($field:ident: $value:expr),+)?) => {
        check($line, Expected {
            comm: $comm, pid: $pid, cpu: $cpu, flags: $flags, time: $time, event: $event, text: $text,
            ..NOTHING
        }$(.with(|expected| { $(expected.$field = $value;)+ }))?)
    };
}

fn us(us: u64) -> Time {
    Time::Ns(us * 1000)
}

#[test]
fn golden_lines() {
    let isolate = "mm_vmscan_lru_isolate";
    let text = "isolate_mode=1 order=0 nr_requested=32 nr_scanned=32 nr_taken=32 contig_taken=0 \
                contig_dirty=0 contig_failed=0";
    let line = format!("kswapd0-29 [001]  1042.118234: {isolate}: {text}");
    assert!(matches!(parse(line.as_bytes()), Line::Event(event) if event.text == text.as_bytes()));
    check!(
        "kswapd0-29 [001]  1042.118234: mm_vmscan_lru_isolate: isolate_mode=1 order=0",
        "kswapd0",
        29,
        Some(1),
        None,
        us(1_042_118_234),
        isolate,
        "isolate_mode=1 order=0"
    );
    check!(
        "kswapd0-41 [000] d..1   88.120001: mm_vmscan_lru_isolate: isolate_mode=0 file=1",
        "kswapd0",
        41,
        Some(0),
        Some("d..1"),
        us(88_120_001),
        isolate,
        "isolate_mode=0 file=1"
    );
    check!(
        "kswapd0-41 [000] ....   88.120055: mm_vmscan_lru_shrink_inactive: nid=0 zid=1",
        "kswapd0",
        41,
        Some(0),
        Some("...."),
        us(88_120_055),
        "mm_vmscan_lru_shrink_inactive",
        "nid=0 zid=1"
    );
    check!(
        "cc1-4242   [003] .....  91.000100: mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL",
        "cc1",
        4242,
        Some(3),
        Some("....."),
        us(91_000_100),
        "mm_vmscan_direct_reclaim_begin",
        "order=0 gfp_flags=GFP_KERNEL"
    );
    check!(
        "cc1-4242   [003] d..1.  91.000140: mm_vmscan_lru_isolate: classzone=2 lru=inactive_file",
        "cc1",
        4242,
        Some(3),
        Some("d..1."),
        us(91_000_140),
        isolate,
        "classzone=2 lru=inactive_file"
    );
    check!(
        "cc1-4242   [003] .....  91.004140: mm_vmscan_throttled: nid=0 usect_delayed=4000",
        "cc1",
        4242,
        Some(3),
        Some("....."),
        us(91_004_140),
        "mm_vmscan_throttled",
        "nid=0 usect_delayed=4000"
    );
}

#[test]
fn columns_of_the_kernels() {
    // %16s-%-5d [%03d], with 0, 4 and 5 flags, and %-7d.
    check!(
        "              rl-7     [001]     5.000001: e: t",
        "rl",
        7,
        Some(1),
        None,
        us(5_000_001),
        "e",
        "t"
    );
    check!(
        "         kswapd0-12345 [000] dN.1 12345.000001: e: t",
        "kswapd0",
        12345,
        Some(0),
        Some("dN.1"),
        us(12_345_000_001),
        "e",
        "t"
    );
    check!(
        "         kswapd0-1234567 [000] dl.1. 123456.000001: e: t",
        "kswapd0",
        1_234_567,
        Some(0),
        Some("dl.1."),
        us(123_456_000_001),
        "e",
        "t"
    );
    for flags in [
        ".....", ".l...", "DB.2.", "bN.1.", "X..f.", "d.h31", "dNZ3e", ".B...", "d.S.1",
    ] {
        let line = format!("          <idle>-0       [002] {flags}     1.000000: e: t");
        check(
            &line,
            Expected {
                flags: Some(leak(flags)),
                ..idle()
            },
        );
    }
    // Letters of kernels to come, and a sixth column.
    check!(
        "          <idle>-0       [002] @.q.1!     1.000000: e: t",
        "<idle>",
        0,
        Some(2),
        Some("@.q.1!"),
        us(1_000_000),
        "e",
        "t"
    );
    // CPUs beyond three digits, and of fewer.
    check!(
        "  rl-7 [1023] ..... 1.000000: e: t",
        "rl",
        7,
        Some(1023),
        Some("....."),
        us(1_000_000),
        "e",
        "t"
    );
    check!(
        "  rl-7 [3] ..... 1.000000: e: t",
        "rl",
        7,
        Some(3),
        Some("....."),
        us(1_000_000),
        "e",
        "t"
    );
}

fn idle() -> Expected {
    Expected {
        comm: "<idle>",
        cpu: Some(2),
        time: us(1_000_000),
        event: "e",
        text: "t",
        ..NOTHING
    }
}

fn leak(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

#[test]
fn thread_groups() {
    let line = |tgid: &str| format!("  rl-29654 {tgid} [000] .....  1834.816584: e: t");
    let expected = |tgid| Expected {
        comm: "rl",
        pid: 29654,
        tgid,
        cpu: Some(0),
        flags: Some("....."),
        time: us(1_834_816_584),
        event: "e",
        text: "t",
        ..NOTHING
    };
    for (text, tgid) in [
        ("(29650)", Some(29650)),
        ("(  123)", Some(123)),
        ("(    123)", Some(123)),
        ("(-----)", None),
        ("(-------)", None),
    ] {
        check(&line(text), expected(tgid));
        // Behind the CPU, where the captions of some kernels have it.
        let behind = format!("  rl-29654 [000] {text} .....  1834.816584: e: t");
        check(&behind, expected(tgid));
    }
    // systrace, with 4 flags.
    check!("  ndroid.systemui-2001  ( 2001) [003] d..3   50.000001: tracing_mark_write: B|2001|x",
        "ndroid.systemui", 2001, Some(3), Some("d..3"), us(50_000_001), "tracing_mark_write", "B|2001|x";
        tgid: Some(2001));
}

#[test]
fn names_of_tasks() {
    for comm in [
        "kworker/u8:1",
        "kdamond.0",
        "<...>",
        "Web Content",
        "a-b-7",
        "x: y",
        "(sd-pam)",
        "[kworker]",
        "a [001] b",
        "a-1 [002] 3.5:",
        "a-1 [0] 1: b:",
        "x-1 (2) [3] 4: 5",
        "=> f",
        "tr[ail] ",
        "-",
        "--",
        "a b ",
        "1 2 3",
        "C++",
        "été",
        "][",
    ] {
        for prefix in ["     [001] .....", "     [001]", " (-----) [001] d..1"] {
            let line =
                format!("{comm:>16}-77{prefix}   12.000003: ev: k=v [7] x-1 [000] 1.000000: y: z");
            let Line::Event(event) = parse(line.as_bytes()) else {
                panic!("no event: {line}");
            };
            assert_eq!(event.comm, comm.as_bytes(), "{line}");
            assert_eq!(
                (event.pid, event.cpu, event.event),
                (77, Some(1), &b"ev"[..]),
                "{line}"
            );
            assert_eq!(event.text, b"k=v [7] x-1 [000] 1.000000: y: z", "{line}");
        }
    }
    check!(
        "-77 [001] ..... 12.000003: ev: t",
        "",
        77,
        Some(1),
        Some("....."),
        us(12_000_003),
        "ev",
        "t"
    );
    // perf takes longer names from /proc: the first candidate is the one.
    check!("kworker/u8:2-events_unbound 77 [001] 12.000003: a:ev: x 1 [000] 1.000000: b:c: t",
        "kworker/u8:2-events_unbound", 77, Some(1), None, us(12_000_003), "ev", "x 1 [000] 1.000000: b:c: t";
        system: Some("a"));
}

#[test]
fn time_stamps() {
    let time = |text: &str| match parse(format!("rl-7 [001] ..... {text}: e: t").as_bytes()) {
        Line::Event(event) => Ok(event.time),
        other => Err(format!("{other:?}")),
    };
    assert_eq!(time("0.000001"), Ok(us(1)));
    assert_eq!(time("1834.816584321"), Ok(Time::Ns(1_834_816_584_321)));
    assert_eq!(time("       123"), Ok(Time::Counter(123)));
    assert_eq!(time("18446744073709551615"), Ok(Time::Counter(u64::MAX)));
    assert_eq!(time("18446744073.709551"), Ok(us(18_446_744_073_709_551)));
    for wrong in [
        "18446744074.000000",
        "18446744073709551616",
        "1.0000000000",
        "1.",
        ".5",
        "1.2.3",
        "0x1",
        "-1.0",
        "1us",
    ] {
        assert_eq!(time(wrong), Err(String::from("Other(NoTime)")), "{wrong}");
    }
}

#[test]
fn trace_cmd_report() {
    check!(
        "              rl-29654 [000]  1834.816584: mm_vmscan_throttled:  nid=0 usec_timeout=1",
        "rl",
        29654,
        Some(0),
        None,
        us(1_834_816_584),
        "mm_vmscan_throttled",
        "nid=0 usec_timeout=1"
    );
    check!(
        "   Web Content-29654 [000]  1834.816584123: mm_vmscan_kswapd_wake: nid=0",
        "Web Content",
        29654,
        Some(0),
        None,
        Time::Ns(1_834_816_584_123),
        "mm_vmscan_kswapd_wake",
        "nid=0"
    );
    check!(
        "      rl-2965    0d..1.  1834.816591: mm_vmscan_kswapd_sleep: nid=0",
        "rl",
        2965,
        Some(0),
        Some("d..1."),
        us(1_834_816_591),
        "mm_vmscan_kswapd_sleep",
        "nid=0"
    );
    check!(
        "  a b-3c-29654 127....  1834.816591: e:                    x-1 [000] 1.000000: a: b",
        "a b-3c",
        29654,
        Some(127),
        Some("...."),
        us(1_834_816_591),
        "e",
        "x-1 [000] 1.000000: a: b"
    );
}

#[test]
fn perf_script() {
    let text = "page=0xffff pfn=0x1";
    check!("            true 20360 [000]  1166.664861:       kmem:mm_page_alloc: page=0xffff pfn=0x1",
        "true", 20360, Some(0), None, us(1_166_664_861), "mm_page_alloc", text; system: Some("kmem"));
    check!("            true 20359/20360 [000]  1166.664861123: kmem:mm_page_alloc: page=0xffff pfn=0x1",
        "true", 20360, Some(0), None, Time::Ns(1_166_664_861_123), "mm_page_alloc", text;
        system: Some("kmem"), tgid: Some(20359));
    check!("Web Content 20360  1166.664861: kmem:mm_page_alloc: page=0xffff pfn=0x1",
        "Web Content", 20360, None, None, us(1_166_664_861), "mm_page_alloc", text; system: Some("kmem"));
    check!("rl 7/8  1166.664861: kmem:mm_page_alloc: page=0xffff pfn=0x1",
        "rl", 8, None, None, us(1_166_664_861), "mm_page_alloc", text; system: Some("kmem"), tgid: Some(7));
    check!("20360 [000]  1166.664861: kmem:mm_page_alloc: page=0xffff pfn=0x1",
        "", 20360, Some(0), None, us(1_166_664_861), "mm_page_alloc", text; system: Some("kmem"));
    check!("20360  1166.664861: kmem:mm_page_alloc:u: page=0xffff pfn=0x1",
        "", 20360, None, None, us(1_166_664_861), "mm_page_alloc", text; system: Some("kmem"));
    check!("swapper     0 [001] 1.000000:     250000 sched:sched_switch: t",
        "swapper", 0, Some(1), None, us(1_000_000), "sched_switch", "t"; system: Some("sched"));
    check!("             foo    -1 [001] 1.000000: sched:sched_switch: t",
        "foo", -1, Some(1), None, us(1_000_000), "sched_switch", "t"; system: Some("sched"));
    let other = |line: &'static str| parse(line.as_bytes());
    assert_eq!(
        other("1166.664861: kmem:mm_page_alloc: p=1"),
        Line::Other(Why::NoPid)
    );
    assert_eq!(
        other("rl 20360 [000] kmem:mm_page_alloc: p=1"),
        Line::Other(Why::NoTime)
    );
    assert_eq!(
        other("rl 7 [002] 1.000000: PERF_RECORD_LOST lost 17"),
        Line::Lost {
            cpu: Some(2),
            events: Some(17)
        }
    );
    assert_eq!(
        other("\tffffffff81234567 shrink_node+0x12 ([kernel.kallsyms])"),
        Line::StackEntry
    );
}

#[test]
fn texts() {
    check!(
        "rl-7 [001] ..... 1.000000: e:",
        "rl",
        7,
        Some(1),
        Some("....."),
        us(1_000_000),
        "e",
        ""
    );
    check!(
        "rl-7 [001] ..... 1.000000: e: ",
        "rl",
        7,
        Some(1),
        Some("....."),
        us(1_000_000),
        "e",
        ""
    );
    check!(
        "rl-7 [001] ..... 1.000000: mm_shrink_slab_end: super_cache_scan+0x0/0x210 0000: nid: 0",
        "rl",
        7,
        Some(1),
        Some("....."),
        us(1_000_000),
        "mm_shrink_slab_end",
        "super_cache_scan+0x0/0x210 0000: nid: 0"
    );
}

#[test]
fn lines_that_are_no_events() {
    let cases: &[(&str, Line<'_>)] = &[
        ("", Line::Blank),
        ("   \t", Line::Blank),
        ("# tracer: nop", Line::Header(Header::Tracer(b"nop"))),
        ("#", Line::Header(Header::Comment(b"#"))),
        (
            "#           TASK-PID     CPU#",
            Line::Header(Header::Comment(b"#           TASK-PID     CPU#")),
        ),
        (
            "# rl-7 [001] ..... 1.000000: e: t",
            Line::Header(Header::Comment(b"# rl-7 [001] ..... 1.000000: e: t")),
        ),
        (
            "# entries-in-buffer/entries-written: 129951/130000   #P:2",
            Line::Header(Header::Entries {
                in_buffer: 129_951,
                written: 130_000,
                cpus: Some(2),
            }),
        ),
        ("cpus=2", Line::Header(Header::Cpus(2))),
        ("CPU 1 is empty", Line::Header(Header::CpuEmpty(1))),
        (
            "CPU:3 [LOST 123 EVENTS]",
            Line::Lost {
                cpu: Some(3),
                events: Some(123),
            },
        ),
        (
            "CPU:3 [LOST EVENTS]",
            Line::Lost {
                cpu: Some(3),
                events: None,
            },
        ),
        (
            "CPU:3 [123 EVENTS DROPPED]",
            Line::Lost {
                cpu: Some(3),
                events: Some(123),
            },
        ),
        (
            "CPU:3 [EVENTS DROPPED]",
            Line::Lost {
                cpu: Some(3),
                events: None,
            },
        ),
        (
            "##### CPU 2 buffer started ####",
            Line::BufferStarted { cpu: 2 },
        ),
        (" => shrink_node", Line::StackEntry),
        ("=> shrink_node (ffffffff81)", Line::StackEntry),
        (
            "  rl-7 [001] ..... 1.000000: <stack trace>",
            Line::StackEntry,
        ),
        (
            "  rl-7 [001] ..... 1.000000: <user stack trace>",
            Line::StackEntry,
        ),
        (" <stack trace>", Line::StackEntry),
        ("mm_vmscan_kswapd_sleep: nid=0", Line::Other(Why::NoPid)),
        ("some prose", Line::Other(Why::NoPid)),
        ("  rl-7  1.000000: e: t", Line::Other(Why::NoCpu)),
        ("  rl-7 [001] ..... e: t", Line::Other(Why::NoTime)),
        ("  rl-7 [001] .....  12us : e: t", Line::Other(Why::NoTime)),
        (
            "  rl-7 [001] ..... 1.000000: shrink_node <-shrink_one",
            Line::Other(Why::NoEvent),
        ),
        ("  rl-7 [001] ..... 1.000000:", Line::Other(Why::NoEvent)),
        ("  [001] ..... 1.000000: e: t", Line::Other(Why::NoPid)),
        (
            "  rl-99999999999 [001] ..... 1.000000: e: t",
            Line::Other(Why::NoPid),
        ),
        ("\u{1}\u{2}\0\0", Line::Other(Why::NotText)),
        (
            "  rl-7 [001\0 ..... 1.000000: e: t",
            Line::Other(Why::NotText),
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(parse(line.as_bytes()), *expected, "{line:?}");
    }
}

/// A task of perf may be called what the beginning of a line is.
#[test]
fn a_time_is_no_name_of_an_event() {
    let line = b"-1 [001] 1:      0     0.000000: a:A: t";
    let Line::Event(event) = parse(line) else {
        panic!("an event");
    };
    assert_eq!((event.comm, event.pid), (&b"-1 [001] 1:"[..], 0));
    assert_eq!((event.event, event.text), (&b"A"[..], &b"t"[..]));
}

#[test]
fn reasons_are_all_listed() {
    for (place, why) in Why::ALL.into_iter().enumerate() {
        assert_eq!(why as usize, place);
        assert!(!why.as_str().is_empty());
    }
}
