//! Where slots are found.

use super::*;

fn swap(rotational: bool, slots: u64) -> Swap {
    let mut machine = Machine::small(64 << 20, slots * PAGE_SIZE);
    machine.devices[0].rotational = rotational;
    Swap::new(&machine, &Kernel::named("v3.6"), false)
}

fn two_areas(version: &str, rotational: bool) -> Swap {
    let mut machine = Machine::small(64 << 20, 4096 * PAGE_SIZE);
    machine.devices[0].rotational = rotational;
    machine.swap = vec![machine.swap[0].clone(), machine.swap[0].clone()];
    Swap::new(&machine, &Kernel::named(version), false)
}

fn fill(swap: &mut Swap, count: u32) -> Vec<u32> {
    (0..count)
        .map(|pfn| swap.allocate(pfn, 0).unwrap())
        .collect()
}

#[test]
fn a_rotating_area_is_filled_from_its_start() {
    let mut swap = swap(true, 4096);
    assert_eq!(fill(&mut swap, 600), (1..=600).collect::<Vec<_>>());
}

#[test]
fn a_rotating_area_returns_to_the_lowest_free_run() {
    let mut swap = swap(true, 4096);
    let slots = fill(&mut swap, 1024);
    for &slot in &slots[256..640] {
        swap.clear_cached(slot);
    }
    // The current cluster is used up after 1024 = 4 · 256; the next one is the hole at 257.
    assert_eq!(swap.allocate(0, 0), Some(257));
}

#[test]
fn without_a_free_run_rotating_areas_fill_single_holes_from_the_start() {
    let mut swap = swap(true, 2048);
    let slots = fill(&mut swap, 2047);
    assert_eq!(swap.allocate(0, 0), None);
    for &slot in slots.iter().step_by(4) {
        swap.clear_cached(slot);
    }
    let first = swap.allocate(0, 0).unwrap();
    let second = swap.allocate(0, 0).unwrap();
    assert!(
        second > first && second - first == 4,
        "{first} then {second}"
    );
}

#[test]
fn areas_of_one_priority_take_turns() {
    // How many slots one CPU takes from an area before the next one has its turn.
    for (version, rotational, turn) in [
        ("v4.10", false, 1),
        ("v6.12", false, SLOTS_AHEAD),
        ("v6.18", false, 512),
        ("v6.18", true, 1),
    ] {
        let mut swap = two_areas(version, rotational);
        let slots = fill(&mut swap, 2048);
        let mut turns = slots.chunk_by(|a, b| swap.area_of(*a) == swap.area_of(*b));
        // The first cluster of an area begins with its header.
        turns.next();
        turns.next();
        assert_eq!(
            turns.next().map(|turn| turn.len() as u64),
            Some(turn),
            "{version}"
        );
    }
}

#[test]
fn solid_state_sweeps_the_area() {
    let mut swap = swap(false, 4096);
    let slots = fill(&mut swap, 512);
    for &slot in &slots {
        swap.clear_cached(slot);
    }
    let next = swap.allocate(0, 0).unwrap();
    assert!(!slots.contains(&next), "the freed part is behind");
}
