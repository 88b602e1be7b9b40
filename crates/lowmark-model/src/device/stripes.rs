//! Striping over equal members (md RAID0, `drivers/md/raid0.c`): chunk after chunk on one member after the
//! other. The array has no queue of its own; every member has one, with its elevator.

use crate::ids::{DeviceId, QueueId};
use lowmark_spec::machine::{Device, PAGE_SIZE};
use std::ops::Range;
use typed_index_collections::TiVec;

/// The queues of a device.
#[derive(Debug)]
pub(super) struct Stripes {
    first: QueueId,
    members: usize,
    /// Pages on a member before the next one follows.
    chunk: u64,
}

impl Stripes {
    /// Those of every device: the queues of one follow those of the one before.
    pub(super) fn of(devices: &[Device]) -> TiVec<DeviceId, Stripes> {
        let mut first = 0;
        let stripes = |device: &Device| {
            let members = device.members as usize;
            first += members;
            Stripes {
                first: QueueId::from(first - members),
                members,
                chunk: (device.chunk / PAGE_SIZE).max(1),
            }
        };
        devices.iter().map(stripes).collect()
    }

    /// All of its queues.
    pub(super) fn queues(&self) -> Range<QueueId> {
        self.first..self.member(self.members)
    }

    /// The queue of a member.
    fn member(&self, number: usize) -> QueueId {
        QueueId::from(usize::from(self.first) + number)
    }

    /// The queue that a page of the device belongs to, and where it lies on that member
    /// (`map_sector`).
    #[inline]
    pub(super) fn place(&self, position: u64) -> (QueueId, u64) {
        if self.members == 1 {
            return (self.first, position);
        }
        let (chunk, within) = (position / self.chunk, position % self.chunk);
        let members = self.members as u64;
        let queue = self.member((chunk % members) as usize);
        (queue, chunk / members * self.chunk + within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_go_round_the_members() {
        let disk = Device::hdd("sda", 1 << 30);
        let array = Device {
            members: 3,
            chunk: 4 * PAGE_SIZE,
            ..disk.clone()
        };
        let stripes = Stripes::of(&[disk.clone(), array, disk]);
        let queue = QueueId::from;
        let [disk, array, last] = [0, 1, 2].map(|device| &stripes[DeviceId::from(device)]);
        assert_eq!(disk.place(7), (queue(0), 7));
        assert_eq!(last.place(7), (queue(4), 7));
        assert_eq!(array.queues(), queue(1)..queue(4));
        let places = [0, 3, 4, 11, 12, 15, 16, 29].map(|page| array.place(page));
        let expected = [
            (1, 0),
            (1, 3),
            (2, 0),
            (3, 3),
            (1, 4),
            (1, 7),
            (2, 4),
            (2, 9),
        ]
        .map(|(number, page)| (queue(number), page));
        assert_eq!(places, expected);
    }
}
