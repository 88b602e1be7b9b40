//! Seeded random streams, one per task, and the distributions the workload language draws from.
//!
//! Integer arithmetic only: the same seed gives the same numbers on every machine, and so the same pages
//! on every backend.

use crate::workload::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A stream of random numbers (SplitMix64: Steele, Lea and Flood, OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct Stream {
    state: u64,
}

#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Stream {
    /// The stream of instance `instance` of the task called `name` in a run with seed `seed`.
    pub fn new(seed: u64, name: &str, instance: u64) -> Stream {
        let mut state = mix(seed ^ 0x6c6f_776d_6172_6b00);
        for byte in name.bytes() {
            state = mix(state ^ u64::from(byte));
        }
        Stream {
            state: mix(state.wrapping_add(instance)),
        }
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Uniform in `0..n`; 0 when `n` is 0. (Lemire's multiplication; the bias is below n/2⁶⁴.)
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in the closed interval `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below((high - low).saturating_add(1))
    }

    /// Exponential with this mean: mean · −ln(u), u uniform in (0, 1].
    pub fn exponential(&mut self, mean: u64) -> u64 {
        let u = (self.next_u64() >> 32) + 1; // 1 ..= 2³²
        // −ln(u/2³²) = (32 − log2 u)·ln 2, in units of 2⁻³².
        let minus_log2 = (32u64 << FRACTION) - log2_fixed(u);
        const LN2: u128 = 2_977_044_472; // ln 2 · 2³²
        let scaled = u128::from(mean) * u128::from(minus_log2);
        let time = match scaled.checked_mul(LN2) {
            Some(product) => product >> (2 * FRACTION),
            // A mean of centuries: what the lower bits would add is far below a second.
            None => ((scaled >> FRACTION) * LN2) >> FRACTION,
        };
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    /// Standard normal with [`NORMAL_FRACTION`] fraction bits (sum of twelve uniforms, Irwin–Hall), from −6 to
    /// below 6.
    #[inline]
    pub fn normal(&mut self) -> i64 {
        let sum: u64 = (0..12)
            .map(|_| self.next_u64() >> (u64::BITS - NORMAL_FRACTION))
            .sum();
        sum as i64 - (6 << NORMAL_FRACTION)
    }
}

impl Duration {
    /// The time, ns: itself, or drawn from `stream`. Every backend draws here, so that all of them wait equally
    /// long.
    pub fn draw(self, stream: &mut Stream) -> u64 {
        match self {
            Duration::Fixed(time) => time,
            Duration::Uniform(low, high) => stream.between(low, high),
            Duration::Exponential(mean) => stream.exponential(mean),
        }
    }
}

/// Fraction bits of [`Stream::normal`]: more than any range has units, so that none of them is passed over, and
/// few enough for its product with a range and a sigma to stay within 128 bits.
pub const NORMAL_FRACTION: u32 = 44;

/// Fraction bits of the fixed-point logarithms.
const FRACTION: u32 = 32;

/// log2(x) for x ≥ 1 with [`FRACTION`] fraction bits, by repeated squaring.
fn log2_fixed(x: u64) -> u64 {
    let [result] = log2_of_each([x]);
    result
}

/// [`log2_fixed`] of several numbers: each squaring waits for the one before, so a processor does a few
/// numbers in the time of one.
fn log2_of_each<const N: usize>(x: [u64; N]) -> [u64; N] {
    // Mantissas in [1, 2) with 63 fraction bits.
    let mut mantissas = x.map(|x| x << x.leading_zeros());
    let mut results = x.map(|x| u64::from(x.ilog2()));
    for _ in 0..FRACTION {
        for (mantissa, result) in mantissas.iter_mut().zip(&mut results) {
            let square = u128::from(*mantissa) * u128::from(*mantissa);
            // 2 or more: the bit is set and the mantissa halved.
            let bit = (square >> 127) as u64;
            *mantissa = (square >> (63 + bit)) as u64;
            *result = *result << 1 | bit;
        }
    }
    results
}

/// log2 of 1 to n with [`FRACTION`] fraction bits. Twice a number has the same fraction, so only the odd
/// ones are computed.
fn logarithms(n: usize) -> Vec<u64> {
    const LANES: usize = 4;
    let mut logs = vec![0; n];
    let mut first = 1;
    while first <= n {
        let odd: [u64; LANES] = std::array::from_fn(|lane| (first + 2 * lane) as u64);
        for (odd, log) in odd.into_iter().zip(log2_of_each(odd)) {
            let (mut x, mut log) = (odd as usize, log);
            while let Some(place) = logs.get_mut(x - 1) {
                *place = log;
                (x, log) = (2 * x, log + (1 << FRACTION));
            }
        }
        first += 2 * LANES;
    }
    logs
}

/// 2^(−1/2), 2^(−1/4), … with 63 fraction bits: one for each fraction bit of an exponent.
fn roots_of_half() -> [u64; FRACTION as usize] {
    let mut root: u128 = 1 << 62;
    std::array::from_fn(|_| {
        root = (root << 63).isqrt();
        root as u64
    })
}

/// Powers of one half.
///
/// 2^(−y) is the product of the roots that the bits of y name, from the highest down, rounded after each.
struct Powers {
    roots: [u64; FRACTION as usize],
    /// The product for the first [`KNOWN`] fraction bits.
    known: Vec<u64>,
}

/// Fraction bits whose product is looked up.
const KNOWN: usize = 12;

impl Powers {
    fn new() -> Powers {
        let roots = roots_of_half();
        let known = (0..1 << KNOWN)
            .map(|bits: u64| {
                let set = (0..KNOWN).filter(|bit| bits & (1 << (KNOWN - 1 - bit)) != 0);
                set.fold(1 << 63, |product, bit| times(product, roots[bit]))
            })
            .collect();
        Powers { roots, known }
    }

    /// 2^(−y) with 63 fraction bits, y with [`FRACTION`] fraction bits.
    fn exp2_neg(&self, y: u64) -> u64 {
        let whole = y >> FRACTION;
        if whole >= 63 {
            return 0;
        }
        let fraction = y as u32;
        let mut product = self.known[(fraction >> (FRACTION as usize - KNOWN)) as usize];
        // A bit that is not set multiplies by 1, which costs less than asking for each.
        for (bit, &root) in self.roots.iter().enumerate().skip(KNOWN) {
            let set = fraction & (1 << (FRACTION as usize - 1 - bit)) != 0;
            let factor = std::hint::select_unpredictable(set, root, 1 << 63);
            product = times(product, factor);
        }
        product >> whole
    }
}

/// Product of two numbers with 63 fraction bits, rounded down.
fn times(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 63) as u64
}

/// x mod n for a fixed n, without dividing.
#[derive(Debug, Clone, Copy)]
pub struct Modulus {
    n: u64,
    /// ⌊2⁶⁴ / n⌋, or what is nearest to it for n = 1.
    reciprocal: u64,
}

impl Modulus {
    /// n ≥ 1.
    pub fn new(n: u64) -> Modulus {
        let reciprocal = u64::try_from((1u128 << 64) / u128::from(n)).unwrap_or(u64::MAX);
        Modulus { n, reciprocal }
    }

    /// x mod n. The quotient that the reciprocal gives is right or one too small.
    #[inline]
    pub fn of(self, x: u64) -> u64 {
        let quotient = ((u128::from(x) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = x - quotient * self.n;
        if rest >= self.n { rest - self.n } else { rest }
    }
}

/// Zipf-distributed ranks: rank k (from 0) with probability proportional to (k+1)^(−θ), drawn in
/// constant time by Walker's alias method.
#[derive(Debug, Clone)]
pub struct Zipf {
    /// For each column: the threshold in 2⁻³² and the alias rank.
    columns: Vec<(u32, u32)>,
}

/// Distributions that were asked for, each made once: that takes longer than some thousand draws.
#[derive(Debug, Default)]
pub struct ZipfTables(BTreeMap<(u64, u32), Arc<Zipf>>);

impl ZipfTables {
    /// [`Zipf::new`]
    pub fn of(&mut self, n: u64, theta_milli: u32) -> Arc<Zipf> {
        let table = self.0.entry((n, theta_milli));
        let made = table.or_insert_with(|| Arc::new(Zipf::new(n, theta_milli)));
        Arc::clone(made)
    }
}

impl Zipf {
    /// Distribution over `n` ranks (1 ≤ n < 2³²) with exponent `theta_milli`/1000.
    pub fn new(n: u64, theta_milli: u32) -> Zipf {
        let powers = Powers::new();
        let weight = |log: u64| {
            let exponent = u128::from(log) * u128::from(theta_milli) / 1000;
            // A weight that rounds to nothing still has to be drawable.
            (powers.exp2_neg(u64::try_from(exponent).unwrap_or(u64::MAX)) >> 16).max(1)
        };
        // Weights, then scaled so that their mean is 2³².
        let mut scaled: Vec<u64> = logarithms(n as usize).into_iter().map(weight).collect();
        let total: u128 = scaled.iter().map(|&w| u128::from(w)).sum();
        for w in &mut scaled {
            *w = (((u128::from(*w) * u128::from(n)) << 32) / total.max(1)) as u64;
        }
        let mut columns = vec![(u32::MAX, 0); n as usize];
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..n as u32).partition(|&k| scaled[k as usize] < 1 << 32);
        while let (Some(&poor), Some(&rich)) = (small.last(), large.last()) {
            small.pop();
            columns[poor as usize] = (scaled[poor as usize] as u32, rich);
            scaled[rich as usize] -= (1 << 32) - scaled[poor as usize];
            if scaled[rich as usize] < 1 << 32 {
                large.pop();
                small.push(rich);
            }
        }
        for k in small.into_iter().chain(large) {
            columns[k as usize] = (u32::MAX, k);
        }
        Zipf { columns }
    }

    /// Draws a rank.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        self.rank(self.place(stream.next_u64()))
    }

    /// Draws as many ranks as there is room for. Their columns lie far apart, so first all is drawn and
    /// then all are looked up.
    #[inline]
    pub fn draw_all(&self, stream: &mut Stream, ranks: &mut [u64]) {
        ranks.fill_with(|| self.place(stream.next_u64()));
        for rank in ranks {
            *rank = self.rank(*rank);
        }
    }

    /// The column that is drawn in the upper half, and in the lower one where in it.
    #[inline]
    fn place(&self, drawn: u64) -> u64 {
        ((u128::from(drawn) * self.columns.len() as u128) >> 32) as u64
    }

    #[inline]
    fn rank(&self, place: u64) -> u64 {
        let column = place >> 32;
        let (threshold, alias) = self.columns[column as usize];
        // As likely the one as the other, so no branch.
        let own = (place as u32) < threshold;
        std::hint::select_unpredictable(own, column, u64::from(alias))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_and_powers_agree_with_known_values() {
        assert_eq!(log2_fixed(1), 0);
        assert_eq!(log2_fixed(1024), 10 << FRACTION);
        // log2(10) = 3.321928094887…
        assert_eq!(log2_fixed(10), 14_267_572_527);
        let powers = Powers::new();
        assert_eq!(powers.exp2_neg(1 << FRACTION), 1 << 62);
        // 2^-0.5 · 2^63
        let root = powers.exp2_neg(1 << (FRACTION - 1));
        assert!(root.abs_diff(6_521_908_912_666_391_106) < 1 << 24);
    }

    #[test]
    fn zipf_draws_ranks_in_proportion() {
        let zipf = Zipf::new(1000, 1000);
        let mut stream = Stream::new(0, "zipf", 0);
        let mut counts = vec![0u64; 1000];
        const DRAWS: u64 = 2_000_000;
        for _ in 0..DRAWS {
            counts[zipf.draw(&mut stream) as usize] += 1;
        }
        // H(1000) = 7.485470861: rank k has share 1/(k·H).
        for (rank, per_million) in [(1u64, 133_592u64), (2, 66_796), (10, 13_359), (100, 1_336)] {
            let expected = DRAWS * per_million / 1_000_000;
            let got = counts[rank as usize - 1];
            assert!(
                got.abs_diff(expected) < expected / 12,
                "rank {rank}: {got} for {expected}"
            );
        }
    }

    #[test]
    fn exponential_has_its_mean() {
        let mut stream = Stream::new(7, "think", 3);
        let sum: u64 = (0..100_000).map(|_| stream.exponential(1_000_000)).sum();
        assert!(sum.abs_diff(100_000 * 1_000_000) < 100_000 * 10_000);
    }

    /// Means of centuries do not wrap: times are as much longer as their mean is, up to the largest number.
    #[test]
    fn exponential_takes_any_mean() {
        let draws = |mean: u64| {
            let mut stream = Stream::new(7, "think", 3);
            let drawn: Vec<u64> = (0..1000).map(|_| stream.exponential(mean)).collect();
            drawn
        };
        let (small, large) = (draws(1 << 31), draws(1 << 63));
        assert!(large.contains(&u64::MAX) && large.iter().any(|&time| time < 1 << 60));
        for (small, large) in small.into_iter().zip(large) {
            let scaled = u64::try_from(u128::from(small) << 32).unwrap_or(u64::MAX);
            assert!(scaled.abs_diff(large) < 1 << 34, "{small} {large}");
        }
    }

    #[test]
    fn normal_has_its_mean_and_deviation() {
        let mut stream = Stream::new(3, "gauss", 0);
        let unit = (1u64 << NORMAL_FRACTION) as f64;
        let draws: Vec<f64> = (0..200_000)
            .map(|_| stream.normal() as f64 / unit)
            .collect();
        let count = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / count;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        assert!(
            mean.abs() < 0.01 && (variance - 1.0).abs() < 0.01,
            "{mean} {variance}"
        );
    }

    #[test]
    fn streams_differ_by_seed_task_and_instance() {
        let first = |seed, name, instance| Stream::new(seed, name, instance).next_u64();
        let base = first(0, "a", 0);
        assert_ne!(base, first(1, "a", 0));
        assert_ne!(base, first(0, "b", 0));
        assert_ne!(base, first(0, "a", 1));
        assert_eq!(base, first(0, "a", 0));
    }
}
