//! Inputs of every kind and compression, whole, cut off and damaged.

use flate2::write::{GzEncoder, ZlibEncoder};
use lowmark_record::Flaw;
use lowmark_trace::input::{Compression, Input, InputError, Kind, LineEnd, Lines, TextKind};
use lowmark_trace::text::{Line, Why, parse_raw};
use std::io::{self, Cursor, Read, Seek, Write};

/// A trace of some thousand lines that do not compress to nothing.
fn trace() -> Vec<u8> {
    let mut text = b"# tracer: nop\n#\n".to_vec();
    let mut random = 1u64;
    for number in 0..4000u64 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        writeln!(text, "              rl-{:<7} [001] ..... {:5}.{:06}: mm_vmscan_write_folio: page={random:016x}",
            random >> 50, number / 100, number * 10_000 % 1_000_000).expect("memory");
    }
    text
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// A member with every optional part.
fn gzip_with_all_parts(bytes: &[u8]) -> Vec<u8> {
    let encoder = flate2::GzBuilder::new()
        .extra(b"extra".to_vec())
        .filename("name")
        .comment("comment");
    let mut encoder = encoder.write(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    let mut file = encoder.finish().expect("memory");
    // The checksum of the header: the encoder writes none, and no reader checks it.
    file[3] |= 0x02;
    let end = 10 + 2 + 5 + 5 + 8;
    file.splice(end..end, [0x12, 0x34]);
    file
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("memory");
    // As the command does.
    encoder.include_checksum(true).expect("supported");
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn atrace(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(
        b"capturing trace... done\nTRACE:\n".to_vec(),
        flate2::Compression::default(),
    );
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

type Compressor = fn(&[u8]) -> Vec<u8>;

const COMPRESSORS: [(Compressor, Compression); 5] = [
    (gzip, Compression::Gzip),
    (gzip_with_all_parts, Compression::Gzip),
    (xz, Compression::Xz),
    (zstd, Compression::Zstd),
    (atrace, Compression::Atrace),
];

fn open(bytes: Vec<u8>) -> Result<Input, InputError> {
    Input::from_reader("the input", Cursor::new(bytes))
}

/// What comes out, and the error that ends it.
fn read_out(bytes: Vec<u8>) -> (Vec<u8>, Option<InputError>) {
    let mut out = Vec::new();
    match open(bytes) {
        Err(error) => (out, Some(error)),
        Ok(input) => match input.into_reader().read_to_end(&mut out) {
            Ok(_) => (out, None),
            Err(error) => (out, Some(error.downcast().expect("an InputError"))),
        },
    }
}

#[test]
fn compressions_are_undone() {
    let trace = trace();
    for (compress, compression) in COMPRESSORS {
        let input = open(compress(&trace)).expect("opens");
        assert_eq!(
            (input.compression(), input.kind()),
            (Some(compression), Kind::Text(TextKind::Ftrace))
        );
        assert_eq!(read_out(compress(&trace)).0, trace);
        if compression == Compression::Atrace {
            continue;
        }
        // Several members, streams, frames: an empty one too.
        let (first, rest) = trace.split_at(trace.len() / 3);
        let mut parts = [compress(first), compress(b""), compress(rest)].concat();
        let (out, error) = read_out(parts.clone());
        assert!(error.is_none() && out == trace, "{compression}: {error:?}");
        // Padding where the format has it.
        if compression != Compression::Zstd {
            parts.extend([0; 8]);
            assert!(read_out(parts.clone()).1.is_none(), "{compression}");
        }
        parts.extend(b"something else");
        let (out, error) = read_out(parts);
        assert_eq!(out, trace, "{compression}");
        assert!(
            matches!(error, Some(InputError::Broken { .. })),
            "{error:?}"
        );
    }
    assert_eq!(read_out(trace.clone()).0, trace);
}

#[test]
fn what_is_cut_off_is_read_to_there() {
    let trace = trace();
    for (compress, compression) in COMPRESSORS {
        let file = compress(&trace);
        let mut longest = 0;
        for cut in (48..file.len())
            .step_by(file.len() / 97)
            .chain([file.len() - 1])
        {
            let (out, error) = read_out(file[..cut].to_vec());
            assert!(trace.starts_with(&out), "{compression} at {cut}");
            longest = longest.max(out.len());
            let Some(InputError::Broken {
                compressed_offset,
                offset,
                what,
                ..
            }) = error
            else {
                panic!("{compression} at {cut}: {error:?}");
            };
            assert_eq!(
                (compressed_offset, offset),
                (cut as u64, out.len() as u64),
                "{compression}"
            );
            assert_eq!(what, "are cut off", "{compression}");
        }
        // Nearly all of it, but for what one block holds.
        assert!(
            longest + (128 << 10) > trace.len(),
            "{compression}: {longest}"
        );
    }
}

#[test]
fn damage_is_an_error_or_harmless() {
    let trace = trace();
    for (compress, compression) in COMPRESSORS {
        let file = compress(&trace);
        let mut found = 0;
        for place in (0..file.len()).step_by(file.len() / 61) {
            let mut file = file.clone();
            file[place] ^= 0x55;
            let (out, error) = read_out(file);
            match error {
                None => {}
                Some(InputError::Broken {
                    offset,
                    compressed_offset,
                    ..
                }) => {
                    found += 1;
                    assert_eq!(offset, out.len() as u64);
                    assert!(compressed_offset > 0 || offset == 0);
                }
                // The magic is gone, or what comes out first is no text.
                Some(InputError::NotATrace { .. } | InputError::Empty { .. }) => {}
                Some(other) => panic!("{compression} at {place}: {other:?}"),
            }
        }
        assert!(found > 40, "{compression}: {found}");
        // Nothing but noise behind the magic.
        let mut noise = file[..6].to_vec();
        noise.extend((0..1000u32).map(|number| (number * number / 7) as u8 | 1));
        let (_, error) = read_out(noise);
        assert!(
            error.is_some() || compression == Compression::Atrace,
            "{compression}"
        );
    }
}

/// What a report says of an input that cannot be undone to its end.
#[test]
fn an_account_tells_damage_from_an_early_end() {
    struct Nobody;
    impl lowmark_record::Sink for Nobody {
        fn event(&mut self, _: &lowmark_record::Event, _: &lowmark_record::Tables) {}
    }
    let flaws = |file: Vec<u8>| {
        let source = lowmark_trace::read(open(file).expect("opens"), &mut Nobody).expect("a trace");
        source.account.flaws
    };
    let trace = trace();
    for (compress, compression) in COMPRESSORS {
        let file = compress(&trace);
        let cut = flaws(file[..file.len() / 2].to_vec());
        let place = &cut[&Flaw::Truncated];
        assert!(place.contains("data are cut off at offset"), "{place}");
        let mut damaged = file.clone();
        let middle = file.len() / 2;
        damaged[middle..middle + 3].fill(0x55);
        let damaged = flaws(damaged);
        assert!(
            !damaged.contains_key(&Flaw::Truncated),
            "{compression}: {damaged:?}"
        );
        let place = &damaged[&Flaw::Damaged];
        assert!(
            place.contains("data are damaged ("),
            "{compression}: {place}"
        );
    }
}

#[test]
fn lines_before_damage_are_given() {
    let trace = trace();
    let file = gzip(&trace);
    let mut lines = open(file[..file.len() / 2].to_vec())
        .expect("opens")
        .into_lines();
    let (mut whole, mut last) = (0, None);
    let error = loop {
        match lines.next_line() {
            Ok(Some(line)) => {
                whole += u64::from(matches!(parse_raw(&line), Line::Event(_)));
                last = Some((line.end, parse_raw(&line) == Line::Other(Why::Cut)));
            }
            Ok(None) => panic!("no error"),
            Err(error) => break error,
        }
    };
    assert!(whole > 1000);
    assert_eq!(last, Some((LineEnd::Broken, true)));
    let text = error.to_string();
    assert!(
        text.starts_with("the input: gzip data are cut off at offset "),
        "{text}"
    );
    assert!(lines.next_line().expect("only once").is_none());
}

#[test]
fn a_bomb_needs_no_memory() {
    // 256 MiB of the same line from some kilobytes, through a line source and into a file with a limit.
    let zeros = vec![b'a'; 1 << 20];
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("memory");
    for _ in 0..256 {
        encoder.write_all(&zeros).expect("memory");
    }
    let bomb = encoder.finish().expect("memory");
    assert!(bomb.len() < 1 << 20);
    let mut lines = open(bomb.clone()).expect("opens").into_lines();
    let line = lines.next_line().expect("no error").expect("a line");
    assert_eq!(
        (line.end, line.bytes.len()),
        (LineEnd::TooLong { length: 256 << 20 }, 0)
    );
    let error = open(bomb)
        .expect("opens")
        .into_seekable(1 << 20)
        .expect_err("too large");
    assert!(matches!(
        error,
        InputError::TooLarge {
            spool_max: 0x10_0000,
            ..
        }
    ));
}

/// `count` times the same byte, then an event.
struct Long {
    count: u64,
    rest: &'static [u8],
}

impl Read for Long {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.count.min(buffer.len() as u64);
        if count == 0 {
            return self.rest.read(buffer);
        }
        buffer[..count as usize].fill(b'[');
        self.count -= count;
        Ok(count as usize)
    }
}

#[test]
fn a_line_of_a_gigabyte_passes() {
    let rest = b"\n rl-7 [001] ..... 1.000000: e: t\n";
    let mut lines = Lines::new(
        "long",
        Long {
            count: 1 << 30,
            rest,
        },
    );
    let line = lines.next_line().expect("no error").expect("a line");
    assert_eq!(line.end, LineEnd::TooLong { length: 1 << 30 });
    assert_eq!(parse_raw(&line), Line::Other(Why::TooLong));
    let line = lines.next_line().expect("no error").expect("a line");
    assert_eq!((line.offset, line.number), ((1 << 30) + 1, 2));
    assert!(matches!(parse_raw(&line), Line::Event(_)));
    // The longest that is kept takes no time either.
    let mut lines = Lines::new(
        "long",
        Long {
            count: 1 << 20,
            rest,
        },
    );
    let line = lines.next_line().expect("no error").expect("a line");
    assert_eq!((line.end, line.bytes.len()), (LineEnd::Newline, 1 << 20));
    assert_eq!(parse_raw(&line), Line::Other(Why::NoPid));
}

#[test]
fn lines_do_not_depend_on_chunks() {
    let trace = trace();
    let trace = &trace[..30_000];
    let expected: Vec<&[u8]> = trace.split(|&byte| byte == b'\n').collect();
    for chunk in (1..200).chain([4096, 1 << 20]) {
        let mut lines = Lines::with_limits("test", trace, chunk, 1000);
        for expected in &expected {
            assert_eq!(
                lines.next_line().expect("no error").expect("a line").bytes,
                *expected
            );
        }
        assert!(lines.next_line().expect("no error").is_none());
    }
}

#[test]
fn a_line_that_the_end_cuts() {
    let last = |text: &'static str| {
        let mut lines = Lines::new("test", text.as_bytes());
        let line = lines.next_line().expect("no error").expect("a line");
        assert_eq!(line.end, LineEnd::Input);
        match parse_raw(&line) {
            Line::Event(event) if event.text == b"t" => Ok(()),
            Line::Other(why) => Err(why),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(last(" rl-7 [001] ..... 1.000000: e: t"), Ok(()));
    assert_eq!(last(" rl-7 [001] ..... 1.0000"), Err(Why::Cut));
    assert_eq!(last(" rl-"), Err(Why::Cut));
    assert_eq!(last("\0\0\0\0"), Err(Why::NotText));
}

#[test]
fn kinds() {
    let kind = |bytes: &[u8]| open(bytes.to_vec()).map(|input| input.kind());
    let text = |text: &str| match kind(text.as_bytes()) {
        Ok(Kind::Text(kind)) => kind,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(text("# tracer: nop\n"), TextKind::Ftrace);
    assert_eq!(
        text("\n rl-7 [001] ..... 1.000000: e: t\n"),
        TextKind::Ftrace
    );
    assert_eq!(text("CPU:1 [LOST 3 EVENTS]\n"), TextKind::Ftrace);
    assert_eq!(
        text("cpus=2\n rl-7 [001] 1.000000: e: t\n"),
        TextKind::TraceCmd
    );
    assert_eq!(
        text("# captured on: x\n#\n rl 7 [001] 1.000000: s:e: t\n"),
        TextKind::Perf
    );
    assert_eq!(text("<!DOCTYPE html>\n<html>\n"), TextKind::Systrace);
    assert_eq!(text("nr_free_pages 12\n"), TextKind::Plain);
    assert_eq!(text("x"), TextKind::Plain);
    // A name of control characters does not make it binary.
    assert_eq!(
        text(" \u{1}\u{2}-7 [001] ..... 1.000000: e: t\n"),
        TextKind::Ftrace
    );
    assert!(matches!(
        kind(b"\x17\x08\x44tracing6\0\0\x08"),
        Ok(Kind::TraceDat)
    ));
    assert!(matches!(
        kind(b"PERFILE2\x68\0\0\0"),
        Ok(Kind::PerfData { big_endian: false })
    ));
    assert!(matches!(
        kind(b"2ELIFREP\0\0\0\x68"),
        Ok(Kind::PerfData { big_endian: true })
    ));
    assert!(matches!(
        kind(&gzip(b"PERFILE2\x68\0\0\0")),
        Ok(Kind::PerfData { .. })
    ));
}

#[test]
fn what_is_no_trace() {
    let noise: Vec<u8> = (0..10_000u32)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let cases: [(&[u8], u64, &str); 5] = [
        (b"\x0a\x12\x34\x08\x01\x0a", 1, "Perfetto"),
        (b"BZh91AY&SY\0\0", 10, "bzip2"),
        (b"\xff\xfe#\0 \0t\0", 0, "UTF-16"),
        (b"text\0", 4, "not a trace: the bytes at offset 4"),
        (&noise[1..], 3, "not a trace"),
    ];
    for (bytes, expected, message) in cases {
        let input = open(bytes.to_vec()).expect("opens");
        assert!(
            matches!(input.kind(), Kind::Unknown(_)),
            "{:?}",
            input.kind()
        );
        let error = input.unrecognised();
        assert!(error.to_string().contains(message), "{error}");
        let InputError::NotATrace { offset, .. } = error else {
            panic!("{error}");
        };
        if bytes.len() < 100 {
            assert_eq!(offset, expected, "{error}");
        }
    }
    for (compress, compression) in COMPRESSORS {
        let empty = open(compress(b"")).expect_err("empty");
        assert!(
            matches!(empty, InputError::Empty { compression: Some(found), .. } if found == compression)
        );
        let twice = open(compress(&gzip(&trace()))).expect_err("twice");
        assert!(
            matches!(twice, InputError::CompressedTwice { outer, .. } if outer == compression),
            "{twice}"
        );
    }
    assert!(matches!(
        open(Vec::new()),
        Err(InputError::Empty {
            compression: None,
            ..
        })
    ));
    let directory = tempfile::tempdir().expect("a directory");
    let error = Input::open(directory.path()).expect_err("a directory");
    assert!(matches!(error, InputError::Directory { .. }), "{error}");
    let error = Input::open(&directory.path().join("none")).expect_err("not there");
    assert!(matches!(error, InputError::Open { .. }), "{error}");
}

#[test]
fn a_page_of_systrace() {
    let page = "<!DOCTYPE html>\n<script>\nvar x = ' rl-7 [001] ..... 9.0: no: t';\n</script>\n\
                  <script class=\"trace-data\" type=\"application/text\">\r\n\
                # tracer: nop\n rl-7 ( 6) [001] d..1 1.000000: e: one\n  </script>\n<p>\n\
                <script class=\"trace-data\">\n rl-7 [001] 2.000000: e: two\n</script>\n</html>\n";
    let mut lines = open(page.as_bytes().to_vec()).expect("opens").into_lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next_line().expect("no error") {
        if let Line::Event(event) = parse_raw(&line) {
            found.push((
                line.number,
                String::from_utf8_lossy(event.text).into_owned(),
            ));
        }
    }
    assert_eq!(found, [(7, "one".to_owned()), (11, "two".to_owned())]);
}

#[test]
fn binary_traces_can_be_sought() {
    let trace = [b"\x17\x08\x44tracing".to_vec(), trace()].concat();
    let mut plain = tempfile::NamedTempFile::new().expect("a file");
    plain.write_all(&trace).expect("room");
    for input in [
        Input::open(plain.path()).expect("opens"),
        open(trace.clone()).expect("opens"),
        open(xz(&trace)).expect("opens"),
    ] {
        assert_eq!(input.kind(), Kind::TraceDat);
        // The limit is for temporary files.
        let mut seekable = input.into_seekable(trace.len() as u64).expect("room");
        let mut out = Vec::new();
        seekable.file.read_to_end(&mut out).expect("readable");
        assert!(out == trace && seekable.length == trace.len() as u64 && seekable.broken.is_none());
        seekable.file.rewind().expect("a file");
    }
    assert!(
        Input::open(plain.path())
            .expect("opens")
            .into_seekable(1)
            .is_ok()
    );
    assert!(
        open(trace.clone())
            .expect("opens")
            .into_seekable(trace.len() as u64 - 1)
            .is_err()
    );
    let file = zstd(&trace);
    let cut = open(file[..file.len() - 9].to_vec()).expect("opens");
    let seekable = cut.into_seekable(u64::MAX).expect("room");
    assert!(seekable.length > 1000 && matches!(seekable.broken, Some(InputError::Broken { .. })));
}

/// Gives something, then fails.
struct Failing(usize);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0 {
            0 => Err(io::Error::other("the disk is gone")),
            1 => {
                self.0 -= 1;
                Err(io::ErrorKind::Interrupted.into())
            }
            _ => {
                self.0 -= 1;
                let line = b" rl-7 [001] ..... 1.000000: e: t\n rl";
                buffer[..line.len()].copy_from_slice(line);
                Ok(line.len())
            }
        }
    }
}

#[test]
fn a_failing_reader() {
    let mut lines = Input::from_reader("disk", Failing(2))
        .expect("opens")
        .into_lines();
    assert_eq!(
        lines.next_line().expect("read").expect("a line").end,
        LineEnd::Newline
    );
    assert_eq!(
        lines.next_line().expect("read").expect("a line").end,
        LineEnd::Broken
    );
    let error = lines.next_line().expect_err("gone");
    assert!(
        matches!(error, InputError::Read { offset: 36, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("the disk is gone"), "{error}");
    assert!(lines.next_line().expect("only once").is_none());
    assert!(Input::from_reader("disk", Failing(0)).is_err());
}
