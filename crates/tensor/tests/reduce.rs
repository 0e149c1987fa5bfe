//! Reductions and scans against a loop over one element at a time in `float64`: layouts, dtypes, sizes at
//! which the work is split, and threads.

use osteon_kernels::par;
use osteon_spec::{DType, Device, Result};
use osteon_tensor::View;

/// A dense view of numbers between −3 and 3 in steps of a quarter, which every dtype with fractions holds.
fn numbers(shape: &[usize], dtype: DType) -> View {
    let n: usize = shape.iter().product();
    let values: Vec<f64> = (0..n)
        .map(|i| ((i * 7919 + i / 13) % 25) as f64 * 0.25 - 3.0)
        .collect();
    let view = View::from_slice(&values, shape, &Device::cpu()).unwrap();
    let view = if dtype.is_signed() || dtype.is_float() {
        view
    } else {
        positive(view)
    };
    view.to_dtype(dtype).unwrap()
}

fn positive(view: View) -> View {
    let values: Vec<f64> = view
        .to_vec::<f64>()
        .unwrap()
        .iter()
        .map(|v| v.abs())
        .collect();
    View::from_slice(&values, view.shape(), &Device::cpu()).unwrap()
}

/// Views of many layouts, some large enough for every way in which work is split.
fn layouts(dtype: DType) -> Vec<View> {
    let x = numbers(&[3, 4, 10], dtype);
    vec![
        x.clone(),
        x.permute(&[2, 0, 1]).unwrap(),
        x.slice(2, Some(1), None, 3).unwrap(),
        x.slice(0, Some(1), None, 1)
            .unwrap()
            .permute(&[1, 2, 0])
            .unwrap(),
        numbers(&[3, 1, 5], dtype).expand(&[3, 4, 5]).unwrap(),
        numbers(&[], dtype),
        numbers(&[1, 7, 1], dtype),
        numbers(&[3, 0, 5], dtype),
        numbers(&[300, 70], dtype),
        numbers(&[300, 70], dtype).permute(&[1, 0]).unwrap(),
        numbers(&[9000, 3], dtype).slice(0, None, None, 2).unwrap(),
    ]
}

fn large(dtype: DType) -> Vec<View> {
    vec![
        numbers(&[70_001], dtype),
        numbers(&[70_001], dtype)
            .slice(0, Some(3), None, 2)
            .unwrap(),
        numbers(&[22_000, 3], dtype),
        numbers(&[15_000, 5], dtype).permute(&[1, 0]).unwrap(),
        numbers(&[40, 1700], dtype),
        numbers(&[1700, 40], dtype),
    ]
}

/// All lists of dims of a rank.
fn lists(rank: usize) -> Vec<Vec<usize>> {
    (1..1usize << rank)
        .map(|bits| (0..rank).filter(|d| bits >> d & 1 == 1).collect())
        .collect()
}

fn values(view: &View) -> Vec<f64> {
    view.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

/// For each index of the other dims, the elements along these, both in row-major order.
fn lines(view: &View, dims: &[usize]) -> Vec<Vec<f64>> {
    let shape = view.shape();
    let kept: usize = (0..shape.len())
        .filter(|d| !dims.contains(d))
        .map(|d| shape[d])
        .product();
    let mut lines = vec![vec![]; kept];
    for (i, &x) in values(view).iter().enumerate() {
        let (mut rest, mut line, mut step) = (i, 0, 1);
        for d in (0..shape.len()).rev() {
            if !dims.contains(&d) {
                line += rest % shape[d] * step;
                step *= shape[d];
            }
            rest /= shape[d];
        }
        lines[line].push(x);
    }
    lines
}

fn close(got: f64, want: f64, terms: f64, dtype: DType) -> bool {
    let eps = match dtype {
        DType::BF16 => 1e-2,
        DType::F16 => 1e-3,
        DType::F32 => 3e-7,
        _ => {
            return (got - want).abs() <= 1e-14 * (1.0 + terms)
                || got.is_nan() && want.is_nan()
                || got == want;
        }
    };
    (got - want).abs() <= eps * (0.1 + want.abs()) || got.is_nan() && want.is_nan() || got == want
}

type Run = fn(&View, &[isize], bool) -> Result<View>;
type Twin = fn(&[f64]) -> f64;

fn check(name: &str, run: Run, twin: Twin, views: &[View]) {
    for view in views {
        for dims in lists(view.dim()) {
            let list: Vec<isize> = dims.iter().map(|&d| d as isize).collect();
            for keepdim in [false, true]
                .into_iter()
                .take(if view.numel() < 1000 { 2 } else { 1 })
            {
                let got = run(view, &list, keepdim)
                    .unwrap_or_else(|e| panic!("{name} of {} over {dims:?}: {e}", view.layout()));
                assert!(got.layout().is_contiguous());
                let shape: Vec<usize> = (0..view.dim())
                    .filter(|d| keepdim || !dims.contains(d))
                    .map(|d| {
                        if dims.contains(&d) {
                            1
                        } else {
                            view.shape()[d]
                        }
                    })
                    .collect();
                assert_eq!(
                    got.shape(),
                    shape,
                    "{name} of {} over {dims:?}",
                    view.layout()
                );
                let lines = lines(view, &dims);
                let got_values = values(&got);
                assert_eq!(got_values.len(), lines.len());
                for (line, got_value) in lines.iter().zip(got_values) {
                    let (want, terms) = (twin(line), line.iter().map(|x| x.abs()).sum());
                    assert!(
                        close(got_value, want, terms, got.dtype()),
                        "{name} of {} {} over {dims:?}: {got_value}, want {want}",
                        view.dtype(),
                        view.layout()
                    );
                }
            }
        }
    }
}

fn mean(line: &[f64]) -> f64 {
    line.iter().sum::<f64>() / line.len() as f64
}

fn variance(line: &[f64]) -> f64 {
    let mean = mean(line);
    line.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (line.len() as f64 - 1.0).max(0.0)
}

fn log_sum(line: &[f64]) -> f64 {
    line.iter().map(|x| x.exp()).sum::<f64>().ln()
}

const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];
const INTS: [DType; 6] = [
    DType::I64,
    DType::I32,
    DType::I8,
    DType::U8,
    DType::U64,
    DType::Bool,
];

#[test]
fn sums_of_all_layouts_and_dtypes() {
    for dtype in FLOATS.into_iter().chain(INTS) {
        let views = layouts(dtype);
        check(
            "sum",
            |x, d, k| x.sum(d, k, None),
            |l| l.iter().sum(),
            &views,
        );
        check(
            "any",
            |x, d, k| x.any(Some(d), k),
            |l| l.iter().any(|&x| x != 0.0).into(),
            &views,
        );
        check(
            "all",
            |x, d, k| x.all(Some(d), k),
            |l| l.iter().all(|&x| x != 0.0).into(),
            &views,
        );
    }
}

#[test]
fn floats_of_all_layouts() {
    for dtype in FLOATS {
        let views = layouts(dtype);
        check("mean", |x, d, k| x.mean(d, k, None), mean, &views);
        check("var", |x, d, k| x.var(d, 1.0, k), variance, &views);
        check("logsumexp", |x, d, k| x.logsumexp(d, k), log_sum, &views);
        check(
            "norm 2",
            |x, d, k| x.vector_norm(2.0, d, k, None),
            |l| l.iter().map(|x| x * x).sum::<f64>().sqrt(),
            &views,
        );
        check(
            "norm 3",
            |x, d, k| x.vector_norm(3.0, d, k, None),
            |l| l.iter().map(|x| x.abs().powi(3)).sum::<f64>().cbrt(),
            &views,
        );
        check(
            "nansum",
            |x, d, k| x.nansum(d, k, None),
            |l| l.iter().sum(),
            &views,
        );
    }
}

#[test]
fn products_of_a_few() {
    for dtype in [DType::F64, DType::F32, DType::I64, DType::I8] {
        let views = [
            numbers(&[2, 3, 2], dtype),
            numbers(&[2, 5], dtype).permute(&[1, 0]).unwrap(),
        ];
        check(
            "prod",
            |x, d, k| x.prod(d, k, None),
            |l| l.iter().product(),
            &views,
        );
    }
}

#[test]
fn extremes_of_all_layouts_and_dtypes() {
    for dtype in FLOATS.into_iter().chain(INTS) {
        let views: Vec<View> = layouts(dtype)
            .into_iter()
            .filter(|v| v.numel() > 0)
            .collect();
        check(
            "amax",
            |x, d, k| x.amax(d, k),
            |l| l.iter().copied().fold(f64::MIN, f64::max),
            &views,
        );
        check(
            "amin",
            |x, d, k| x.amin(d, k),
            |l| l.iter().copied().fold(f64::MAX, f64::min),
            &views,
        );
        for view in views {
            for dim in 0..view.dim() {
                let (values_got, places) = view.max_dim(dim as isize, false).unwrap();
                let lines = lines(&view, &[dim]);
                let (values_got, places) = (values(&values_got), values(&places));
                for ((line, value), place) in lines.iter().zip(values_got).zip(places) {
                    let want = line.iter().copied().fold(f64::MIN, f64::max);
                    let first = line.iter().position(|&x| x == want).unwrap();
                    assert_eq!((value, place as usize), (want, first), "{}", view.layout());
                }
            }
        }
    }
}

#[test]
fn places_over_all_elements_are_counted_in_row_major_order() {
    for view in layouts(DType::F32).into_iter().chain(large(DType::F32)) {
        if view.numel() > 0 {
            let all = values(&view);
            let low = all.iter().copied().fold(f64::MAX, f64::min);
            let first = all.iter().position(|&x| x == low).unwrap();
            assert_eq!(values(&view.argmin(None, false).unwrap()), [first as f64]);
        }
    }
}

#[test]
fn large_ones_are_split() {
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::I32] {
        let views = large(dtype);
        check(
            "sum",
            |x, d, k| x.sum(d, k, None),
            |l| l.iter().sum(),
            &views,
        );
    }
    let views = large(DType::F32);
    check("var", |x, d, k| x.var(d, 1.0, k), variance, &views);
    check(
        "amax",
        |x, d, k| x.amax(d, k),
        |l| l.iter().copied().fold(f64::MIN, f64::max),
        &views,
    );
}

#[test]
fn results_do_not_depend_on_threads() {
    let views: Vec<View> = large(DType::F32);
    let results = || -> Vec<Vec<f32>> {
        let mut all = vec![];
        for view in &views {
            for dims in [&[][..], &[0], &[-1]] {
                all.push(view.mean(dims, false, None).unwrap().to_vec().unwrap());
                all.push(view.std(dims, 1.0, false).unwrap().to_vec().unwrap());
                all.push(view.logsumexp(dims, false).unwrap().to_vec().unwrap());
            }
            all.push(view.cumsum(-1, None).unwrap().to_vec().unwrap());
            all.push(view.softmax(0).unwrap().to_vec().unwrap());
        }
        all
    };
    par::set_num_threads(1);
    let alone = results();
    par::set_num_threads(3);
    assert_eq!(results(), alone);
}

#[test]
fn a_sum_of_float32_loses_what_a_few_terms_lose() {
    // Eight terms are added in float32, all else in float64: seven ones beside the large number are lost, and no others.
    let mut values = vec![1.0f32; 100_000];
    values[0] = 1e8;
    let x = View::from_slice(&values, &[100_000], &Device::cpu()).unwrap();
    let sum = x.sum(&[], false, None).unwrap().to_vec::<f32>().unwrap()[0];
    assert_eq!(sum, (1e8 + 99_999.0 - 7.0) as f32);
}

#[test]
fn infinities_and_nan() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let of = |values: &[f32]| View::from_slice(values, &[values.len()], &Device::cpu()).unwrap();
    let one = |view: Result<View>| view.unwrap().to_vec::<f32>().unwrap()[0];
    for n in [1, 7, 40, 5000] {
        let lone = |at: usize, x: f32| {
            let mut values = vec![1.0; n];
            values[at % n] = x;
            of(&values)
        };
        for at in [0, 3, 33] {
            assert!(one(lone(at, nan).amax(&[], false)).is_nan());
            assert!(one(lone(at, nan).amin(&[], false)).is_nan());
            assert!(one(lone(at, nan).logsumexp(&[], false)).is_nan());
            assert_eq!(one(lone(at, inf).logsumexp(&[], false)), inf);
            let place = lone(at, nan)
                .argmax(None, false)
                .unwrap()
                .to_vec::<i64>()
                .unwrap();
            assert_eq!(place, [(at % n) as i64]);
        }
        assert_eq!(one(of(&vec![-inf; n]).logsumexp(&[], false)), -inf);
        assert_eq!(one(of(&vec![-inf; n]).amax(&[], false)), -inf);
        assert_eq!(
            of(&vec![-inf; n])
                .argmax(None, false)
                .unwrap()
                .to_vec::<i64>()
                .unwrap(),
            [0]
        );
    }
    let masked = of(&[0.0, -inf, 0.0]).softmax(0).unwrap();
    assert_eq!(masked.to_vec::<f32>().unwrap(), [0.5, 0.0, 0.5]);
}

#[test]
fn an_infinite_element_has_an_infinite_mean_and_no_spread_wherever_it_is() {
    for n in [1, 2, 7, 40, 3000] {
        for at in [0, n / 2, n - 1] {
            // A line, and the first column of three.
            for columns in [1, 3] {
                let mut values = vec![1.0; n * columns];
                values[at * columns] = f32::NEG_INFINITY;
                let x = View::from_slice(&values, &[n, columns], &Device::cpu()).unwrap();
                let (std, mean) = x.std_mean(&[0], 0.0, false).unwrap();
                let (std, mean) = (std.to_vec::<f32>().unwrap(), mean.to_vec::<f32>().unwrap());
                assert!(std[0].is_nan(), "{n} {at} {columns}: {}", std[0]);
                assert_eq!(mean[0], f32::NEG_INFINITY, "{n} {at} {columns}");
                assert!(std[1..].iter().all(|&x| x == 0.0));
            }
        }
    }
}

#[test]
fn extremes_of_nothing_are_refused() {
    let x = View::zeros(&[0, 3], DType::F32, &Device::cpu()).unwrap();
    assert!(x.amax(&[], false).unwrap_err().is_value());
    assert!(x.max_dim(0, false).unwrap_err().is_value());
    assert!(x.argmin(None, false).unwrap_err().is_value());
    assert!(
        x.vector_norm(f64::INFINITY, &[0], false, None)
            .unwrap_err()
            .is_value()
    );
    assert_eq!(x.amax(&[1], false).unwrap().shape(), [0]);
    assert_eq!(
        x.sum(&[0], false, None).unwrap().to_vec::<f32>().unwrap(),
        [0.0; 3]
    );
    assert!(x.sum(&[0, -2], false, None).unwrap_err().is_value());
    assert!(x.sum(&[2], false, None).unwrap_err().is_index());
}

/// The results of `f(before, index, x)` for each element.
fn steps(line: &[f64], first: f64, mut f: impl FnMut(f64, usize, f64) -> f64) -> Vec<f64> {
    let mut state = first;
    let step = |(i, &x): (usize, &f64)| {
        state = f(state, i, x);
        state
    };
    line.iter().enumerate().map(step).collect()
}

#[test]
fn scans_of_all_layouts_and_dtypes() {
    type Scan = fn(&View, isize) -> Result<View>;
    type Twin = fn(&[f64]) -> Vec<f64>;
    let scans: [(&str, Scan, Twin); 4] = [
        (
            "cumsum",
            |x, d| x.cumsum(d, None),
            |l| steps(l, 0.0, |sum, _, x| sum + x),
        ),
        (
            "cummax",
            |x, d| Ok(x.cummax(d)?.0),
            |l| steps(l, f64::MIN, |max, _, x| max.max(x)),
        ),
        (
            "cummax's places",
            |x, d| Ok(x.cummax(d)?.1),
            |l| {
                let mut max = f64::MIN;
                steps(l, 0.0, |place, i, x| {
                    let is_newer = x >= max;
                    max = max.max(x);
                    if is_newer { i as f64 } else { place }
                })
            },
        ),
        (
            "cummin",
            |x, d| Ok(x.cummin(d)?.0),
            |l| steps(l, f64::MAX, |min, _, x| min.min(x)),
        ),
    ];
    for dtype in FLOATS.into_iter().chain(INTS) {
        for view in layouts(dtype)
            .into_iter()
            .filter(|v| v.shape().iter().all(|&n| n < 1000))
        {
            for dim in 0..view.dim() {
                for (name, scan, twin) in scans {
                    let got = scan(&view, dim as isize).unwrap();
                    assert!(got.layout().is_contiguous() && got.shape() == view.shape());
                    let got_lines = lines(&got, &[dim]);
                    for (line, got_line) in lines(&view, &[dim]).iter().zip(got_lines) {
                        let terms = line.iter().map(|x| x.abs()).sum();
                        for (got_value, want) in got_line.into_iter().zip(twin(line)) {
                            assert!(
                                close(got_value, want, terms, got.dtype()),
                                "{name} of {dtype} {} along {dim}: {got_value}, want {want}",
                                view.layout()
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn scans_in_place() {
    let x = numbers(&[4, 300], DType::F32);
    for (dim, view) in [
        (0, x.clone()),
        (1, x.clone()),
        (0, x.permute(&[1, 0]).unwrap()),
    ] {
        let want = view.cumsum(dim, None).unwrap().to_vec::<f32>().unwrap();
        let version = view.version();
        view.cumsum_(dim).unwrap();
        assert_eq!(view.to_vec::<f32>().unwrap(), want);
        assert_eq!(view.version(), version + 1);
    }
    let row = numbers(&[1, 3], DType::F32).expand(&[2, 3]).unwrap();
    assert!(row.cumsum_(0).unwrap_err().is_overlap());
}
