//! A column of one row group, packed until the group is full.
//!
//! Most values of events are small, and times are close to each other. So a row group waits in the form in
//! which it needs least room, and is unpacked column by column when it is written:
//!
//! 1. Values that are present, each as the difference to the one before (times) or as it is, zigzag so that
//!    small negative ones stay small, seven bits a byte.
//! 2. Which rows have a value, one bit each, if not all have one.

/// A column's values.
#[derive(Debug, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    /// Rows with a value, one bit each; empty as long as all have one.
    present: Vec<u64>,
    rows: usize,
    values: usize,
}

impl Packed {
    /// Adds a row.
    #[inline]
    pub(super) fn push(&mut self, value: Option<i64>) {
        let (word, bit) = (self.rows / 64, self.rows % 64);
        if value.is_none() && self.present.is_empty() {
            // All before had one.
            self.present = vec![u64::MAX; word + 1];
            self.present[word] = (1 << bit) - 1;
        } else if !self.present.is_empty() {
            if word == self.present.len() {
                self.present.push(0);
            }
            self.present[word] |= u64::from(value.is_some()) << bit;
        }
        self.rows += 1;
        if let Some(value) = value {
            self.values += 1;
            let mut rest = (value << 1 ^ value >> 63).cast_unsigned();
            while rest >= 0x80 {
                self.bytes.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            self.bytes.push(rest as u8);
        }
    }

    /// The values in order, absent ones apart.
    pub(super) fn values(&self) -> impl Iterator<Item = i64> {
        let mut bytes = self.bytes.iter();
        (0..self.values).map(move |_| {
            let (mut value, mut shift) = (0u64, 0);
            for &b in bytes.by_ref() {
                value |= u64::from(b & 0x7f) << shift;
                shift += 7;
                if b & 0x80 == 0 {
                    break;
                }
            }
            (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
        })
    }

    /// For each row 1 if it has a value, else 0: the definition levels of an optional column.
    pub(super) fn levels(&self, out: &mut Vec<i16>) {
        out.clear();
        out.extend((0..self.rows).map(|row| match self.present.get(row / 64) {
            Some(word) => (word >> (row % 64) & 1) as i16,
            None => 1,
        }));
    }

    /// Removes every row; the room stays.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.present.clear();
        self.rows = 0;
        self.values = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(rows: &[Option<i64>]) {
        let mut packed = Packed::default();
        for _ in 0..2 {
            rows.iter().for_each(|row| packed.push(*row));
            let mut levels = Vec::new();
            packed.levels(&mut levels);
            let mut values = packed.values();
            let unpacked: Vec<Option<i64>> = levels
                .iter()
                .map(|level| if *level == 1 { values.next() } else { None })
                .collect();
            assert_eq!(unpacked, rows);
            assert_eq!(values.next(), None);
            drop(values);
            packed.clear();
        }
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        there_and_back(&[]);
        there_and_back(&[Some(0), Some(-1), Some(i64::MIN), Some(i64::MAX), Some(64)]);
        there_and_back(&[None; 130]);
        there_and_back(&[Some(7); 130]);
        for absent in [0, 1, 63, 64, 65, 127, 128, 199] {
            let rows = (0..200).map(|row| (row != absent).then_some(row * 1000 - 70_000));
            there_and_back(&rows.collect::<Vec<_>>());
        }
    }
}
