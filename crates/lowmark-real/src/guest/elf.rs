//! As much of ELF (64 bit, little endian) as guests need.

use std::ops::Range;

/// Size of the header of a file.
const HEADER: usize = 64;

/// The number of `size` bytes at `offset` of what begins at `base`.
fn field(bytes: &[u8], base: usize, offset: usize, size: usize) -> Option<usize> {
    let at = base.checked_add(offset)?;
    let field = bytes.get(at..at.checked_add(size)?)?;
    let value = field
        .iter()
        .rev()
        .fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    usize::try_from(value).ok()
}

fn is_elf64(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF\x02\x01")
}

/// Whether this is a whole kernel as `vmlinux`, which QEMU boots only with some options.
pub(super) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

/// A program without what is not loaded: symbols and debugging information go, the guest's memory stays
/// free. What is no ELF program stays as it is.
pub(super) fn strip(mut program: Vec<u8>) -> Vec<u8> {
    let Some(end) = loaded_end(&program).filter(|&end| end <= program.len()) else {
        return program;
    };
    program.truncate(end);
    // No section headers any more: e_shoff, e_shentsize, e_shnum, e_shstrndx.
    program[0x28..0x30].fill(0);
    program[0x3a..0x40].fill(0);
    program
}

/// Where the last segment ends in the file.
fn loaded_end(program: &[u8]) -> Option<usize> {
    if !is_elf64(program) {
        return None;
    }
    let (table, size, count) = (
        field(program, 0, 0x20, 8)?,
        field(program, 0, 0x36, 2)?,
        field(program, 0, 0x38, 2)?,
    );
    let mut end = table.checked_add(size.checked_mul(count)?)?.max(HEADER);
    for entry in 0..count {
        let at = table.checked_add(entry.checked_mul(size)?)?;
        let segment = field(program, at, 8, 8)?.checked_add(field(program, at, 0x20, 8)?)?;
        end = end.max(segment);
    }
    Some(end)
}

/// The program's interpreter, if it is linked dynamically.
pub(super) fn interpreter(program: &[u8]) -> Option<String> {
    const PT_INTERP: usize = 3;
    if !is_elf64(program) {
        return None;
    }
    let (table, size, count) = (
        field(program, 0, 0x20, 8)?,
        field(program, 0, 0x36, 2)?,
        field(program, 0, 0x38, 2)?,
    );
    let mut headers = (0..count).filter_map(|entry| table.checked_add(entry.checked_mul(size)?));
    let header = headers.find(|&at| field(program, at, 0, 4) == Some(PT_INTERP))?;
    let start = field(program, header, 8, 8)?;
    let end = start.checked_add(field(program, header, 0x20, 8)?)?;
    let text = program.get(start..end)?;
    Some(
        String::from_utf8_lossy(text)
            .trim_end_matches('\0')
            .to_owned(),
    )
}

/// Content of a section.
fn section<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    if !is_elf64(object) {
        return None;
    }
    let (table, size, count) = (
        field(object, 0, 0x28, 8)?,
        field(object, 0, 0x3a, 2)?,
        field(object, 0, 0x3c, 2)?,
    );
    let place = |index: usize| -> Option<(usize, Range<usize>)> {
        let at = table.checked_add(index.checked_mul(size)?)?;
        let start = field(object, at, 0x18, 8)?;
        let end = start.checked_add(field(object, at, 0x20, 8)?)?;
        Some((field(object, at, 0, 4)?, start..end))
    };
    let names = object.get(place(field(object, 0, 0x3e, 2)?)?.1)?;
    let found = (0..count).filter_map(place).find(|(at, _)| {
        names.get(*at..).is_some_and(|rest| {
            rest.strip_prefix(name.as_bytes())
                .is_some_and(|rest| rest.starts_with(b"\0"))
        })
    })?;
    object.get(found.1)
}

/// The modules that a module needs, as modpost wrote them into it.
pub(super) fn depends(module: &[u8]) -> Option<Vec<String>> {
    let info = section(module, ".modinfo")?;
    let mut entries = info.split(|byte| *byte == 0);
    let names = entries.find_map(|entry| entry.strip_prefix(b"depends="))?;
    let names = String::from_utf8_lossy(names);
    Some(
        names
            .split(',')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_stripped_and_names_its_interpreter() {
        let own = std::fs::read("/proc/self/exe").expect("this program");
        let length = own.len();
        if let Some(interpreter) = interpreter(&own) {
            assert!(interpreter.starts_with('/'), "{interpreter}");
        }
        let stripped = strip(own);
        assert!(stripped.len() < length);
        assert_eq!(strip(stripped.clone()), stripped);
    }

    #[test]
    fn what_is_no_elf_is_left_alone() {
        let zeroes = [b"\x7fELF\x02\x01".to_vec(), vec![0xff; 90]].concat();
        for bytes in [
            Vec::new(),
            b"#!/bin/sh\n".to_vec(),
            b"\x7fELF\x02\x01".to_vec(),
            zeroes,
        ] {
            assert_eq!(strip(bytes.clone()), bytes);
            assert_eq!(depends(&bytes), None);
            assert_eq!(interpreter(&bytes), None);
        }
    }
}
