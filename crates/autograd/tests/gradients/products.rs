//! Products.

use crate::check::{check, complex, numbers, pairs};
use osteon_autograd::Tensor;

/// Over all layouts of both factors, real and complex.
fn bilinear<const M: usize, const N: usize>(
    name: &str,
    a: [usize; M],
    b: [usize; N],
    f: impl Fn(&Tensor, &Tensor) -> osteon_spec::Result<Tensor>,
) {
    let g = |x: &[Tensor]| f(&x[0], &x[1]);
    pairs(&numbers(a), &numbers(b), |k, pair| {
        check(&format!("{name}, layouts {k}"), pair, g)
    });
    check(&format!("{name}, complex"), &[complex(a), complex(b)], g);
}

#[test]
fn of_matrices_and_vectors() {
    bilinear("mm", [2, 3], [3, 2], |a, b| a.mm(b));
    bilinear("bmm", [2, 2, 3], [2, 3, 1], |a, b| a.bmm(b));
    bilinear("mv", [2, 3], [3], |a, b| a.mv(b));
    bilinear("dot", [3], [3], |a, b| a.dot(b));
    bilinear("vdot", [3], [3], |a, b| a.vdot(b));
    bilinear("outer", [2], [3], |a, b| a.outer(b));
    bilinear("inner", [2, 3], [2, 3], |a, b| a.inner(b));
    bilinear("inner of a number", [], [3], |a, b| a.inner(b));
    bilinear("vecdot", [2, 3], [3], |a, b| a.vecdot(b, -1));
    bilinear("vecdot", [2, 3], [2, 1], |a, b| a.vecdot(b, 0));
    bilinear("cross", [2, 3], [1, 3], |a, b| a.cross(b, -1));
}

#[test]
fn of_batches_that_broadcast() {
    bilinear("matmul", [2, 1, 2, 3], [2, 3, 2], |a, b| a.matmul(b));
    bilinear("matmul", [3], [2, 3, 2], |a, b| a.matmul(b));
    bilinear("matmul", [2, 2, 3], [3], |a, b| a.matmul(b));
    bilinear("matmul", [2, 3], [2, 3, 2], |a, b| a.matmul(b));
    bilinear("matmul", [2, 2, 3], [3, 2], |a, b| a.matmul(b));
    bilinear("matmul of nothing", [2, 0], [0, 3], |a, b| a.matmul(b));
}

#[test]
fn over_chosen_dims() {
    bilinear("tensordot", [2, 3, 2], [3, 2], |a, b| {
        a.tensordot(b, [1, -1], [0, 1])
    });
    bilinear("tensordot", [2, 1], [3, 2], |a, b| a.tensordot(b, [1], [0]));
    bilinear("tensordot", [2], [3], |a, b| a.tensordot(b, [], []));
    for (equation, a, b) in [
        ("ij,jk->ik", [2, 3], [3, 2]),
        ("ij,jk->ki", [2, 3], [3, 2]),
        ("ij,kj->", [2, 3], [2, 3]),
        ("ii,ik->k", [2, 2], [2, 3]),
        ("ij,ij->ij", [2, 3], [1, 3]),
        ("ij,kl->il", [2, 3], [2, 2]),
        ("ij,ik->ijk", [2, 3], [1, 2]),
    ] {
        bilinear(equation, a, b, |a, b| Tensor::einsum(equation, &[a, b]));
    }
    check("trace", &[numbers([3, 3])], |x| {
        Tensor::einsum("ii", &[&x[0]])
    });
    check("transposed", &[numbers([2, 3])], |x| {
        Tensor::einsum("ij->ji", &[&x[0]])
    });
    let three = [numbers([2, 3]), numbers([3, 2]), numbers([2, 2])];
    check("three", &three, |x| {
        Tensor::einsum("ij,jk,kl->il", &[&x[0], &x[1], &x[2]])
    });
    check("three", &three, |x| {
        Tensor::einsum("ij,jk,kl->j", &[&x[0], &x[1], &x[2]])
    });
}

#[test]
fn that_are_added() {
    let sets = [
        [numbers([2]), numbers([2, 3]), numbers([3, 2])],
        [complex([2, 2]), complex([2, 3]), complex([3, 2])],
    ];
    for x in &sets {
        check("addmm", x, |x| x[0].addmm(&x[1], &x[2]));
        check("addmm_scaled", x, |x| {
            x[0].addmm_scaled(&x[1], &x[2], 0.5, -2.0)
        });
        check("addmm_", x, |x| {
            let y = x[0].expand([2, 2])?.copy()?;
            y.addmm_(&x[1], &x[2], 0.5, -2.0)?;
            Ok(y)
        });
    }
    let x = [numbers([1]), numbers([2, 3]), numbers([3])];
    check("addmv", &x, |x| x[0].addmv_scaled(&x[1], &x[2], 3.0, 0.5));
    let x = [numbers([2, 1]), numbers([2, 2, 3]), numbers([2, 3, 2])];
    check("baddbmm", &x, |x| {
        x[0].baddbmm_scaled(&x[1], &x[2], 0.0, 0.5)
    });
    check("addbmm", &x, |x| x[0].addbmm_scaled(&x[1], &x[2], 2.0, 0.5));
    let x = [numbers([2, 3]), numbers([2]), numbers([3])];
    check("addr", &x, |x| x[0].addr(&x[1], &x[2], 2.0, 0.5));
    let i = num_complex::Complex::new(0.0, 1.0);
    let x = [complex([2, 3]), complex([2]), complex([3])];
    check("addr", &x, |x| x[0].addr(&x[1], &x[2], i, 0.5));
}

#[test]
fn of_chains_powers_and_inverses() {
    let x = [numbers([2]), numbers([2, 3]), numbers([3, 2]), numbers([2])];
    check("multi_dot", &x, |x| {
        Tensor::multi_dot(&[&x[0], &x[1], &x[2], &x[3]])
    });
    check("multi_dot", &x[1..], |x| {
        Tensor::multi_dot(&[&x[0], &x[1], &x[2]])
    });
    check("multi_dot", &x[1..3], |x| {
        Tensor::multi_dot(&[&x[0], &x[1]])
    });
    let regular = numbers([2, 2, 2])
        .add(
            &Tensor::eye(2, osteon_spec::DType::F64, &osteon_spec::Device::cpu())
                .unwrap()
                .mul(2.0)
                .unwrap(),
        )
        .unwrap();
    for n in [-2, -1, 0, 1, 2, 3, 5] {
        check(
            &format!("matrix_power {n}"),
            std::slice::from_ref(&regular),
            |x| x[0].matrix_power(n),
        );
    }
    check("matrix_power", &[complex([2, 2])], |x| x[0].matrix_power(3));
    check("inverse", std::slice::from_ref(&regular), |x| {
        x[0].inverse()
    });
    check("inverse", &[complex([2, 2])], |x| x[0].inverse());
}
