//! Lists of unused objects in the order in which they came there (`mm/list_lru.c`).

use std::collections::BTreeMap;

/// A list; an object knows its place by its *age*, a number from 1 on.
#[derive(Debug)]
pub(crate) struct ListLru<T> {
    by_age: BTreeMap<u64, T>,
    next: u64,
}

impl<T> Default for ListLru<T> {
    fn default() -> Self {
        ListLru {
            by_age: BTreeMap::new(),
            next: 1,
        }
    }
}

impl<T: Copy> ListLru<T> {
    /// Objects on it.
    pub(crate) fn len(&self) -> u64 {
        self.by_age.len() as u64
    }

    /// Puts an object where it is the newest: its age.
    pub(crate) fn push(&mut self, object: T) -> u64 {
        let age = self.next;
        self.next += 1;
        self.by_age.insert(age, object);
        age
    }

    /// Takes away what has this age.
    pub(crate) fn remove(&mut self, age: u64) -> Option<T> {
        self.by_age.remove(&age)
    }

    /// The oldest of those that are older than `end`.
    pub(crate) fn oldest_before(&self, end: u64) -> Option<(u64, T)> {
        let (&age, &object) = self.by_age.first_key_value()?;
        (age < end).then_some((age, object))
    }

    /// The age that the next object gets: a walk that began now ends before it, and meets nothing twice.
    pub(crate) fn end(&self) -> u64 {
        self.next
    }

    /// All objects, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, T)> + '_ {
        self.by_age.iter().map(|(&age, &object)| (age, object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_meets_nothing_twice() {
        let mut list = ListLru::default();
        let ages: Vec<u64> = (10..15).map(|object| list.push(object)).collect();
        assert_eq!(ages, [1, 2, 3, 4, 5]);
        assert_eq!(list.remove(2), Some(11));
        assert_eq!(list.remove(2), None);
        let end = list.end();
        let mut met = Vec::new();
        while let Some((age, object)) = list.oldest_before(end) {
            met.push(object);
            list.remove(age);
            list.push(object);
        }
        assert_eq!(met, [10, 12, 13, 14]);
        assert_eq!(list.len(), 4);
        let left: Vec<i32> = list.iter().map(|(_, object)| object).collect();
        assert_eq!(left, met);
    }
}
