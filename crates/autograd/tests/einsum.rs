//! `einsum` against products and views that say the same.

use osteon_autograd::Tensor;
use osteon_spec::Result;

fn counted<const N: usize>(shape: [usize; N]) -> Result<Tensor> {
    let n = shape.iter().product::<usize>() as i64;
    let values = (0..n).map(|i| (i * 7 + 3) % 11 - 5).collect();
    Tensor::from_vec(values, shape)
}

fn numbers(t: &Tensor) -> Vec<i64> {
    t.to_vec().expect("elements")
}

#[test]
fn einsum_is_what_it_says() -> Result<()> {
    let (a, b) = (counted([3, 4])?, counted([4, 5])?);
    let want = numbers(&a.matmul(&b)?);
    assert_eq!(numbers(&Tensor::einsum("ij,jk", &[&a, &b])?), want);
    assert_eq!(numbers(&Tensor::einsum("ij,jk->ki", &[&a, &b])?.t()?), want);
    let chained = Tensor::einsum("ij,jk,kl->il", &[&a, &b, &b.t()?])?;
    assert_eq!(numbers(&chained), numbers(&a.matmul(&b)?.matmul(&b.t()?)?));
    let square = counted([4, 4])?;
    assert_eq!(
        numbers(&Tensor::einsum("ii->i", &[&square])?),
        numbers(&square.diagonal(0, 0, 1)?)
    );
    assert!(Tensor::einsum("ii->i", &[&square])?.shares_storage(&square));
    let batch = counted([2, 3, 4])?;
    assert_eq!(
        numbers(&Tensor::einsum("...ij,jk->...ik", &[&batch, &b])?),
        numbers(&batch.matmul(&b)?)
    );
    for wrong in [
        "ij,jk->ikl",
        "ij,jk->ii",
        "ij",
        "i,jk",
        "ij,ik",
        "i1,jk",
        "i......j,jk",
    ] {
        assert!(Tensor::einsum(wrong, &[&a, &b]).is_err(), "{wrong}");
    }
    Ok(())
}
