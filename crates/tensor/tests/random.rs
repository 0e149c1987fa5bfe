//! Random tensors: the same ones after the same seed, whatever the threads; distributed as they should be.

use std::sync::{Mutex, MutexGuard, PoisonError};

use osteon_kernels::par;
use osteon_spec::{DType, Device};
use osteon_tensor::{Distribution, View, manual_seed};

/// The stream of random numbers is one for the process: tests that seed it take turns.
fn seeded(seed: u64) -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    manual_seed(seed);
    turn
}

fn draw(distribution: Distribution, n: usize) -> Vec<f64> {
    View::random(&[n], distribution, DType::F64, &Device::cpu(), "test")
        .unwrap()
        .to_vec()
        .unwrap()
}

const UNIFORM: Distribution = Distribution::Uniform(0.0, 1.0);
const NORMAL: Distribution = Distribution::Normal(0.0, 1.0);

#[test]
fn a_seed_gives_the_same_numbers_whatever_the_threads() {
    let threads = par::num_threads();
    let draws: Vec<_> = [1, 2, 5]
        .into_iter()
        .map(|n| {
            let _turn = seeded(42);
            par::set_num_threads(n);
            let draws = (draw(UNIFORM, 100_000), draw(NORMAL, 100_000));
            par::set_num_threads(threads);
            draws
        })
        .collect();
    assert!(draws.iter().all(|d| *d == draws[0]));
    let _turn = seeded(43);
    assert_ne!(draw(UNIFORM, 100_000), draws[0].0);
}

#[test]
fn draws_follow_one_another_in_the_stream() {
    let _turn = seeded(1);
    let (first, second) = (draw(UNIFORM, 10), draw(UNIFORM, 10));
    manual_seed(1);
    let both = draw(UNIFORM, 20);
    assert_eq!([first, second].concat(), both);
}

/// Mean and variance within five standard errors; each tenth of the interval as full as it should be.
#[test]
fn uniform_numbers_are_uniform() {
    let _turn = seeded(3);
    let n = 200_000;
    let x = draw(UNIFORM, n);
    assert!(x.iter().all(|x| (0.0..1.0).contains(x)));
    let mean = x.iter().sum::<f64>() / n as f64;
    assert!(
        (mean - 0.5).abs() < 5.0 * (1.0 / 12.0 / n as f64).sqrt(),
        "{mean}"
    );
    for tenth in 0..10 {
        let count = x.iter().filter(|&&x| (x * 10.0) as usize == tenth).count() as f64;
        assert!(
            (count - 20_000.0).abs() < 5.0 * (20_000.0f64 * 0.9).sqrt(),
            "{tenth}: {count}"
        );
    }
    // Neighbours are independent.
    let both: f64 = x
        .windows(2)
        .map(|w| (w[0] - 0.5) * (w[1] - 0.5))
        .sum::<f64>()
        / n as f64;
    assert!(both.abs() < 5.0 / 12.0 / (n as f64).sqrt(), "{both}");
}

#[test]
fn normal_numbers_are_normal() {
    let _turn = seeded(4);
    let n = 200_000;
    let x = draw(Distribution::Normal(2.0, 3.0), n);
    let mean = x.iter().sum::<f64>() / n as f64;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
    let fourth = x.iter().map(|x| ((x - mean) / 3.0).powi(4)).sum::<f64>() / n as f64;
    assert!((mean - 2.0).abs() < 5.0 * 3.0 / (n as f64).sqrt(), "{mean}");
    assert!(
        (variance / 9.0 - 1.0).abs() < 5.0 * (2.0 / n as f64).sqrt(),
        "{variance}"
    );
    assert!(
        (fourth - 3.0).abs() < 5.0 * (96.0 / n as f64).sqrt(),
        "{fourth}"
    );
    let within = x.iter().filter(|x| (*x - 2.0).abs() < 3.0).count() as f64 / n as f64;
    assert!((within - 0.682_689_5).abs() < 0.005, "{within}");
}

#[test]
fn integers_and_probabilities() {
    let _turn = seeded(5);
    let x = draw(Distribution::Integers(-2, 5), 50_000);
    for value in -2..3 {
        let count = x.iter().filter(|&&x| x == f64::from(value)).count() as f64;
        assert!((count - 10_000.0).abs() < 450.0, "{value}: {count}");
    }
    let ones = draw(Distribution::Bernoulli(0.25), 50_000)
        .iter()
        .sum::<f64>();
    assert!((ones - 12_500.0).abs() < 500.0, "{ones}");
    assert!(
        draw(Distribution::Bernoulli(0.0), 100)
            .iter()
            .all(|&x| x == 0.0)
    );
    assert!(
        draw(Distribution::Bernoulli(1.0), 100)
            .iter()
            .all(|&x| x == 1.0)
    );
}

/// Rounding to a narrow dtype never reaches the upper bound.
#[test]
fn narrow_uniform_numbers_stay_below_their_bound() {
    let _turn = seeded(6);
    for dtype in [DType::F16, DType::BF16, DType::F32] {
        let x = View::random(&[100_000], UNIFORM, dtype, &Device::cpu(), "test").unwrap();
        let x = x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        assert!(x.iter().all(|x| (0.0..1.0).contains(x)), "{dtype}");
    }
}

#[test]
fn permutations_have_every_number_once() {
    let _turn = seeded(7);
    let cpu = Device::cpu();
    let order: Vec<i64> = View::randperm(1000, &cpu).unwrap().to_vec().unwrap();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..1000).collect::<Vec<i64>>());
    assert_ne!(order, sorted);
    assert_eq!(View::randperm(0, &cpu).unwrap().numel(), 0);
    // Each of the six orders of three comes up as often.
    let mut counts = std::collections::HashMap::new();
    for _ in 0..6000 {
        let order: Vec<i64> = View::randperm(3, &cpu).unwrap().to_vec().unwrap();
        *counts.entry(order).or_insert(0) += 1;
    }
    assert!(
        counts.len() == 6 && counts.values().all(|&c| (c - 1000i32).abs() < 150),
        "{counts:?}"
    );
}

#[test]
fn draws_in_place_reach_every_element_of_a_view_and_no_other() {
    let _turn = seeded(8);
    let x = View::zeros(&[4, 6], DType::F32, &Device::cpu()).unwrap();
    let even = x.slice(1, None, None, 2).unwrap().transpose(0, 1).unwrap();
    even.random_(Distribution::Uniform(1.0, 2.0), "uniform_")
        .unwrap();
    let values: Vec<f32> = x.to_vec().unwrap();
    for (i, v) in values.iter().enumerate() {
        assert_eq!(*v >= 1.0, i % 2 == 0, "element {i} is {v}");
    }
    assert_eq!(x.version(), 1);
}

#[test]
fn what_a_distribution_does_not_have_is_refused() {
    let x = View::zeros(&[3], DType::F32, &Device::cpu()).unwrap();
    let whole = View::zeros(&[3], DType::I64, &Device::cpu()).unwrap();
    for (x, distribution) in [
        (&x, Distribution::Uniform(2.0, 1.0)),
        (&x, Distribution::Uniform(f64::NAN, 1.0)),
        (&x, Distribution::Normal(0.0, -1.0)),
        (&x, Distribution::Bernoulli(1.5)),
        (&x, Distribution::Integers(0, 0)),
        (&whole, UNIFORM),
        (&whole, NORMAL),
        (
            &x.with_layout(x.layout().expand_to(&[2, 3]).unwrap(), "expand")
                .unwrap(),
            UNIFORM,
        ),
    ] {
        assert!(
            x.random_(distribution, "test").is_err(),
            "{distribution:?} of {}",
            x.dtype()
        );
        assert_eq!(x.version(), 0);
    }
}
