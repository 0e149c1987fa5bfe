//! What hostile programs have in common.

use osteon::nn::parameter;
use osteon::{DType, Device, Result, Tensor, memory};
use std::sync::RwLock;

/// Limits and random numbers are the process's: such tests run one at a time, and no other beside them.
pub static PROCESS: RwLock<()> = RwLock::new(());

pub fn leaf(values: &[f32]) -> Result<Tensor> {
    parameter(Tensor::new(values)?)
}

pub fn grad_of(t: &Tensor) -> Vec<f32> {
    t.grad().map_or(Vec::new(), |g| g.to_vec().unwrap())
}

/// Fails where `f` has not come back in time.
pub fn in_time(f: impl FnOnce() + Send + 'static) {
    let (done, wait) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        f();
        let _ = done.send(());
    });
    let waited = wait.recv_timeout(std::time::Duration::from_secs(60));
    assert!(
        !matches!(waited, Err(std::sync::mpsc::RecvTimeoutError::Timeout)),
        "hangs"
    );
    thread.join().unwrap();
}

/// Runs `f` where there is room for so many tensors of `n` elements, and for nothing else.
pub fn with_left<R>(left: usize, n: usize, f: impl FnOnce() -> R) -> R {
    let device = Device::cpu();
    memory::empty_cache(&device);
    let reserved = memory::stats(&device).reserved_bytes.all.current;
    memory::set_limit(&device, Some(reserved as usize + (left + 1) * n * 4));
    let mut all = Vec::new();
    for size in [n, n / 16, 16] {
        while let Ok(t) = Tensor::zeros([size], DType::F32, &device) {
            all.push(t);
        }
    }
    all.drain(..left);
    let result = f();
    memory::set_limit(&device, None);
    result
}
