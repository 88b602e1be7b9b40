//! Writes small trace.dat and perf.data files.

use lowmark_trace::record::Endian;
use std::io::Write;

/// Page size of the files written: small, so that there are many pages.
pub(crate) const PAGE: usize = 256;
/// Id of the event [`FORMAT`] describes.
pub(crate) const EVENT: u16 = 600;

pub(crate) const FORMAT: &str = "name: mm_vmscan_kswapd_sleep
ID: 600
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:int nid;\toffset:8;\tsize:4;\tsigned:1;

print fmt: \"nid=%d\", REC->nid
";

/// How v7 files are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    None,
    Zlib,
    Zstd,
}

impl Codec {
    fn name(self) -> &'static str {
        match self {
            Codec::None => "none",
            Codec::Zlib => "zlib",
            Codec::Zstd => "zstd",
        }
    }

    fn compress(self, data: &[u8]) -> Vec<u8> {
        match self {
            Codec::None => data.to_vec(),
            Codec::Zlib => {
                let level = flate2::Compression::default();
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(data).expect("memory");
                encoder.finish().expect("memory")
            }
            Codec::Zstd => zstd::bulk::compress(data, 3).expect("memory"),
        }
    }
}

/// Bytes in the order of a machine.
#[derive(Debug, Clone)]
pub(crate) struct Bytes {
    pub(crate) endian: Endian,
    pub(crate) bytes: Vec<u8>,
}

impl Bytes {
    pub(crate) fn new(endian: Endian) -> Self {
        Bytes {
            endian,
            bytes: Vec::new(),
        }
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.raw(&[value])
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        match self.endian {
            Endian::Little => self.raw(&value.to_le_bytes()),
            Endian::Big => self.raw(&value.to_be_bytes()),
        }
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        match self.endian {
            Endian::Little => self.raw(&value.to_le_bytes()),
            Endian::Big => self.raw(&value.to_be_bytes()),
        }
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        match self.endian {
            Endian::Little => self.raw(&value.to_le_bytes()),
            Endian::Big => self.raw(&value.to_be_bytes()),
        }
    }

    pub(crate) fn sized(&mut self, text: &str) -> &mut Self {
        self.u64(text.len() as u64).raw(text.as_bytes())
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Zeros up to a multiple of `unit`.
    pub(crate) fn align(&mut self, unit: usize) -> &mut Self {
        self.bytes
            .resize(self.bytes.len().next_multiple_of(unit), 0);
        self
    }

    /// Overwrites the `u64` at `at`.
    pub(crate) fn set_u64(&mut self, at: usize, value: u64) {
        let mut bytes = Bytes::new(self.endian);
        bytes.u64(value);
        self.bytes[at..at + 8].copy_from_slice(&bytes.bytes);
    }
}

/// A machine: byte order and size of a long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Machine {
    pub(crate) endian: Endian,
    pub(crate) long: usize,
}

pub(crate) const PC: Machine = Machine {
    endian: Endian::Little,
    long: 8,
};

/// Losses that a page tells.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lost {
    No,
    Uncounted,
    Counted(u64),
}

/// A page of a ring buffer.
pub(crate) struct Page {
    machine: Machine,
    time: u64,
    data: Bytes,
}

impl Page {
    pub(crate) fn new(machine: Machine, time: u64) -> Self {
        Page {
            machine,
            time,
            data: Bytes::new(machine.endian),
        }
    }

    fn word(mut self, kind: u32, delta: u32) -> Self {
        let word = match self.machine.endian {
            Endian::Little => delta << 5 | kind,
            Endian::Big => kind << 27 | delta,
        };
        self.data.u32(word);
        self
    }

    /// The event of [`FORMAT`], `delta` after the one before.
    pub(crate) fn event(self, delta: u32, pid: u32, nid: u32) -> Self {
        let mut page = self.word(3, delta);
        page.data.u16(EVENT).u16(0).u32(pid).u32(nid);
        page
    }

    /// The same with its length in a word of its own.
    pub(crate) fn long_event(self, delta: u32, pid: u32, nid: u32) -> Self {
        let mut page = self.word(0, delta);
        page.data.u32(16).u16(EVENT).u16(0).u32(pid).u32(nid);
        page
    }

    pub(crate) fn extend(self, delta: u64) -> Self {
        let mut page = self.word(30, (delta & ((1 << 27) - 1)) as u32);
        page.data.u32((delta >> 27) as u32);
        page
    }

    pub(crate) fn absolute(self, time: u64) -> Self {
        let mut page = self.word(31, (time & ((1 << 27) - 1)) as u32);
        page.data.u32((time >> 27) as u32);
        page
    }

    /// A discarded event of 12 bytes.
    pub(crate) fn discarded(self, delta: u32) -> Self {
        let mut page = self.word(29, delta);
        page.data.u32(12).u32(0xffff_ffff).u32(0xffff_ffff);
        page
    }

    /// The rest is unused.
    pub(crate) fn unused(self, bytes: usize) -> Self {
        let mut page = self.word(29, 0);
        page.data.raw(&vec![0xff; bytes]);
        page
    }

    pub(crate) fn finish(self, lost: Lost) -> Vec<u8> {
        let mut page = Bytes::new(self.machine.endian);
        let flags = match lost {
            Lost::No => 0,
            Lost::Uncounted => 1 << 31,
            Lost::Counted(_) => 3 << 30,
        };
        let commit = self.data.len() as u64 | flags;
        page.u64(self.time);
        let long = |page: &mut Bytes, value: u64| match self.machine.long {
            8 => page.u64(value).len(),
            _ => page.u32(value as u32).len(),
        };
        long(&mut page, commit);
        page.raw(&self.data.bytes);
        if let Lost::Counted(count) = lost {
            long(&mut page, count);
        }
        assert!(page.len() <= PAGE, "the page is full");
        page.bytes.resize(PAGE, 0);
        page.bytes
    }
}

/// The pages of one CPU.
pub(crate) struct Cpu {
    pub(crate) cpu: u32,
    pub(crate) pages: Vec<Vec<u8>>,
}

/// A buffer: name and CPUs.
pub(crate) struct Buffer {
    pub(crate) name: &'static str,
    pub(crate) cpus: Vec<Cpu>,
}

fn start(machine: Machine, version: &str) -> Bytes {
    let mut file = Bytes::new(machine.endian);
    file.raw(b"\x17\x08\x44tracing")
        .raw(version.as_bytes())
        .u8(0);
    file.u8(u8::from(machine.endian == Endian::Big));
    file.u8(machine.long as u8).u32(PAGE as u32);
    file
}

fn header_info(file: &mut Bytes, machine: Machine) {
    let long = machine.long;
    let text = format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
         \tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
         \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
         \tfield: char data;\toffset:{};\tsize:{};\tsigned:0;\n",
        8 + long,
        PAGE - 8 - long,
    );
    file.raw(b"header_page\0").sized(&text);
    file.raw(b"header_event\0")
        .sized("# compressed entry header\n");
}

fn event_formats(file: &mut Bytes) {
    file.u32(1).raw(b"vmscan\0").u32(1).sized(FORMAT);
}

/// What v6 and perf.data have between the start and the CPUs.
fn metadata(file: &mut Bytes, machine: Machine, comms: &str) {
    header_info(file, machine);
    file.u32(0);
    event_formats(file);
    file.u32(3).raw(b"sym").u32(0).sized(comms);
}

/// The blob that perf.data carries.
pub(crate) fn tracing_data(machine: Machine) -> Vec<u8> {
    let mut file = start(machine, "0.6");
    metadata(&mut file, machine, "");
    file.bytes
}

/// A trace.dat of version 6; the first buffer is the main one. `options` are given as they are.
pub(crate) fn file_6(machine: Machine, buffers: &[Buffer], options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut file = start(machine, "6");
    metadata(&mut file, machine, "7 kswapd0\n8 a b\n");
    let cpus = buffers[0].cpus.len();
    file.u32(cpus as u32).raw(b"options  \0");
    for (id, data) in options {
        file.u16(*id).u32(data.len() as u32).raw(data);
    }
    let mut places = Vec::new();
    for buffer in &buffers[1..] {
        file.u16(3).u32(8 + buffer.name.len() as u32 + 1);
        places.push(file.len());
        file.u64(0).raw(buffer.name.as_bytes()).u8(0);
    }
    file.u16(0);
    for (index, buffer) in buffers.iter().enumerate() {
        if index > 0 {
            file.set_u64(places[index - 1], file.len() as u64);
        }
        file.raw(b"flyrecord\0");
        let table = file.len();
        file.raw(&vec![0; 16 * cpus]);
        for (index, cpu) in buffer.cpus.iter().enumerate() {
            file.align(PAGE);
            let (place, data) = (file.len() as u64, cpu.pages.concat());
            file.set_u64(table + 16 * index, place);
            file.set_u64(table + 16 * index + 8, data.len() as u64);
            file.raw(&data);
        }
    }
    file.bytes
}

/// A trace.dat of version 7, its sections compressed too.
pub(crate) fn file_7(machine: Machine, codec: Codec, buffers: &[Buffer]) -> Vec<u8> {
    let mut file = start(machine, "7");
    let version = if codec == Codec::None { "" } else { "1.0" };
    file.raw(codec.name().as_bytes())
        .u8(0)
        .raw(version.as_bytes())
        .u8(0);
    let first = file.len();
    file.u64(0);
    let mut sections = Vec::new();
    for id in [16u16, 17, 18, 21] {
        let mut body = Bytes::new(machine.endian);
        match id {
            16 => header_info(&mut body, machine),
            17 => drop(body.u32(0)),
            18 => event_formats(&mut body),
            _ => drop(body.sized("7 kswapd0\n8 a b\n")),
        }
        sections.push((id, file.len()));
        section(&mut file, id, codec, &body.bytes);
    }
    file.set_u64(first, file.len() as u64);
    file.u16(0).u16(0).u32(0).u64(0);
    for (id, place) in sections {
        file.u16(id).u32(8).u64(place as u64);
    }
    file.u16(4)
        .u32(14)
        .raw(b"[local] mono \0")
        .u16(8)
        .u32(4)
        .u32(2);
    let mut next = file.len() + 6;
    file.u16(0).u32(8).u64(0);
    for buffer in buffers {
        let header = file.len();
        file.u16(3)
            .u16(u16::from(codec != Codec::None))
            .u32(0)
            .u64(0);
        let mut option = Bytes::new(machine.endian);
        option
            .u64(header as u64)
            .raw(buffer.name.as_bytes())
            .raw(b"\0local\0");
        option.u32(PAGE as u32).u32(buffer.cpus.len() as u32);
        for cpu in &buffer.cpus {
            file.align(PAGE);
            let start = file.len();
            let mut size = 0;
            if codec == Codec::None {
                file.raw(&cpu.pages.concat());
            } else {
                let chunks = cpu.pages.chunks(2);
                file.u32(chunks.len() as u32);
                // As trace-cmd has it: the number of chunks is not in the size.
                size = 4;
                for chunk in chunks.map(<[Vec<u8>]>::concat) {
                    let packed = codec.compress(&chunk);
                    file.u32(packed.len() as u32)
                        .u32(chunk.len() as u32)
                        .raw(&packed);
                }
            }
            size = file.len() - start - size;
            option.u32(cpu.cpu).u64(start as u64).u64(size as u64);
        }
        file.set_u64(next, file.len() as u64);
        file.u16(0).u16(0).u32(0).u64(0);
        file.u16(3).u32(option.len() as u32).raw(&option.bytes);
        next = file.len() + 6;
        file.u16(0).u32(8).u64(0);
    }
    file.bytes
}

fn section(file: &mut Bytes, id: u16, codec: Codec, body: &[u8]) {
    if codec == Codec::None {
        file.u16(id).u16(0).u32(0).u64(body.len() as u64).raw(body);
        return;
    }
    let packed = codec.compress(body);
    file.u16(id).u16(1).u32(0).u64(packed.len() as u64 + 8);
    file.u32(packed.len() as u32)
        .u32(body.len() as u32)
        .raw(&packed);
}
