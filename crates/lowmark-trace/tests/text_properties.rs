//! What is printed by the formats of the kernel, of trace-cmd and of perf is read back; nothing panics.

use lowmark_trace::input::{LineEnd, Lines, RawLine};
use lowmark_trace::text::{EventLine, Line, Parser, Time, parse};
use proptest::prelude::*;

/// An event that owns its parts.
#[derive(Debug, Clone)]
struct Event {
    comm: Vec<u8>,
    pid: i32,
    tgid: Option<i32>,
    cpu: u32,
    flags: Vec<u8>,
    ns: u64,
    system: String,
    name: String,
    text: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum Form {
    /// `trace_print_context`, with the width of the pid and the number of flags.
    Ftrace {
        pid_width: usize,
        flags: usize,
        group: Group,
    },
    /// Clocks without a point.
    Counter,
    /// `trace-cmd report`; `-t` has nanoseconds.
    TraceCmd { nanoseconds: bool },
    /// `trace-cmd report -l`.
    Latency,
    /// `perf script`; `--ns` has nanoseconds.
    Perf {
        nanoseconds: bool,
        with_group: bool,
        with_cpu: bool,
    },
}

#[derive(Debug, Clone, Copy)]
enum Group {
    None,
    Unknown,
    BeforeCpu,
    AfterCpu,
}

fn form() -> impl Strategy<Value = Form> {
    let group = prop::sample::select(vec![
        Group::None,
        Group::Unknown,
        Group::BeforeCpu,
        Group::AfterCpu,
    ]);
    prop_oneof![
        (prop::sample::select(vec![(5, 0), (5, 4), (7, 5)]), group).prop_map(
            |((pid_width, flags), group)| Form::Ftrace {
                pid_width,
                flags,
                group
            }
        ),
        Just(Form::Counter),
        any::<bool>().prop_map(|nanoseconds| Form::TraceCmd { nanoseconds }),
        Just(Form::Latency),
        any::<(bool, bool, bool)>().prop_map(|(nanoseconds, with_group, with_cpu)| Form::Perf {
            nanoseconds,
            with_group,
            with_cpu
        }),
    ]
}

/// Pieces of prefixes in any order, and any bytes.
fn nasty(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        "[001] ",
        "[1] ",
        "[",
        "]",
        "-7",
        "-1 ",
        " ",
        ":",
        ": ",
        "1.000000: ",
        "1: ",
        "2.5: ",
        "a",
        "b:",
        ".....",
        "d..1.",
        "0d..1. ",
        "(12) ",
        "(",
        ")",
        "/",
        "kworker",
        "<...>",
        "#",
        "=> ",
        "x-1 [000] 1.000000: e: t",
        "12",
    ]);
    let bytes = prop::collection::vec(any::<u8>(), 0..3);
    let piece = prop_oneof![9 => pieces.prop_map(|piece| piece.as_bytes().to_vec()), 1 => bytes];
    prop::collection::vec(piece, 0..8).prop_map(move |pieces| {
        let mut bytes = pieces.concat();
        bytes.retain(|byte| !matches!(byte, b'\n' | b'\r' | 0));
        // Blanks before a part are padding: they cannot be told from it.
        let blanks = bytes.iter().take_while(|&&byte| byte == b' ').count();
        bytes.drain(..blanks);
        bytes.truncate(longest);
        bytes
    })
}

fn event() -> impl Strategy<Value = Event> {
    let flags = (
        prop::sample::select(b".dDbX".to_vec()),
        prop::collection::vec(
            prop::sample::select(b".NnplLBbHhsZz0123456789af".to_vec()),
            4,
        ),
    );
    (
        (
            nasty(15),
            0..=4_194_304i32,
            prop::option::of(1..=4_194_304i32),
            0..2000u32,
            flags,
        ),
        (
            0..1u64 << 62,
            "[a-z][a-z0-9_]{0,12}",
            "[a-zA-Z_][a-zA-Z0-9_]{0,30}",
            nasty(200),
        ),
    )
        .prop_map(
            |((comm, pid, tgid, cpu, (first, others)), (ns, system, name, text))| Event {
                comm,
                pid,
                tgid,
                cpu,
                flags: [vec![first], others].concat(),
                ns,
                system,
                name,
                text,
            },
        )
}

/// Bytes are kept by printing them as the characters of the same number and turning those back.
fn latin(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

fn seconds(ns: u64, nanoseconds: bool) -> String {
    if nanoseconds {
        format!("{:5}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
    } else {
        format!("{:5}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000)
    }
}

/// The line and what is to be read from it.
fn print(mut event: Event, form: Form) -> (Vec<u8>, Event, Form) {
    let keep = |nanoseconds: bool, ns: u64| if nanoseconds { ns } else { ns - ns % 1000 };
    match form {
        Form::Ftrace { flags, group, .. } => {
            event.flags.truncate(flags);
            event.ns = keep(false, event.ns);
            match group {
                Group::None | Group::Unknown => event.tgid = None,
                Group::BeforeCpu | Group::AfterCpu => event.tgid = event.tgid.or(Some(1)),
            }
        }
        Form::Counter => event.tgid = None,
        Form::TraceCmd { nanoseconds } => {
            event.flags.clear();
            event.tgid = None;
            event.ns = keep(nanoseconds, event.ns);
        }
        Form::Latency => {
            event.tgid = None;
            event.ns = keep(false, event.ns);
            // `%8.8s`; a `#` in the first column makes a comment of it.
            event.comm.truncate(8);
            event.comm.retain(|&byte| byte != b'#');
        }
        Form::Perf {
            nanoseconds,
            with_group,
            ..
        } => {
            event.flags.clear();
            event.ns = keep(nanoseconds, event.ns);
            event.tgid = with_group.then_some(event.tgid.unwrap_or(1));
            // Set between blanks: those at its end are padding too.
            let end = event.comm.trim_ascii_end().len();
            event.comm.truncate(end);
        }
    }
    let start = event.comm.iter().take_while(|&&byte| byte == b' ').count();
    event.comm.drain(..start);
    let Event {
        comm,
        pid,
        tgid,
        cpu,
        flags,
        ns,
        system,
        name,
        text,
    } = &event;
    let (comm, text, flags) = (latin(comm), latin(text), latin(flags));
    let line = match form {
        Form::Ftrace {
            pid_width, group, ..
        } => {
            let tgid = match (group, tgid) {
                (Group::None, _) => String::new(),
                (_, None) => format!("({}) ", "-".repeat(pid_width)),
                (_, Some(tgid)) => format!("({tgid:pid_width$}) "),
            };
            let (before, after) = match group {
                Group::AfterCpu => (String::new(), tgid),
                _ => (tgid, String::new()),
            };
            let time = seconds(*ns, false);
            format!(
                "{comm:>16}-{pid:<pid_width$} {before}[{cpu:03}] {after}{flags} {time}: {name}: {text}"
            )
        }
        Form::Counter => format!("{comm:>16}-{pid:<7} [{cpu:03}] {flags} {ns:12}: {name}: {text}"),
        Form::TraceCmd { nanoseconds } => {
            let (time, name) = (seconds(*ns, nanoseconds), format!("{name}:"));
            format!("{comm:>16}-{pid:<5} [{cpu:03}] {time}: {name:<21} {text}")
        }
        Form::Latency => {
            let (time, name) = (seconds(*ns, false), format!("{name}:"));
            format!("{comm:>8}-{pid:<5} {cpu:3}{flags} {time}: {name:<21} {text}")
        }
        Form::Perf {
            nanoseconds,
            with_cpu,
            ..
        } => {
            let task = tgid.map_or(format!("{pid:5}"), |tgid| format!("{tgid:5}/{pid:<5}"));
            let cpu = if with_cpu {
                format!("[{cpu:03}] ")
            } else {
                String::new()
            };
            let (time, name) = (seconds(*ns, nanoseconds), format!("{system}:{name}:"));
            format!("{comm:>16} {task} {cpu}{time:>12}: {name:>35} {text}")
        }
    };
    // Every character is one byte.
    let line = line
        .chars()
        .map(|char| u8::try_from(u32::from(char)).expect("latin"))
        .collect();
    (line, event, form)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(2000)))]

    #[test]
    fn what_is_printed_is_read_back(event in event(), form in form()) {
        let (line, event, form) = print(event, form);
        let is_perf = matches!(form, Form::Perf { .. });
        let expected = EventLine {
            comm: &event.comm,
            pid: event.pid,
            tgid: event.tgid,
            cpu: (!matches!(form, Form::Perf { with_cpu: false, .. })).then_some(event.cpu),
            flags: (!event.flags.is_empty()).then_some(&event.flags),
            time: match form {
                Form::Counter => Time::Counter(event.ns),
                _ => Time::Ns(event.ns),
            },
            system: is_perf.then_some(event.system.as_bytes()),
            event: event.name.as_bytes(),
            text: &event.text,
            again: false,
            named_again: false,
        };
        prop_assert_eq!(parse(&line), Line::Event(expected), "{}", latin(&line));
    }

    /// Events of few tasks and forms, mixed: what begins as the line before is the same as when it stands alone.
    #[test]
    fn lines_in_a_row_are_the_lines_one_by_one(
        events in prop::collection::vec(event(), 1..4),
        form in form(),
        order in prop::collection::vec(0..4usize, 2..12),
    ) {
        let lines: Vec<_> = events.into_iter().map(|event| print(event, form).0).collect();
        let mut row = Parser::default();
        let (mut last, mut last_name) = (None, None);
        for index in order {
            let bytes = &lines[index % lines.len()];
            let raw = RawLine { bytes, offset: 0, number: 0, end: LineEnd::Newline };
            let mut line = row.parse_raw(&raw);
            if let Line::Event(event) = &mut line {
                let head = (event.comm, event.pid, event.tgid, event.cpu, event.flags);
                prop_assert!(!std::mem::take(&mut event.again) || last == Some(head));
                last = Some(head);
                let named_again = std::mem::take(&mut event.named_again);
                prop_assert!(!named_again || last_name == Some(event.event));
                last_name = Some(event.event);
            }
            prop_assert_eq!(line, parse(bytes));
        }
    }

    #[test]
    fn damaged_lines_are_something(
        event in event(),
        form in form(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..6),
    ) {
        let (mut line, ..) = print(event, form);
        for (place, byte, edit) in cuts {
            if line.is_empty() {
                break;
            }
            let place = place.index(line.len());
            match edit {
                0 => line[place] = byte,
                1 => line.truncate(place),
                _ => { line.drain(..place); }
            }
        }
        let _ = parse(&line);
    }

    #[test]
    fn any_bytes_are_something(line in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&line);
    }

    #[test]
    fn pieces_are_something(line in nasty(400)) {
        let _ = parse(&line);
    }

    /// The lines do not depend on how the bytes come.
    #[test]
    fn lines_do_not_depend_on_chunks(
        pieces in prop::collection::vec(prop_oneof![
            4 => prop::collection::vec(prop::sample::select(b"abc\r\0".to_vec()), 0..12),
            3 => Just(b"\n".to_vec()),
            1 => Just(b"\r\n".to_vec()),
        ], 0..30),
        chunk in 1..40usize,
        line_max in 1..30usize,
    ) {
        let bytes = pieces.concat();
        let mut lines = Lines::with_limits("test", &bytes[..], chunk, line_max);
        let mut offset = 0;
        let parts: Vec<_> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
        for (number, part) in parts.iter().enumerate() {
            let line = lines.next_line().expect("no error").expect("a line");
            prop_assert_eq!((line.offset, line.number), (offset, number as u64 + 1));
            offset += part.len() as u64;
            let (content, ended) = match part.strip_suffix(b"\n") {
                Some(content) => (content, LineEnd::Newline),
                None => (*part, LineEnd::Input),
            };
            if content.len() > line_max {
                prop_assert_eq!(line.end, LineEnd::TooLong { length: content.len() as u64 });
                prop_assert!(line.bytes.is_empty());
            } else {
                prop_assert_eq!(line.end, ended);
                prop_assert_eq!(line.bytes, content.strip_suffix(b"\r").unwrap_or(content));
            }
        }
        prop_assert!(lines.next_line().expect("no error").is_none());
    }
}
