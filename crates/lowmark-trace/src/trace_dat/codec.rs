//! Compression in a trace.dat: each chunk on its own, with both its sizes before it.

use flate2::read::ZlibDecoder;
use std::io::Read;

/// How the sections and chunks of a file are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    None,
    Zlib,
    Zstd,
}

impl Codec {
    /// The codec that the file names.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "none" | "" => Some(Codec::None),
            "zlib" => Some(Codec::Zlib),
            "zstd" => Some(Codec::Zstd),
            _ => None,
        }
    }

    /// The `size` bytes that `data` holds, which the caller has bounded; more or fewer are an error.
    pub(crate) fn decompress(self, data: &[u8], size: usize) -> Result<Vec<u8>, String> {
        let output = match self {
            Codec::None => {
                return Err(
                    "it is marked as compressed in a file that names no compression".into(),
                );
            }
            Codec::Zlib => {
                let mut output = Vec::new();
                // One byte more, to see whether there is one.
                let mut decoder = ZlibDecoder::new(data).take(size as u64 + 1);
                decoder
                    .read_to_end(&mut output)
                    .map_err(|error| error.to_string())?;
                output
            }
            Codec::Zstd => zstd::bulk::decompress(data, size).map_err(|error| error.to_string())?,
        };
        if output.len() == size {
            return Ok(output);
        }
        Err(format!(
            "{size} bytes were announced, {} came out",
            output.len()
        ))
    }
}
