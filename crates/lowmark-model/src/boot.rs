//! What differs from one boot of a machine to the next.
//!
//! On a real machine nobody can hold fixed how many pages are in use before the workload and where they lie, where the
//! heads of the disks are, how long exactly a command takes, and which task starts first. A result that depends on one of
//! these is chance, and runs of the same kernel on other boots show it. Boot 0 is the machine as it is described.
//!
//! 1. Pages in use before the workload: as many as the machine says, give or take [`OCCUPIED_PERMILLE`] of RAM.
//! 2. [`HOLES`] of them are free and as many others in use, drawn among the last that were taken.
//! 3. Disks: another place of the head, and times of commands that differ a little ([`crate::device`]).
//! 4. Tasks that start at the beginning do so in another order.

use crate::ids::NodeId;
use crate::mm::types::MigrateType;
use crate::world::World;
use lowmark_spec::machine::PAGE_SIZE;
use lowmark_spec::random::Stream;
use lowmark_spec::{Machine, Scenario};

/// How much more or less memory is in use than the machine says at most, in thousandths of RAM.
const OCCUPIED_PERMILLE: u64 = 5;
/// Pages in use that lie elsewhere.
const HOLES: u64 = 64;

/// One boot of a machine.
#[derive(Debug)]
pub(crate) struct Boot {
    number: u64,
}

impl Boot {
    /// The boot of a scenario.
    pub(crate) fn of(scenario: &Scenario) -> Boot {
        Boot {
            number: scenario.boot,
        }
    }

    /// Its number; 0 is the machine as it is described.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    fn stream(&self, what: &str) -> Option<Stream> {
        (self.number > 0).then(|| Stream::new(self.number, what, 0))
    }

    /// The machine with as much memory in use as it happens to be.
    pub(crate) fn machine(&self, machine: &Machine) -> Machine {
        let mut machine = machine.clone();
        if let Some(mut stream) = self.stream("occupied") {
            let range = machine.ram() / 1000 * OCCUPIED_PERMILLE / PAGE_SIZE;
            let pages = machine.occupied / PAGE_SIZE + stream.between(0, 2 * range);
            // Those that move are taken besides.
            machine.occupied = pages.saturating_sub(range + HOLES) * PAGE_SIZE;
        }
        machine
    }

    /// What differs in a world that has just been made.
    pub(crate) fn vary(&self, world: &mut World) {
        if let Some(stream) = self.stream("places") {
            move_some(world, stream);
            world.block.vary(self.number);
        }
    }

    /// The order in which this number of tasks starts.
    pub(crate) fn start_order(&self, tasks: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..tasks).collect();
        if let Some(mut stream) = self.stream("order") {
            shuffle(&mut order, &mut stream);
        }
        order
    }
}

/// Takes twice as many pages as there are to be holes, and gives half of them back.
fn move_some(world: &mut World, mut stream: Stream) {
    let mm = &mut world.mm;
    let Some(&zone) = mm.nodes[NodeId::FIRST].zonelist.first() else {
        return;
    };
    let mut taken = Vec::new();
    for _ in 0..2 * HOLES.min(mm.zones[zone].free / 8) {
        taken.extend(mm.zones[zone].take(&mut mm.pages, MigrateType::Unmovable));
    }
    shuffle(&mut taken, &mut stream);
    for &pfn in &taken[taken.len() / 2..] {
        mm.free_block(pfn, 0);
    }
}

/// Fisher and Yates.
fn shuffle<T>(things: &mut [T], stream: &mut Stream) {
    for at in (1..things.len()).rev() {
        things.swap(at, stream.below(at as u64 + 1) as usize);
    }
}
