//! Seeded random streams, one per task, and the distributions the workload language draws from.
//!
//! Integer arithmetic only: the same seed gives the same numbers on every machine.

/// A stream of random numbers (SplitMix64: Steele, Lea and Flood, OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct Stream {
    state: u64,
}

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
        ((u128::from(mean) * u128::from(minus_log2) * LN2) >> (2 * FRACTION)) as u64
    }

    /// Standard normal in thousandths (sum of twelve uniforms, Irwin–Hall), within ±6000.
    pub fn normal_milli(&mut self) -> i64 {
        (0..12).map(|_| self.below(1001) as i64).sum::<i64>() - 6000
    }
}

/// Fraction bits of the fixed-point logarithms.
const FRACTION: u32 = 32;

/// log2(x) for x ≥ 1 with [`FRACTION`] fraction bits, by repeated squaring.
fn log2_fixed(x: u64) -> u64 {
    let whole = x.ilog2();
    // Mantissa in [1, 2) with 63 fraction bits.
    let mut m = u128::from(x) << (63 - whole);
    let mut result = u64::from(whole);
    for _ in 0..FRACTION {
        m = (m * m) >> 63;
        result <<= 1;
        if m >= 1 << 64 {
            m >>= 1;
            result |= 1;
        }
    }
    result
}

/// 2^(−1/2), 2^(−1/4), … with 63 fraction bits: one for each fraction bit of an exponent.
fn roots_of_half() -> [u128; FRACTION as usize] {
    let mut root: u128 = 1 << 62;
    std::array::from_fn(|_| {
        root = (root << 63).isqrt();
        root
    })
}

/// 2^(−y) with 63 fraction bits, y with [`FRACTION`] fraction bits.
fn exp2_neg(y: u64, roots: &[u128; FRACTION as usize]) -> u64 {
    let whole = y >> FRACTION;
    if whole >= 63 {
        return 0;
    }
    let set = (0..FRACTION).filter(|bit| y & (1 << (FRACTION - 1 - bit)) != 0);
    let fraction = set.fold(1u128 << 63, |product, bit| {
        (product * roots[bit as usize]) >> 63
    });
    (fraction >> whole) as u64
}

/// Zipf-distributed ranks: rank k (from 0) with probability proportional to (k+1)^(−θ), drawn in
/// constant time by Walker's alias method.
#[derive(Debug, Clone)]
pub struct Zipf {
    /// For each column: the threshold in 2⁻³² and the alias rank.
    columns: Vec<(u32, u32)>,
}

impl Zipf {
    /// Distribution over `n` ranks (1 ≤ n < 2³²) with exponent `theta_milli`/1000.
    pub fn new(n: u64, theta_milli: u32) -> Zipf {
        let roots = roots_of_half();
        let weight = |k: u64| {
            let exponent = u128::from(log2_fixed(k + 1)) * u128::from(theta_milli) / 1000;
            // A weight that rounds to nothing still has to be drawable.
            (exp2_neg(u64::try_from(exponent).unwrap_or(u64::MAX), &roots) >> 16).max(1)
        };
        let weights: Vec<u64> = (0..n).map(weight).collect();
        let total: u128 = weights.iter().map(|&w| u128::from(w)).sum();
        // Scaled so that the mean is 2³².
        let mut scaled: Vec<u64> = weights
            .iter()
            .map(|&w| (((u128::from(w) * u128::from(n)) << 32) / total.max(1)) as u64)
            .collect();
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
        let bits = u128::from(stream.next_u64()) * self.columns.len() as u128;
        let column = (bits >> 64) as usize;
        let (threshold, alias) = self.columns[column];
        if ((bits >> 32) as u32) < threshold {
            column as u64
        } else {
            u64::from(alias)
        }
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
        let roots = roots_of_half();
        assert_eq!(exp2_neg(1 << FRACTION, &roots), 1 << 62);
        // 2^-0.5 · 2^63
        assert!(
            exp2_neg(1 << (FRACTION - 1), &roots).abs_diff(6_521_908_912_666_391_106) < 1 << 24
        );
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
