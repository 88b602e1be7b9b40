//! The statistics of mmtests, by its names and with its conventions.
//!
//! Source: `bin/lib/MMTests/Stat.pm` and `Summarise.pm` of mmtests. Functions that need a sample give
//! `None` where mmtests prints `NaN`: no samples, or too few for the statistic. Where a definition
//! changed over the years both forms are here, because published tables carry both.

/// z value of the two-sided 95 % interval, `qnorm(1 - 0.05 / 2)`.
const QNORM_975: f64 = 1.959_963_984_540_054;

/// Which values of a metric are the good ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preference {
    /// Times, stalls, writes.
    Lower,
    /// Rates, success, efficiency.
    Higher,
    /// Activity that is neither good nor bad.
    None,
}

/// Sum of the values, 0.0 if there are none. [`Iterator::sum`] begins at -0.0, which is printed as `-0.00`.
pub fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |sum, value| sum + value)
}

/// Arithmetic mean (`Amean`), used where lower is better.
pub fn amean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| sum(samples.iter().copied()) / samples.len() as f64)
}

/// Harmonic mean (`Hmean`), used where higher is better; none if any sample is 0 or less.
pub fn hmean(samples: &[f64]) -> Option<f64> {
    let positive = !samples.is_empty() && samples.iter().all(|&x| x > 0.0);
    positive.then(|| samples.len() as f64 / sum(samples.iter().map(|x| 1.0 / x)))
}

/// Geometric mean (`Gmean`) as exp of the mean logarithm; none if any sample is 0 or less.
pub fn gmean(samples: &[f64]) -> Option<f64> {
    let positive = !samples.is_empty() && samples.iter().all(|&x| x > 0.0);
    positive.then(|| (sum(samples.iter().map(|x| x.ln())) / samples.len() as f64).exp())
}

/// Smallest sample (`Min`).
pub fn min(samples: &[f64]) -> Option<f64> {
    samples.iter().copied().min_by(f64::total_cmp)
}

/// Largest sample (`Max`).
pub fn max(samples: &[f64]) -> Option<f64> {
    samples.iter().copied().max_by(f64::total_cmp)
}

/// Standard deviation of the samples taken as the whole population (÷ n): mmtests before 2017.
pub fn stddev_population(samples: &[f64]) -> Option<f64> {
    Some((squared_deviations(samples)? / samples.len() as f64).sqrt())
}

/// Standard deviation of a sample (÷ (n − 1)): mmtests since 2017. Needs two samples.
pub fn stddev(samples: &[f64]) -> Option<f64> {
    let squares = squared_deviations(samples)?;
    (samples.len() > 1).then(|| (squares / (samples.len() - 1) as f64).sqrt())
}

/// Standard deviation around the harmonic mean (`HStddev`): √(Σ(1/x − 1/H)² · H⁴ / n).
pub fn stddev_harmonic(samples: &[f64]) -> Option<f64> {
    let mean = hmean(samples)?;
    if samples.len() < 2 {
        return None;
    }
    let squares = sum(samples.iter().map(|x| (1.0 / x - 1.0 / mean).powi(2)));
    Some((squares * mean.powi(4) / samples.len() as f64).sqrt())
}

fn squared_deviations(samples: &[f64]) -> Option<f64> {
    let mean = amean(samples)?;
    Some(sum(samples.iter().map(|x| (x - mean).powi(2))))
}

/// Coefficient of variation in percent (`CoeffVar`); 0 where the mean is 0, as mmtests prints it.
pub fn coeffvar(stddev: f64, mean: f64) -> f64 {
    if mean == 0.0 || mean.is_nan() || stddev.is_nan() {
        0.0
    } else {
        100.0 * stddev / mean
    }
}

/// The samples in ascending order.
pub fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// Percentile of ascending samples, `sorted[max(1, trunc(n·p/100)) − 1]` (mmtests today).
///
/// `percent` outside 0 to 100 is taken as the nearer of the two.
pub fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let count = share(sorted.len(), percent);
    sorted.get(count - 1).copied()
}

/// Quantile of ascending samples, `sorted[trunc((n − 1)·p/100 + 0.5)]`: `1st-qrtle mmap` and
/// `Max-99% mmap` of the stutter tables of 2016.
pub fn quartile_2016(sorted: &[f64], percent: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let index = (last as f64 * percent.clamp(0.0, 100.0) / 100.0 + 0.5) as usize;
    sorted.get(index.min(last)).copied()
}

/// The best `percent` % of the samples, at least one, best first.
pub fn best(samples: &[f64], percent: f64, preference: Preference) -> Vec<f64> {
    let mut best = sorted(samples);
    if preference == Preference::Higher {
        best.reverse();
    }
    best.truncate(share(samples.len(), percent));
    best
}

/// `BAmean-N`: arithmetic mean of the best `percent` % of the samples.
pub fn bamean(samples: &[f64], percent: f64, preference: Preference) -> Option<f64> {
    amean(&best(samples, percent, preference))
}

/// `BHmean-N`: harmonic mean of the best `percent` % of the samples.
pub fn bhmean(samples: &[f64], percent: f64, preference: Preference) -> Option<f64> {
    hmean(&best(samples, percent, preference))
}

/// `max(1, trunc(n·p/100))`.
fn share(n: usize, percent: f64) -> usize {
    ((n as f64 * percent.clamp(0.0, 100.0) / 100.0) as usize).max(1)
}

/// A closed interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Interval that mmtests calls the confidence interval of a mean at α = 0.05: mean ±
/// qnorm(0.975)·stddev. It is not divided by √n, so it says where samples lie, not the mean.
pub fn mean_ci(mean: f64, stddev: f64) -> Interval {
    Interval {
        low: mean - QNORM_975 * stddev,
        high: mean + QNORM_975 * stddev,
    }
}

/// Ratio of a value to its baseline (`rdiff`): 0 for a baseline of 0 or NaN, 1 for a value of 0 or NaN.
pub fn rdiff(value: f64, baseline: f64) -> f64 {
    if baseline == 0.0 || baseline.is_nan() {
        0.0
    } else if value == 0.0 || value.is_nan() {
        1.0
    } else {
        value / baseline
    }
}

/// Difference in units of the pooled standard deviation (`sdiff`); the plain difference where neither
/// side varies.
pub fn sdiff(value: f64, value_stddev: f64, baseline: f64, baseline_stddev: f64) -> f64 {
    let pooled = ((value_stddev.powi(2) + baseline_stddev.powi(2)) / 2.0).sqrt();
    if pooled == 0.0 {
        value - baseline
    } else {
        (value - baseline) / pooled
    }
}

/// Difference in units of the two half-intervals that face each other (`cidiff`); the plain difference
/// where both intervals are points.
pub fn cidiff(value: f64, value_ci: Interval, baseline: f64, baseline_ci: Interval) -> f64 {
    let facing = if value < baseline {
        (value_ci.high - value) + (baseline - baseline_ci.low)
    } else {
        (value - value_ci.low) + (baseline_ci.high - baseline)
    };
    if facing == 0.0 {
        value - baseline
    } else {
        (value - baseline) / facing
    }
}

/// Whether mmtests marks the change as significant (`:SIG:`): |cidiff| > 1, and never with fewer than
/// two samples on a side.
pub fn significant(samples: &[f64], baseline: &[f64]) -> bool {
    let side = |s: &[f64]| Some((amean(s)?, stddev(s)?));
    match (side(samples), side(baseline)) {
        (Some((m, s)), Some((bm, bs))) => cidiff(m, mean_ci(m, s), bm, mean_ci(bm, bs)).abs() > 1.0,
        _ => false,
    }
}

/// Result of Welch's t test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Welch {
    /// t = (m₁ − m₂) / √(v₁/n₁ + v₂/n₂).
    pub t: f64,
    /// Degrees of freedom by Welch and Satterthwaite, rounded down.
    pub degrees: u64,
    /// Probability of a |t| at least this large if both means are equal.
    pub p: f64,
}

/// Welch's t test of two samples; none with fewer than two samples on a side or no variance at all.
pub fn welch(a: &[f64], b: &[f64]) -> Option<Welch> {
    welch_of(&[(1.0, a), (-1.0, b)])
}

/// The same of a sum of means with weights, which is 0 if only chance keeps it from that: an interaction, for example.
pub fn welch_of(weighted: &[(f64, &[f64])]) -> Option<Welch> {
    let spread = Spread::of(weighted)?;
    let t = spread.sum / spread.error;
    Some(Welch {
        t,
        degrees: spread.degrees,
        p: student_two_sided(t, spread.degrees as f64),
    })
}

/// Half of the interval around a sum of means with weights that has the true sum in 95 % of cases, by the distribution of
/// [`welch_of`]; none where that says nothing.
pub fn half_interval(weighted: &[(f64, &[f64])]) -> Option<f64> {
    /// Part of the cases that lie outside.
    const OUTSIDE: f64 = 0.05;
    /// Halvings, after which nothing is left of the first stretch.
    const STEPS: u32 = 80;
    let spread = Spread::of(weighted)?;
    let degrees = spread.degrees as f64;
    // With one degree of freedom the quantile is 12.7; it falls with more.
    let (mut low, mut high) = (1.0, 13.0);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if student_two_sided(middle, degrees) > OUTSIDE {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(high * spread.error)
}

/// A sum of means with weights, and how far chance moves it.
struct Spread {
    sum: f64,
    /// Standard error.
    error: f64,
    degrees: u64,
}

impl Spread {
    fn of(weighted: &[(f64, &[f64])]) -> Option<Spread> {
        let (mut sum, mut variance, mut squares) = (0.0, 0.0, 0.0);
        for (weight, samples) in weighted {
            let count = samples.len() as f64;
            let own = (weight * stddev(samples)?).powi(2) / count;
            sum += weight * amean(samples)?;
            variance += own;
            squares += own.powi(2) / (count - 1.0);
        }
        if !(variance > 0.0 && variance.is_finite()) {
            return None;
        }
        let satterthwaite = variance.powi(2) / squares;
        // Rounding may leave a hair below a whole number, which must not cost a degree.
        let degrees = (satterthwaite * (1.0 + 1e-12)).floor().max(1.0) as u64;
        Some(Spread {
            sum,
            error: variance.sqrt(),
            degrees,
        })
    }
}

/// P(|T| ≥ |t|) of Student's distribution: I_{ν/(ν+t²)}(ν/2, 1/2).
fn student_two_sided(t: f64, degrees: f64) -> f64 {
    incomplete_beta(degrees / (degrees + t * t), degrees / 2.0, 0.5)
}

/// Regularised incomplete beta function I_x(a, b) by its continued fraction (Lentz's method).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast only on this side of the mean; the other side follows by symmetry.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let log_front = a * x.ln() + b * (1.0 - x).ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    log_front.exp() * beta_fraction(x, a, b) / a
}

fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const STEPS: u32 = 300;
    let guard = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..=STEPS {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / guard(1.0 + term * d);
            c = guard(1.0 + term / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

/// ln Γ(x) for x > 0 (Lanczos, g = 7).
fn ln_gamma(x: f64) -> f64 {
    const LANCZOS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let series = LANCZOS
        .iter()
        .zip(1u32..)
        .fold(0.999_999_999_999_809_9, |sum, (c, i)| {
            sum + c / (x + f64::from(i))
        });
    let t = x + 7.5;
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * t.ln() - t + series.ln()
}

/// Median by the usual definition, the mean of the middle two for an even number (mmtests' own legacy
/// form is off by one and not carried over).
pub fn median(samples: &[f64]) -> Option<f64> {
    let sorted = sorted(samples);
    let last = sorted.len().checked_sub(1)?;
    let (low, high) = (last / 2, last.div_ceil(2));
    Some((sorted[low] + sorted[high]) / 2.0)
}

#[cfg(test)]
mod tests;
