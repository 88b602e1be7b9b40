use super::super::Cache;
use super::*;

#[test]
fn slabs_have_the_orders_of_slabinfo() {
    // /proc/slabinfo on x86-64, radix_tree_node: 7, 14 and 28 objects in 1, 2 and 4 pages.
    let orders = [1, 2, 4, 8].map(|cpus| calculate_order(576, cpus));
    assert_eq!(orders, [1, 1, 2, 2]);
    assert_eq!([1, 4, 16].map(|cpus| calculate_order(256, cpus)), [0, 0, 1]);
    assert_eq!(calculate_order(4096, 1), 3);
    for (number, cache) in Cache::all().enumerate() {
        assert_eq!(cache.number(), number, "{cache:?}");
    }
}

#[test]
fn objects_fill_slabs_and_few_empty_ones_are_kept() {
    let mut slabs = Slabs::new(256, 1, CpuSlabs::Slabs);
    assert_eq!(
        (slabs.cpu_partial, slabs.min_partial),
        (CpuPartial::Slabs(7), 5)
    );
    let (mut next, mut discarded) = (0, Vec::new());
    let mut objects = VecDeque::new();
    for _ in 0..1600 {
        let object = slabs.take(0).unwrap_or_else(|| {
            next += 1;
            slabs.add(0, next, 0)
        });
        objects.push_back(object);
    }
    // 16 objects in a page, none of which was allocated too early.
    assert_eq!((next, slabs.pages), (100, 100));
    while let Some(object) = objects.pop_front() {
        slabs.free(0, object, &mut discarded);
        let used: u32 = slabs.slabs.iter().map(|slab| slab.used).sum();
        assert_eq!(used as usize, objects.len());
    }
    // The CPU's own, seven that it has set aside, and at least five of all.
    assert_eq!(slabs.pages + discarded.len() as u64, 100);
    assert!((6..=13).contains(&slabs.pages), "{}", slabs.pages);
    let mut pages: Vec<Pfn> = discarded.iter().map(|&(pfn, _)| pfn).collect();
    pages.sort_unstable();
    pages.dedup();
    assert_eq!(pages.len(), discarded.len(), "a slab was discarded twice");
}
