//! The order in which units (pages, blocks, files) are visited, the same on every backend.

use crate::random::{Modulus, NORMAL_FRACTION, Stream, Zipf, ZipfTables};
use crate::workload::Order;
use std::sync::Arc;

/// A page that a touch statement came to: what backends must agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Touched {
    /// Index of the task.
    pub task: usize,
    /// Instance of it.
    pub instance: usize,
    /// Thread that `parallel` started in the instance, from 1; 0 outside of it.
    pub thread: u64,
    /// Page of the map.
    pub page: u64,
}

/// Units of a range in the order in which they are visited.
///
/// The variants are open so that a backend can go through a whole stretch of `Seq` or `Random` at once;
/// everybody else calls [`Visit::next`].
#[derive(Debug, Clone)]
pub enum Visit {
    /// Ascending, round and round.
    Seq {
        /// The unit that comes next.
        next: u64,
    },
    /// Descending, round and round.
    Reverse {
        /// The unit visited last; the number of units at first.
        next: u64,
    },
    /// Uniform with replacement.
    Random,
    /// Rank r is unit (r · factor + shift) mod n: a seeded permutation.
    Zipf {
        /// Draws ranks.
        ranks: Arc<Zipf>,
        /// Coprime to n.
        factor: u64,
        /// Where rank 0 lies.
        shift: u64,
        /// Takes the rest by n.
        modulus: Modulus,
    },
    /// Every k-th unit, then the next residue.
    Stride {
        /// Distance of two visits.
        k: u64,
        /// The unit that comes next.
        next: u64,
        /// Residue that is gone through now.
        residue: u64,
    },
    /// Normal around the middle.
    Gauss {
        /// Sigma in thousandths of the range.
        sigma_milli: u64,
    },
}

impl Visit {
    /// The visits of `units` units, at least one. `zipf` draws its permutation from the stream, and its distribution is one
    /// of `tables`.
    pub fn new(order: Order, units: u64, stream: &mut Stream, tables: &mut ZipfTables) -> Visit {
        match order {
            Order::Seq => Visit::Seq { next: 0 },
            Order::Onward => Visit::Seq {
                next: stream.below(units),
            },
            Order::Reverse => Visit::Reverse { next: units },
            Order::Random => Visit::Random,
            Order::Zipf(theta) => {
                let mut factor = 1 + stream.below(units);
                while gcd(factor, units) != 1 {
                    factor += 1;
                }
                let shift = stream.below(units);
                Visit::Zipf {
                    ranks: tables.of(units, theta),
                    factor,
                    shift,
                    modulus: Modulus::new(units),
                }
            }
            Order::Stride(k) => Visit::Stride {
                k,
                next: 0,
                residue: 0,
            },
            Order::Gauss(sigma) => Visit::Gauss {
                sigma_milli: u64::from(sigma),
            },
        }
    }

    /// The next of `units` units: the number that [`Visit::new`] was given.
    #[inline]
    pub fn next(&mut self, units: u64, stream: &mut Stream) -> u64 {
        match self {
            Visit::Seq { next } => {
                let unit = *next;
                *next = (*next + 1) % units;
                unit
            }
            Visit::Reverse { next } => {
                *next = if *next == 0 { units } else { *next } - 1;
                *next
            }
            Visit::Random => stream.below(units),
            Visit::Zipf {
                ranks,
                factor,
                shift,
                modulus,
            } => modulus.of(ranks.draw(stream) * *factor + *shift),
            Visit::Stride { k, next, residue } => {
                let unit = *next;
                *next += *k;
                if *next >= units {
                    *residue = (*residue + 1) % (*k).min(units);
                    *next = *residue;
                }
                unit
            }
            Visit::Gauss { sigma_milli } => loop {
                let sigma = i128::from(*sigma_milli) * i128::from(units);
                let middle = (i128::from(units) << NORMAL_FRACTION) / 2;
                let place = middle + i128::from(stream.normal()) * sigma / 1000;
                let unit = place >> NORMAL_FRACTION;
                if (0..i128::from(units)).contains(&unit) {
                    break unit as u64;
                }
            },
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits(order: Order, units: u64, count: usize) -> Vec<u64> {
        let mut stream = Stream::new(0, "t", 0);
        let mut visit = Visit::new(order, units, &mut stream, &mut ZipfTables::default());
        (0..count).map(|_| visit.next(units, &mut stream)).collect()
    }

    #[test]
    fn onward_begins_anywhere_and_goes_round() {
        let from = visits(Order::Onward, 5, 7);
        let expected: Vec<u64> = (from[0]..from[0] + 7).map(|unit| unit % 5).collect();
        assert_eq!(from, expected);
        let begin = |seed| {
            let mut stream = Stream::new(seed, "t", 0);
            let tables = &mut ZipfTables::default();
            Visit::new(Order::Onward, 5, &mut stream, tables).next(5, &mut stream)
        };
        let begins: std::collections::BTreeSet<u64> = (0..50).map(begin).collect();
        assert_eq!(begins.len(), 5);
    }

    #[test]
    fn regular_orders_go_round() {
        assert_eq!(visits(Order::Seq, 3, 5), [0, 1, 2, 0, 1]);
        assert_eq!(visits(Order::Reverse, 3, 5), [2, 1, 0, 2, 1]);
        assert_eq!(visits(Order::Stride(2), 5, 7), [0, 2, 4, 1, 3, 0, 2]);
        assert_eq!(visits(Order::Stride(9), 2, 3), [0, 1, 0]);
    }

    /// Pinned: a change here changes every workload with a random order, on every backend.
    #[test]
    fn random_orders_are_those_of_the_seed() {
        let orders = [Order::Random, Order::Zipf(990), Order::Gauss(100)];
        assert_eq!(orders.map(|order| visits(order, 1000, 6)), PINNED);
    }

    const PINNED: [[u64; 6]; 3] = [
        [115, 742, 594, 409, 988, 658],
        [93, 595, 272, 327, 859, 140],
        [558, 516, 417, 652, 548, 588],
    ];

    /// Every unit can be drawn, as often as a normal distribution says: of many units about as many are met as the
    /// density of each makes likely, and mean and deviation are its own.
    #[test]
    fn gauss_meets_as_many_units_as_a_normal_distribution() {
        const UNITS: u64 = 76_800;
        const DRAWS: usize = 80_000;
        const SIGMA: f64 = 0.1 * UNITS as f64;
        let mut seen = visits(Order::Gauss(100), UNITS, DRAWS);
        let mean = seen.iter().sum::<u64>() as f64 / DRAWS as f64;
        let deviation = |&unit: &u64| (unit as f64 - mean).powi(2);
        let sigma = (seen.iter().map(deviation).sum::<f64>() / DRAWS as f64).sqrt();
        let middle = (UNITS - 1) as f64 / 2.0;
        assert!(
            (mean - middle).abs() < 0.02 * SIGMA,
            "mean {mean} for {middle}"
        );
        assert!(
            (sigma / SIGMA - 1.0).abs() < 0.01,
            "sigma {sigma} for {SIGMA}"
        );
        let met = |unit: u64| {
            let z = (unit as f64 - middle) / SIGMA;
            let density = (-z * z / 2.0).exp() / (SIGMA * std::f64::consts::TAU.sqrt());
            1.0 - (1.0 - density).powi(DRAWS as i32)
        };
        let expected: f64 = (0..UNITS).map(met).sum();
        seen.sort_unstable();
        seen.dedup();
        let distinct = seen.len() as f64;
        assert!(
            (distinct / expected - 1.0).abs() < 0.02,
            "{distinct} for {expected}"
        );
    }

    /// The widest range and sigma that the language takes.
    #[test]
    fn gauss_takes_any_range() {
        let units = i64::MAX.unsigned_abs();
        let seen = visits(Order::Gauss(10_000), units, 1000);
        let quarter = |unit: &&u64| **unit < units / 4;
        let low = seen.iter().filter(quarter).count();
        assert!(
            (200..300).contains(&low),
            "{low} of 1000 in the first quarter"
        );
    }

    #[test]
    fn zipf_permutes() {
        let mut seen = visits(Order::Zipf(0), 50, 5_000);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 50);
    }
}
