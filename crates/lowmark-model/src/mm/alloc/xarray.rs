//! Nodes of the trees in which objects find their pages (`lib/xarray.c`, before 4.20 `lib/radix-tree.c`), as far as they
//! take memory.
//!
//! 1. A node has 64 slots. Those of a *leaf* are pages, shadows or swap entries, those of the levels above are nodes.
//! 2. A tree is as high as its largest offset needs. With its first entry a leaf and what leads to it are allocated,
//!    and freed with the last one.
//! 3. The nodes of one level after another are dropped at the top while offset 0 is all that they lead to.

use std::collections::BTreeMap;

/// Slots of a node as a power of two (`XA_CHUNK_SHIFT`).
pub(crate) const CHUNK_SHIFT: u32 = 6;

/// Where a node lies in memory: an object of [`crate::mm::alloc::slub`].
pub(crate) type Object = u32;

#[derive(Debug)]
struct Node {
    /// Nodes that it leads to; none if it is a leaf.
    children: u32,
    object: Object,
}

/// The nodes of a tree.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    /// By level, the leaves first, and by offset.
    levels: Vec<BTreeMap<u32, Node>>,
}

impl Nodes {
    /// Whether a leaf is there.
    pub(crate) fn has(&self, leaf: u32) -> bool {
        let leaves = self.levels.first();
        leaves.is_some_and(|leaves| leaves.contains_key(&leaf))
    }

    /// Leaf and whatever leads to it are allocated, as far as they are not there.
    pub(crate) fn add(&mut self, leaf: u32, mut alloc: impl FnMut() -> Object) {
        if self.has(leaf) {
            return;
        }
        let height = 1 + (u32::BITS - leaf.leading_zeros()).div_ceil(CHUNK_SHIFT) as usize;
        let empty = self.levels.is_empty();
        while self.levels.len() < height {
            // xas_expand: the old root becomes the first child.
            let root = (!empty).then(|| (0, Node::leading_to(1, &mut alloc)));
            self.levels.push(root.into_iter().collect());
        }
        let mut at = leaf;
        for (level, nodes) in self.levels.iter_mut().enumerate() {
            if let Some(node) = nodes.get_mut(&at) {
                node.children += 1;
                break;
            }
            nodes.insert(at, Node::leading_to(u32::from(level > 0), &mut alloc));
            at >>= CHUNK_SHIFT;
        }
    }

    /// The last entry of a leaf is gone: what is freed with it.
    pub(crate) fn remove(&mut self, leaf: u32) -> Vec<Object> {
        let mut freed = Vec::new();
        let mut at = leaf;
        for (level, nodes) in self.levels.iter_mut().enumerate() {
            let Some(node) = nodes.get_mut(&at) else {
                break;
            };
            node.children -= u32::from(level > 0);
            if node.children > 0 {
                break;
            }
            freed.push(node.object);
            nodes.remove(&at);
            at >>= CHUNK_SHIFT;
        }
        freed.extend(std::iter::from_fn(|| self.shrink()));
        freed
    }

    /// `xas_shrink`: the root, if the first node below it is all there is.
    fn shrink(&mut self) -> Option<Object> {
        while self.levels.last().is_some_and(BTreeMap::is_empty) {
            self.levels.pop();
        }
        let [.., below, _] = self.levels.as_slice() else {
            return None;
        };
        if below.len() > 1 || !below.contains_key(&0) {
            return None;
        }
        self.levels.pop()?.remove(&0).map(|root| root.object)
    }

    /// All of them.
    pub(crate) fn into_objects(self) -> impl Iterator<Item = Object> {
        self.levels
            .into_iter()
            .flatten()
            .map(|(_, node)| node.object)
    }

    /// Leaves for which `keep` does not hold go.
    pub(crate) fn retain(&mut self, keep: impl Fn(u32) -> bool) -> Vec<Object> {
        let leaves = self.levels.first().into_iter().flat_map(BTreeMap::keys);
        let gone: Vec<u32> = leaves.copied().filter(|&leaf| !keep(leaf)).collect();
        gone.into_iter()
            .flat_map(|leaf| self.remove(leaf))
            .collect()
    }

    /// The objects that its nodes are.
    pub(crate) fn objects(&self) -> impl Iterator<Item = Object> {
        let nodes = self.levels.iter().flat_map(BTreeMap::values);
        nodes.map(|node| node.object)
    }
}

impl Node {
    fn leading_to(children: u32, alloc: &mut impl FnMut() -> Object) -> Node {
        Node {
            children,
            object: alloc(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trees that never have more nodes than their leaves need, and as many as an independent count says.
    #[test]
    fn a_tree_has_the_nodes_that_its_leaves_need() {
        let (mut nodes, mut leaves) = (Nodes::default(), std::collections::BTreeSet::new());
        let mut stream = lowmark_spec::random::Stream::new(0, "nodes", 0);
        let (mut allocated, mut freed) = (0, 0);
        for _ in 0..5000 {
            let bits = [2, 6, 9, 13, 22][stream.below(5) as usize];
            let leaf = stream.below(1 << bits) as u32;
            if leaves.remove(&leaf) {
                freed += nodes.remove(leaf).len()
            } else {
                leaves.insert(leaf);
                nodes.add(leaf, || {
                    allocated += 1;
                    allocated
                });
            }
            let highest = leaves.last().copied().unwrap_or(0);
            let levels = (0..).take_while(|&level| level == 0 || highest >> (6 * (level - 1)) > 0);
            let on = |level| {
                let places = leaves.iter().map(|leaf| leaf >> (6 * level));
                places.collect::<std::collections::BTreeSet<u32>>().len()
            };
            assert_eq!(nodes.objects().count(), levels.map(on).sum::<usize>());
            assert_eq!(nodes.objects().count(), allocated as usize - freed);
        }
    }
}
