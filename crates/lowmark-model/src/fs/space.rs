//! Free space of a file system, in groups (XFS: allocation groups; ext4: block groups).

/// Free runs of a group, (start, length) in pages of the device, ascending and not adjacent.
type Group = Vec<(u64, u64)>;

/// Free space.
#[derive(Debug)]
pub(super) struct Space {
    groups: Vec<Group>,
    /// First page of each group.
    starts: Vec<u64>,
    free: u64,
}

impl Space {
    /// The runs `free` of a device, cut into groups that begin at every multiple of `group` pages.
    pub(super) fn new(free: &[(u64, u64)], pages: u64, group: u64) -> Space {
        let starts: Vec<u64> = (0..pages.div_ceil(group).max(1))
            .map(|n| n * group)
            .collect();
        let mut space = Space {
            groups: vec![Group::new(); starts.len()],
            starts,
            free: 0,
        };
        for &(start, length) in free {
            space.release(start, length);
        }
        space
    }

    /// Free pages.
    pub(super) fn free(&self) -> u64 {
        self.free
    }

    /// Groups.
    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// First page of a group.
    pub(super) fn start_of(&self, group: usize) -> u64 {
        self.starts[group % self.starts.len()]
    }

    fn group_of(&self, page: u64) -> usize {
        self.starts.partition_point(|&start| start <= page) - 1
    }

    /// Takes up to `want` contiguous pages: at `goal` if that is free, else the first run from there on
    /// that has them all, group by group, else the longest run there is. None: the device is full.
    pub(super) fn allocate(&mut self, goal: u64, want: u64) -> Option<(u64, u64)> {
        let home = self.group_of(goal);
        if let Some(at) = run_with(&self.groups[home], goal) {
            return Some(self.take(home, at, goal, want));
        }
        let count = self.groups.len();
        for step in 0..count {
            let group = (home + step) % count;
            let runs = &self.groups[group];
            let from = match step {
                0 => runs.partition_point(|&(start, _)| start < goal),
                _ => 0,
            };
            let fits = |&at: &usize| runs[at].1 >= want;
            if let Some(at) = (from..runs.len()).chain(0..from).find(fits) {
                let start = self.groups[group][at].0;
                return Some(self.take(group, at, start, want));
            }
        }
        let runs =
            (0..count).flat_map(|group| (0..self.groups[group].len()).map(move |at| (group, at)));
        // Of equally long ones the first.
        let (group, at) = runs.max_by_key(|&(group, at)| {
            (self.groups[group][at].1, std::cmp::Reverse((group, at)))
        })?;
        let start = self.groups[group][at].0;
        Some(self.take(group, at, start, want))
    }

    /// Takes up to `want` pages at `start` out of a run that holds it.
    fn take(&mut self, group: usize, at: usize, start: u64, want: u64) -> (u64, u64) {
        let (first, length) = self.groups[group][at];
        let taken = want.min(first + length - start);
        let before = (first, start - first);
        let after = (start + taken, first + length - start - taken);
        let rest = [before, after].into_iter().filter(|run| run.1 > 0);
        self.groups[group].splice(at..=at, rest);
        self.free -= taken;
        (start, taken)
    }

    /// Gives pages back.
    pub(super) fn release(&mut self, start: u64, length: u64) {
        let end = start + length;
        let mut start = start;
        while start < end {
            let group = self.group_of(start);
            let next = self.starts.get(group + 1).copied().unwrap_or(u64::MAX);
            let stop = end.min(next);
            self.free += stop - start;
            join(&mut self.groups[group], start, stop - start);
            start = stop;
        }
    }
}

/// The run that holds a page.
fn run_with(runs: &Group, page: u64) -> Option<usize> {
    let at = runs
        .partition_point(|&(start, _)| start <= page)
        .checked_sub(1)?;
    let (start, length) = runs[at];
    (page < start + length).then_some(at)
}

fn join(runs: &mut Group, start: u64, length: u64) {
    let mut run = (start, length);
    let mut at = runs.partition_point(|&(other, _)| other < start);
    if runs.get(at).is_some_and(|next| next.0 == start + length) {
        run.1 += runs.remove(at).1;
    }
    if let Some(before) = at.checked_sub(1)
        && runs[before].0 + runs[before].1 == start
    {
        at = before;
        run = (runs[at].0, run.1 + runs.remove(at).1);
    }
    runs.insert(at, run);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_taken_at_the_goal_or_after_it() {
        let mut space = Space::new(&[(0, 100), (120, 80)], 200, 100);
        assert_eq!(space.free(), 180);
        assert_eq!(space.allocate(10, 20), Some((10, 20)));
        assert_eq!(space.allocate(10, 20), Some((30, 20)));
        // Nothing of its group after the goal is long enough: what is before it, then the next group.
        assert_eq!(space.allocate(95, 10), Some((95, 5)));
        assert_eq!(space.allocate(95, 60), Some((120, 60)));
        assert_eq!(space.allocate(40, 1000), Some((50, 45)));
        assert_eq!(space.free(), 180 - 20 - 20 - 5 - 60 - 45);
    }

    #[test]
    fn what_comes_back_is_whole_again() {
        let mut space = Space::new(&[(0, 200)], 200, 100);
        let mut taken = Vec::new();
        while let Some(run) = space.allocate(37, 7) {
            taken.push(run);
        }
        assert_eq!(space.free(), 0);
        assert_eq!(taken.iter().map(|run| run.1).sum::<u64>(), 200);
        for (start, length) in taken {
            space.release(start, length);
        }
        assert_eq!(space.groups, [[(0, 100)], [(100, 100)]]);
    }
}
