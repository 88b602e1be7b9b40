//! Values worked out by hand or with R.

use super::*;
use proptest::prelude::*;

const FIVE: [f64; 5] = [2.0, 4.0, 4.0, 5.0, 10.0];

fn close(a: Option<f64>, b: f64) {
    let a = a.expect("a value");
    assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

#[test]
fn the_sum_of_nothing_is_not_negative() {
    assert_eq!(format!("{:.2}", sum([])), "0.00");
    close(Some(sum(FIVE)), 25.0);
}

#[test]
fn means() {
    close(amean(&FIVE), 5.0);
    close(hmean(&FIVE), 5.0 / 1.3);
    close(gmean(&[1.0, 4.0, 16.0]), 4.0);
    assert_eq!(hmean(&[1.0, 0.0]), None);
    assert_eq!(gmean(&[1.0, -1.0]), None);
    assert_eq!((amean(&[]), hmean(&[]), gmean(&[])), (None, None, None));
}

#[test]
fn spread() {
    close(stddev_population(&FIVE), (36.0f64 / 5.0).sqrt());
    close(stddev(&FIVE), 3.0);
    assert_eq!(stddev(&[1.0]), None);
    close(stddev_population(&[1.0]), 0.0);
    assert_eq!(coeffvar(3.0, 5.0), 60.0);
    assert_eq!(coeffvar(3.0, 0.0), 0.0);
    // 1/H = 0.75, deviations ±0.25, H⁴ = (4/3)⁴: √(0.125 · 3.16049… / 2).
    close(stddev_harmonic(&[1.0, 2.0]), 0.444_444_444_444_444_4);
}

#[test]
fn percentiles_of_today() {
    let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
    assert_eq!(percentile(&hundred, 50.0), Some(50.0));
    assert_eq!(percentile(&hundred, 99.0), Some(99.0));
    assert_eq!(percentile(&hundred, 100.0), Some(100.0));
    assert_eq!(percentile(&hundred, 0.0), Some(1.0));
    assert_eq!(percentile(&[7.0, 8.0], 10.0), Some(7.0));
    assert_eq!(percentile(&[], 50.0), None);
    assert_eq!(percentile(&hundred, f64::NAN), Some(1.0));
}

#[test]
fn quartiles_of_2016() {
    let nine: Vec<f64> = (0..9).map(f64::from).collect();
    assert_eq!(quartile_2016(&nine, 25.0), Some(2.0));
    assert_eq!(quartile_2016(&nine, 90.0), Some(7.0));
    assert_eq!(quartile_2016(&nine, 95.0), Some(8.0));
    assert_eq!(quartile_2016(&[3.0], 99.0), Some(3.0));
    assert_eq!(quartile_2016(&[], 99.0), None);
}

#[test]
fn best_by_preference() {
    close(bamean(&FIVE, 50.0, Preference::Lower), 3.0);
    close(bamean(&FIVE, 50.0, Preference::Higher), 7.5);
    close(bamean(&FIVE, 1.0, Preference::Lower), 2.0);
    close(bhmean(&FIVE, 40.0, Preference::Higher), 20.0 / 3.0);
    assert_eq!(bamean(&[], 50.0, Preference::Lower), None);
}

#[test]
fn differences() {
    assert_eq!(rdiff(3.0, 2.0), 1.5);
    assert_eq!(rdiff(3.0, 0.0), 0.0);
    assert_eq!(rdiff(0.0, 3.0), 1.0);
    assert_eq!(sdiff(12.0, 2.0, 10.0, 2.0), 1.0);
    assert_eq!(sdiff(12.0, 0.0, 10.0, 0.0), 2.0);
    let near = |m: f64| Interval {
        low: m - 1.0,
        high: m + 1.0,
    };
    assert_eq!(cidiff(14.0, near(14.0), 10.0, near(10.0)), 2.0);
    assert_eq!(cidiff(9.0, near(9.0), 10.0, near(10.0)), -0.5);
    let point = |m: f64| Interval { low: m, high: m };
    assert_eq!(cidiff(9.0, point(9.0), 10.0, point(10.0)), -1.0);
}

#[test]
fn significance_needs_two_samples_a_side() {
    assert!(significant(&[100.0, 101.0], &[10.0, 11.0]));
    assert!(!significant(&[100.0], &[10.0, 11.0]));
    assert!(!significant(&[10.0, 12.0], &[10.0, 11.0]));
}

#[test]
fn interval_is_of_samples() {
    let ci = mean_ci(10.0, 1.0);
    assert!((ci.low - 8.040_036).abs() < 1e-6 && (ci.high - 11.959_964).abs() < 1e-6);
}

#[test]
fn welch_agrees_with_r() {
    // t.test(c(1,2,3,4,5), c(2,4,6,8,10)): t = -1.8974, df = 5.8824, p = 0.1075.
    let w = welch(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 4.0, 6.0, 8.0, 10.0]).expect("defined");
    assert!((w.t + 1.897_366_596).abs() < 1e-8);
    assert_eq!(w.degrees, 5);
    // 2 * pt(-1.897366596, 5).
    assert!((w.p - 0.116_255_3).abs() < 1e-5, "{}", w.p);
    assert_eq!(welch(&[1.0, 1.0], &[1.0, 1.0]), None);
    assert_eq!(welch(&[1.0], &[1.0, 2.0]), None);
}

#[test]
fn student_at_known_quantiles() {
    for (t, degrees, p) in [
        (12.706_204_736, 1.0, 0.05),
        (2.228_138_852, 10.0, 0.05),
        (1.959_963_985, 1e9, 0.05),
    ] {
        assert!(
            (student_two_sided(t, degrees) - p).abs() < 1e-6,
            "t {t} df {degrees}"
        );
    }
    assert!((student_two_sided(0.0, 7.0) - 1.0).abs() < 1e-12);
}

#[test]
fn median_of_odd_and_even() {
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    assert_eq!(median(&[]), None);
}

/// Student's quantiles as tables print them.
#[test]
fn intervals_have_the_quantiles_of_tables() {
    for (degrees, quantile) in [(1, 12.706), (4, 2.776), (30, 2.042), (100, 1.984)] {
        let samples: Vec<f64> = (0..=degrees).map(f64::from).collect();
        let error = stddev(&samples).unwrap() / (samples.len() as f64).sqrt();
        let half = half_interval(&[(1.0, &samples)]).unwrap();
        assert!((half / error - quantile).abs() < 0.001, "{degrees}: {half}");
    }
    assert_eq!(half_interval(&[(1.0, &[3.0, 3.0])]), None);
    assert_eq!(half_interval(&[(1.0, &[3.0])]), None);
}

proptest! {
    #[test]
    fn order_of_means(samples in prop::collection::vec(0.001f64..1e6, 1..50)) {
        let (h, g, a) = (hmean(&samples).unwrap(), gmean(&samples).unwrap(), amean(&samples).unwrap());
        let slack = 1e-9 * a;
        prop_assert!(min(&samples).unwrap() <= h + slack && h <= g + slack);
        prop_assert!(g <= a + slack && a <= max(&samples).unwrap() + slack);
    }

    #[test]
    fn quantiles_are_samples_and_monotone(
        samples in prop::collection::vec(-1e6f64..1e6, 1..50), p in 0.0f64..100.0, q in 0.0f64..100.0,
    ) {
        let sorted = sorted(&samples);
        let (low, high) = if p < q { (p, q) } else { (q, p) };
        for quantile in [percentile, quartile_2016] {
            let (a, b) = (quantile(&sorted, low).unwrap(), quantile(&sorted, high).unwrap());
            prop_assert!(a <= b && samples.contains(&a));
        }
    }

    #[test]
    fn nothing_panics(
        a in prop::collection::vec(any::<f64>(), 0..6), b in prop::collection::vec(any::<f64>(), 0..6),
        p in any::<f64>(),
    ) {
        let s = sorted(&a);
        let _ = (percentile(&s, p), quartile_2016(&s, p), median(&a), welch(&a, &b));
        let _ = (significant(&a, &b), bamean(&a, p, Preference::Higher), bhmean(&a, p, Preference::Lower));
    }
}
