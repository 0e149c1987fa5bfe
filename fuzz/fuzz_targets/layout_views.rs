//! Any chain of views with any arguments: an error or a layout that keeps the invariants, never a
//! panic; and no view but `as_strided` reaches outside the layout that it is taken of.

#![no_main]

use osteon_spec::{DType, Layout, MemoryFormat, ReshapeInfo, Result};

/// Numbers from the input, mostly small, now and then at the edge of what fits.
struct Numbers<'a>(std::slice::Iter<'a, u8>);

impl Numbers<'_> {
    fn byte(&mut self) -> Option<u8> {
        self.0.next().copied()
    }

    fn signed(&mut self) -> Option<isize> {
        Some(match self.byte()? {
            small @ 0..=199 => isize::from(small) % 20 - 8,
            shift @ 200..=230 => 1 << (2 * (shift - 200)),
            231..=240 => isize::MAX,
            241..=250 => isize::MIN,
            _ => isize::from(self.byte()?) << 32,
        })
    }

    fn unsigned(&mut self) -> Option<usize> {
        self.signed()
            .map(|n| n.unsigned_abs().min(isize::MAX as usize))
    }

    fn list(&mut self) -> Option<Vec<isize>> {
        let len = self.byte()? % 6;
        (0..len).map(|_| self.signed()).collect()
    }
}

fn layout(numbers: &mut Numbers<'_>) -> Option<Layout> {
    let sizes: Vec<usize> = numbers
        .list()?
        .into_iter()
        .map(isize::unsigned_abs)
        .collect();
    if numbers.byte()? % 2 == 0 {
        return Layout::contiguous(&sizes).ok();
    }
    let strides = sizes
        .iter()
        .map(|_| numbers.unsigned())
        .collect::<Option<Vec<_>>>()?;
    Layout::new(sizes.into(), strides.into(), numbers.unsigned()?).ok()
}

fn view(x: &Layout, numbers: &mut Numbers<'_>) -> Option<Result<Layout>> {
    Some(match numbers.byte()? % 16 {
        0 => x.view(&numbers.list()?),
        1 => x.permute(&numbers.list()?),
        2 => x.transpose(numbers.signed()?, numbers.signed()?),
        3 => x.movedim(&numbers.list()?, &numbers.list()?),
        4 => x.select(numbers.signed()?, numbers.signed()?),
        5 => x.slice(
            numbers.signed()?,
            numbers.signed(),
            numbers.signed(),
            numbers.signed()?,
        ),
        6 => x.narrow(numbers.signed()?, numbers.signed()?, numbers.signed()?),
        7 => x.diagonal(numbers.signed()?, numbers.signed()?, numbers.signed()?),
        8 => x.unfold(numbers.signed()?, numbers.signed()?, numbers.signed()?),
        9 => x.squeeze_dims(&numbers.list()?),
        10 => x.unsqueeze(numbers.signed()?),
        11 => x.expand(&numbers.list()?),
        12 => x.unflatten(numbers.signed()?, &numbers.list()?),
        13 => match x.flatten(numbers.signed()?, numbers.signed()?) {
            Ok(Some(ReshapeInfo::View(y))) => Ok(y),
            Ok(_) => Ok(x.clone()),
            Err(e) => Err(e),
        },
        14 => Ok(x.squeeze()),
        _ => x.mt(),
    })
}

fn keeps_invariants(x: &Layout) {
    Layout::new(x.sizes().into(), x.strides().into(), x.offset()).unwrap();
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut numbers = Numbers(bytes.iter());
    let Some(mut x) = layout(&mut numbers) else {
        return;
    };
    while let Some(result) = view(&x, &mut numbers) {
        let y = match result {
            Ok(y) => y,
            Err(e) => {
                assert!(e.op_name().is_some(), "{e}");
                continue;
            }
        };
        keeps_invariants(&y);
        if y.numel() > 0 {
            assert!(
                y.offset() >= x.offset() && y.required_len() <= x.required_len(),
                "{x} to {y}"
            );
        }
        for other in [
            y.like(MemoryFormat::Preserve),
            y.like(MemoryFormat::ChannelsLast),
            y.view_as_real(),
            y.view_as_complex(),
            y.view_dtype(DType::F32, DType::U8),
            y.view_dtype(DType::U8, DType::F64),
        ] {
            other.iter().for_each(keeps_invariants);
        }
        x = y;
    }
});
