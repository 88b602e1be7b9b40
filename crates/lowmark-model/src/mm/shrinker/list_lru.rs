//! Lists of unused objects in the order in which they came there (`mm/list_lru.c`).

use std::collections::VecDeque;

/// A list; an object knows its place by its *age*, a number from 1 on.
///
/// An object that is removed from the middle leaves an empty place. The list drops all empty places when they outnumber the others.
#[derive(Debug)]
pub(crate) struct ListLru<T> {
    /// Places in the order of ages; the first is not empty.
    places: VecDeque<(u64, Option<T>)>,
    /// Places that are not empty.
    len: usize,
    next: u64,
}

impl<T> Default for ListLru<T> {
    fn default() -> Self {
        ListLru {
            places: VecDeque::new(),
            len: 0,
            next: 1,
        }
    }
}

impl<T: Copy> ListLru<T> {
    /// Objects on it.
    pub(crate) fn len(&self) -> u64 {
        self.len as u64
    }

    /// Puts an object where it is the newest: its age.
    pub(crate) fn push(&mut self, object: T) -> u64 {
        let age = self.next;
        self.next += 1;
        self.places.push_back((age, Some(object)));
        self.len += 1;
        age
    }

    /// Takes away what has this age.
    pub(crate) fn remove(&mut self, age: u64) -> Option<T> {
        let at = match self.places.front() {
            Some(&(oldest, _)) if oldest == age => 0,
            _ => self
                .places
                .binary_search_by_key(&age, |place| place.0)
                .ok()?,
        };
        let object = self.places[at].1.take()?;
        self.len -= 1;
        if self.places.len() > 2 * self.len {
            self.places.retain(|place| place.1.is_some());
        }
        while let Some((_, None)) = self.places.front() {
            self.places.pop_front();
        }
        Some(object)
    }

    /// The oldest of those that are older than `end`.
    pub(crate) fn oldest_before(&self, end: u64) -> Option<(u64, T)> {
        let &(age, object) = self.places.front()?;
        (age < end).then_some((age, object?))
    }

    /// The age that the next object gets: a walk that began now ends before it, and meets nothing twice.
    pub(crate) fn end(&self) -> u64 {
        self.next
    }

    /// All objects, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, T)> + '_ {
        let taken = self.places.iter();
        taken.filter_map(|&(age, object)| Some((age, object?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

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

    /// Beside a sorted map, which has no empty places.
    #[test]
    fn it_is_a_map_by_age() {
        let (mut list, mut naive) = (ListLru::default(), BTreeMap::new());
        let mut random = 12345_u64;
        for step in 0..20_000_u64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let pushes = (random >> 33) % 100 < if step / 1000 % 2 == 0 { 70 } else { 30 };
            if pushes {
                naive.insert(list.push(step), step);
            } else {
                let age = 1 + (random >> 40) % list.end();
                assert_eq!(list.remove(age), naive.remove(&age));
            }
            assert_eq!(list.len(), naive.len() as u64);
            let oldest = naive.first_key_value().map(|(&age, &object)| (age, object));
            assert_eq!(list.oldest_before(u64::MAX), oldest);
            assert!(list.places.len() <= 2 * list.len + 1);
        }
        assert!(list.iter().eq(naive.into_iter()));
    }
}
