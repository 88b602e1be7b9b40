//! What stands in a trace.dat of version 6 before the pages: who writes one gives this and then the pages.

use crate::record::Endian;
use std::collections::BTreeMap;

/// The description of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Byte order of the pages, and of all numbers here.
    pub endian: Endian,
    /// Bytes of a long of the kernel: 4 or 8.
    pub long_size: u8,
    /// Bytes of a page of its ring buffer.
    pub page_size: u32,
    /// Its file `events/header_page`.
    pub header_page: String,
    /// Its file `events/header_event`.
    pub header_event: String,
    /// By group of events, their files `format`.
    pub formats: BTreeMap<String, Vec<String>>,
    /// Lines `PID COMM`, as in `saved_cmdlines`.
    pub comms: String,
    /// Pages of each CPU, which stand one CPU after the other.
    pub pages: Vec<u64>,
}

impl Head {
    /// Its bytes, whole pages of them. The places of the data follow from its own length.
    pub fn bytes(&self) -> Vec<u8> {
        let endian = self.endian;
        let mut out = b"\x17\x08\x44tracing6\0".to_vec();
        out.extend([u8::from(endian == Endian::Big), self.long_size]);
        put_u32(endian, self.page_size, &mut out);
        let texts = [
            ("header_page", &self.header_page),
            ("header_event", &self.header_event),
        ];
        for (name, text) in texts {
            put_name(name, &mut out);
            put_text(endian, text, &mut out);
        }
        // ftrace's own events: none.
        put_u32(endian, 0, &mut out);
        put_u32(endian, self.formats.len() as u32, &mut out);
        for (group, formats) in &self.formats {
            put_name(group, &mut out);
            put_u32(endian, formats.len() as u32, &mut out);
            formats
                .iter()
                .for_each(|text| put_text(endian, text, &mut out));
        }
        // Neither kallsyms nor printk formats.
        put_u64(endian, 0, &mut out);
        put_text(endian, &self.comms, &mut out);
        put_u32(endian, self.pages.len() as u32, &mut out);
        // No options.
        out.extend_from_slice(b"options  \0\0\0flyrecord\0");
        let page = self.page_size as usize;
        let end = (out.len() + 16 * self.pages.len()).next_multiple_of(page);
        let mut place = end as u64;
        for pages in &self.pages {
            let size = pages * u64::from(self.page_size);
            put_u64(endian, place, &mut out);
            put_u64(endian, size, &mut out);
            place += size;
        }
        out.resize(end, 0);
        out
    }
}

fn put_u32(endian: Endian, value: u32, out: &mut Vec<u8>) {
    out.extend(match endian {
        Endian::Little => value.to_le_bytes(),
        Endian::Big => value.to_be_bytes(),
    });
}

fn put_u64(endian: Endian, value: u64, out: &mut Vec<u8>) {
    out.extend(match endian {
        Endian::Little => value.to_le_bytes(),
        Endian::Big => value.to_be_bytes(),
    });
}

fn put_name(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.push(0);
}

/// A text after its length in eight bytes.
fn put_text(endian: Endian, text: &str, out: &mut Vec<u8>) {
    put_u64(endian, text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}
