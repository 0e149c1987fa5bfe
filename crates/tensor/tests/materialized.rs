//! What an operation copies for itself is an implicit copy: in the log as that, and refused where those are.

use osteon_memory::{CopyReason, copies};
use osteon_spec::Device;
use osteon_tensor::View;

#[test]
fn a_promotion_that_nobody_asked_for_is_an_implicit_copy() {
    let cpu = Device::cpu();
    let narrow = View::from_slice(&[1i32, 5], &[2], &cpu).unwrap();
    let wide = View::from_slice(&[5i64], &[1], &cpu).unwrap();

    let mark = copies::mark();
    let found = narrow.isin(&wide, false).unwrap();
    assert_eq!(found.to_vec::<bool>().unwrap(), [false, true]);
    let made = copies::since(&mark).on_this_thread();
    let said: Vec<_> = made.iter().map(|c| (c.reason, c.op, c.bytes)).collect();
    assert_eq!(said, [(CopyReason::Materialized, "isin", 16)]);

    let _none = copies::forbid();
    assert!(narrow.isin(&wide, false).unwrap_err().is_copy_forbidden());
    assert!(wide.isin(&wide, false).is_ok());
}
