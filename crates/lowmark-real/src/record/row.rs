//! One look at a file: its numbers in the order of their names.
//!
//! A file has the same names in the same order each time but for few: a disk comes or goes. So a name is compared with
//! the one that stood there at the look before, and only looked for where it is another.

use lowmark_record::CounterLog;

/// Names and numbers of a file.
#[derive(Debug, Default)]
pub(super) struct Row {
    names: Vec<String>,
    values: Vec<u64>,
    /// Where the next name is expected.
    next: usize,
    /// What stands before every name.
    prefix: &'static str,
}

impl Row {
    /// A look begins.
    pub(super) fn begin(&mut self) {
        self.next = 0;
        self.prefix = "";
    }

    /// What follows is of this part of the look.
    pub(super) fn part(&mut self, prefix: &'static str) {
        self.prefix = prefix;
    }

    /// A number under a name that is made of these parts.
    pub(super) fn put(&mut self, parts: &[&[u8]], value: u64) {
        let known = self.names.get(self.next);
        if !known.is_some_and(|name| is_made_of(name, self.prefix, parts)) {
            self.next = self.place_of(parts);
        }
        self.values[self.next] = value;
        self.next += 1;
    }

    /// Where a name stands; it is added if it is new.
    fn place_of(&mut self, parts: &[&[u8]]) -> usize {
        let mut names = self.names.iter();
        if let Some(place) = names.position(|name| is_made_of(name, self.prefix, parts)) {
            return place;
        }
        let name = String::from_utf8_lossy(&parts.concat()).into_owned();
        self.names.push(format!("{}{name}", self.prefix));
        self.values.push(0);
        self.names.len() - 1
    }

    /// The number of a name.
    #[cfg(test)]
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        let place = self.names.iter().position(|known| known == name)?;
        Some(self.values[place])
    }

    /// Adds the look to a log, which belongs to this row alone.
    pub(super) fn log(&self, time_ns: u64, log: &mut CounterLog) {
        let new = &self.names[log.names().len().min(self.names.len())..];
        if !new.is_empty() {
            log.add_names(new.iter().map(String::as_str));
        }
        log.push(time_ns, &self.values);
    }
}

/// Whether a name is this prefix and these parts.
fn is_made_of(name: &str, prefix: &str, parts: &[&[u8]]) -> bool {
    let mut rest = name.as_bytes().strip_prefix(prefix.as_bytes());
    for part in parts {
        rest = rest.and_then(|rest| rest.strip_prefix(*part));
    }
    rest.is_some_and(<[u8]>::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_come_and_go_keep_their_places() {
        let mut row = Row::default();
        let mut log = CounterLog::new("proc/diskstats");
        let looks: [&[(&str, u64)]; 3] = [
            &[("a", 1), ("b", 2)],
            &[("new", 7), ("b", 3)],
            &[("a", 4), ("new", 8)],
        ];
        for (time, look) in looks.iter().enumerate() {
            row.begin();
            row.part("disk/");
            for (name, value) in *look {
                row.put(&[&name.as_bytes()[..1], &name.as_bytes()[1..]], *value);
            }
            row.log(time as u64, &mut log);
        }
        assert_eq!(log.names(), ["disk/a", "disk/b", "disk/new"]);
        assert_eq!(log.values("disk/a"), [(0, 1), (1, 1), (2, 4)]);
        assert_eq!(log.values("disk/b"), [(0, 2), (1, 3), (2, 3)]);
        assert_eq!(log.values("disk/new"), [(1, 7), (2, 8)]);
        assert_eq!(row.get("disk/new"), Some(8));
    }
}
