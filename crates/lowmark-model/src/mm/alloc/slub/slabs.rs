//! Slabs of one kind of objects (`struct kmem_cache`), and how many of these slabs each CPU sets aside.

use super::Object;
use crate::kernel::CpuSlabs;
use crate::mm::types::{NONE, Pfn};
use lowmark_spec::machine::PAGE_SIZE;
use std::collections::VecDeque;

/// Largest order of a slab (`slub_max_order`).
const MAX_ORDER: u32 = 3;
/// Empty slabs that are kept at least (`MIN_PARTIAL`, `MAX_PARTIAL`).
const MIN_PARTIAL: u32 = 5;
const MAX_PARTIAL: u32 = 10;

/// Where a slab stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nowhere: all its objects are in use, or there is no such slab.
    Off,
    /// A CPU takes objects of it, or has set it aside.
    OfCpu,
    /// It is on the list for all CPUs.
    Partial,
}

#[derive(Debug)]
pub(super) struct Slab {
    pub(super) pfn: Pfn,
    order: usize,
    objects: u32,
    pub(super) used: u32,
    /// Of these, objects that were in use before the workload began.
    pub(super) before: u32,
    place: Place,
}

/// How many slabs of a kind a CPU sets aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CpuPartial {
    /// Nothing: slabs go to all CPUs at once.
    Nothing,
    /// Slabs with more than this number of free objects in all, as counted when the CPU set each slab aside.
    Objects(u32),
    /// This number of slabs.
    Slabs(usize),
}

impl CpuPartial {
    /// `set_cpu_partial`, for objects of `size` bytes, of which a slab has `objects`.
    fn new(rule: CpuSlabs, size: u64, objects: u64) -> CpuPartial {
        let by_size = |limits: [u64; 4]| match size {
            PAGE_SIZE.. => limits[0],
            1024.. => limits[1],
            256.. => limits[2],
            _ => limits[3],
        };
        match rule {
            CpuSlabs::Current => CpuPartial::Nothing,
            CpuSlabs::Objects => CpuPartial::Objects(by_size([2, 6, 13, 30]) as u32),
            // In objects, slabs being taken for half full.
            CpuSlabs::Slabs => {
                let set_aside = by_size([6, 24, 52, 120]);
                CpuPartial::Slabs((2 * set_aside).div_ceil(objects) as usize)
            }
        }
    }

    /// A CPU with these slabs aside gives all of them away before it sets another one aside.
    fn is_full(self, aside: &[Aside]) -> bool {
        match self {
            CpuPartial::Nothing => false,
            CpuPartial::Objects(limit) => aside.last().is_some_and(|last| last.objects > limit),
            CpuPartial::Slabs(limit) => aside.len() >= limit,
        }
    }

    /// Whether a CPU that has taken `slabs` slabs, with `objects` free objects in all, off the list for all CPUs takes no more.
    fn has_enough(self, slabs: usize, objects: u32) -> bool {
        match self {
            CpuPartial::Nothing => true,
            CpuPartial::Objects(limit) => objects > limit / 2,
            CpuPartial::Slabs(limit) => slabs > 1 + limit / 2,
        }
    }
}

/// A CPU's slabs of a kind (`struct kmem_cache_cpu`).
#[derive(Debug, Clone, Default)]
struct OfCpu {
    current: Option<u32>,
    /// Those set aside, the next to be used last (`partial`).
    partial: Vec<Aside>,
}

/// A slab that a CPU has set aside.
#[derive(Debug, Clone, Copy)]
struct Aside {
    slab: u32,
    /// Its free objects at that time and those of the slabs set aside before it (`pobjects`).
    objects: u32,
}

impl Slab {
    /// Its free objects.
    fn left(&self) -> u32 {
        self.objects - self.used
    }

    /// Nobody uses it, and its pages are of those that a workload gets.
    fn is_unneeded(&self) -> bool {
        self.used == 0 && self.pfn != NONE
    }
}

/// Slabs of a kind.
#[derive(Debug)]
pub(super) struct Slabs {
    size: u64,
    pub(super) order: usize,
    min_partial: usize,
    /// How much a CPU sets aside (`cpu_partial`, `cpu_partial_slabs`).
    cpu_partial: CpuPartial,
    /// Objects are numbers of their slabs.
    pub(super) slabs: Vec<Slab>,
    /// Numbers of slabs that are gone.
    unused: Vec<u32>,
    cpus: Vec<OfCpu>,
    partial: VecDeque<u32>,
    pub(super) pages: u64,
}

/// `get_order`: the order of the smallest block that holds `bytes` bytes.
pub(super) fn get_order(bytes: u64) -> u32 {
    bytes.div_ceil(PAGE_SIZE).next_power_of_two().ilog2()
}

/// `calculate_order`: the smallest that has enough objects for the CPUs and wastes little.
fn calculate_order(size: u64, cpus: u32) -> u32 {
    let wanted = 4 * (u64::from(u32::BITS - cpus.leading_zeros()) + 1);
    let objects = wanted.min((PAGE_SIZE << MAX_ORDER) / size);
    let smallest = get_order(objects * size);
    let wastes = |order: u32, part: u64| (PAGE_SIZE << order) % size > (PAGE_SIZE << order) / part;
    let of_part = |part: u64| (smallest..=MAX_ORDER).find(|&order| !wastes(order, part));
    let found = [16, 8, 4, 2].into_iter().find_map(of_part);
    found.unwrap_or_else(|| get_order(size))
}

impl Slabs {
    pub(super) fn new(size: u64, cpus: u32, rule: CpuSlabs) -> Slabs {
        let order = calculate_order(size, cpus);
        let objects = (PAGE_SIZE << order) / size;
        Slabs {
            size,
            order: order as usize,
            min_partial: (size.ilog2() / 2).clamp(MIN_PARTIAL, MAX_PARTIAL) as usize,
            cpu_partial: CpuPartial::new(rule, size, objects),
            slabs: Vec::new(),
            unused: Vec::new(),
            cpus: vec![OfCpu::default(); cpus as usize],
            partial: VecDeque::new(),
            pages: 0,
        }
    }

    fn objects(&self) -> u32 {
        ((PAGE_SIZE << self.order) / self.size) as u32
    }

    /// Where in its slab a CPU is when the workload begins is chance.
    pub(super) fn begin_midway(&mut self) {
        let half = self.objects() / 2;
        for cpu in 0..self.cpus.len() {
            self.begin_with(cpu, half, half);
        }
    }

    /// A CPU's slab when the workload begins, whose pages are of those in use before.
    pub(super) fn begin_with(&mut self, cpu: usize, used: u32, before: u32) -> Object {
        let number = self.slabs.len() as u32;
        self.slabs.push(Slab {
            pfn: NONE,
            order: self.order,
            objects: self.objects(),
            used,
            before,
            place: Place::OfCpu,
        });
        self.cpus[cpu].current = Some(number);
        number
    }

    /// An object of the slabs that there are (`___slab_alloc`).
    #[inline]
    pub(super) fn take(&mut self, cpu: usize) -> Option<Object> {
        if let Some(current) = self.cpus[cpu].current {
            let slab = &mut self.slabs[current as usize];
            if slab.used < slab.objects {
                slab.used += 1;
                return Some(current);
            }
            slab.place = Place::Off;
            self.cpus[cpu].current = None;
        }
        let next = self.cpus[cpu].partial.pop().map(|aside| aside.slab);
        let next = next.or_else(|| self.get_partial(cpu))?;
        let slab = &mut self.slabs[next as usize];
        slab.used += 1;
        self.cpus[cpu].current = Some(next);
        Some(next)
    }

    /// `get_partial_node`: the first of the partly used ones; the CPU sets some more of them aside.
    fn get_partial(&mut self, cpu: usize) -> Option<u32> {
        let first = self.partial.pop_front()?;
        self.slabs[first as usize].place = Place::OfCpu;
        let (mut slabs, mut objects) = (1, self.slabs[first as usize].left());
        while !self.cpu_partial.has_enough(slabs, objects) {
            let Some(more) = self.partial.pop_front() else {
                break;
            };
            slabs += 1;
            objects += self.slabs[more as usize].left();
            self.slabs[more as usize].place = Place::OfCpu;
            self.set_aside(cpu, more);
        }
        Some(first)
    }

    /// A new slab, of which the CPU takes the first object. The one that it had, if others have filled that meanwhile,
    /// goes to all (`deactivate_slab`).
    pub(super) fn add(&mut self, cpu: usize, pfn: Pfn, order: usize) -> Object {
        let slab = Slab {
            pfn,
            order,
            objects: ((PAGE_SIZE << order) / self.size) as u32,
            used: 1,
            before: 0,
            place: Place::OfCpu,
        };
        self.pages += 1 << order;
        let number = match self.unused.pop() {
            Some(number) => {
                self.slabs[number as usize] = slab;
                number
            }
            None => {
                self.slabs.push(slab);
                self.slabs.len() as u32 - 1
            }
        };
        if let Some(before) = self.cpus[cpu].current.replace(number) {
            self.slabs[before as usize].place = Place::Partial;
            self.partial.push_back(before);
        }
        number
    }

    /// `__slab_free`: slabs that are not needed any more are put into `discarded`.
    #[inline]
    pub(super) fn free(&mut self, cpu: usize, object: Object, discarded: &mut Vec<(Pfn, usize)>) {
        let kept = self.partial.len();
        let slab = &mut self.slabs[object as usize];
        slab.used -= 1;
        match slab.place {
            Place::OfCpu => {}
            Place::Off if self.cpu_partial == CpuPartial::Nothing => {
                if slab.is_unneeded() && kept >= self.min_partial {
                    self.discard(object, discarded);
                } else {
                    slab.place = Place::Partial;
                    self.partial.push_back(object);
                }
            }
            Place::Off => {
                slab.place = Place::OfCpu;
                self.put_cpu_partial(cpu, object, discarded);
            }
            Place::Partial if slab.is_unneeded() && kept >= self.min_partial => {
                self.partial.retain(|&other| other != object);
                self.discard(object, discarded);
            }
            Place::Partial => {}
        }
    }

    /// `put_cpu_partial`: sets a slab aside; too many of them go to all.
    fn put_cpu_partial(&mut self, cpu: usize, number: u32, discarded: &mut Vec<(Pfn, usize)>) {
        if self.cpu_partial.is_full(&self.cpus[cpu].partial) {
            let mut aside = std::mem::take(&mut self.cpus[cpu].partial);
            while let Some(Aside { slab, .. }) = aside.pop() {
                let unneeded = self.slabs[slab as usize].is_unneeded();
                if unneeded && self.partial.len() >= self.min_partial {
                    self.discard(slab, discarded);
                } else {
                    self.slabs[slab as usize].place = Place::Partial;
                    self.partial.push_back(slab);
                }
            }
            self.cpus[cpu].partial = aside;
        }
        self.set_aside(cpu, number);
    }

    fn set_aside(&mut self, cpu: usize, slab: u32) {
        let before = self.cpus[cpu].partial.last().map_or(0, |last| last.objects);
        let objects = before + self.slabs[slab as usize].left();
        self.cpus[cpu].partial.push(Aside { slab, objects });
    }

    fn discard(&mut self, number: u32, discarded: &mut Vec<(Pfn, usize)>) {
        let slab = &mut self.slabs[number as usize];
        slab.place = Place::Off;
        discarded.push((slab.pfn, slab.order));
        self.pages -= 1 << slab.order;
        self.unused.push(number);
    }
}

#[cfg(test)]
mod tests;
