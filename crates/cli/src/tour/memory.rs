//! Points 13 to 17: what copies cost, and how memory is watched.

use super::stage::{Stage, live};
use super::{Point, Verdict};
use crate::failure::Failure;
use crate::lang::Text;
use osteon::{DType, Device, Result, Tensor, copies, memory, s};
use std::time::{Duration, Instant};

pub const POINTS: [Point; 5] = [
    Point {
        title: Text {
            en: "Operations copy non-contiguous operands",
            zh: "运算会复制不连续的操作数",
        },
        told: Text {
            en: "non-contiguous operands make implicit copies in operations such as matmul.",
            zh: "不连续的操作数会让 matmul 等运算隐式复制。",
        },
        verdict: Verdict::HalfRight,
        run: any_strides,
        truth: Text {
            en: "it depends on the engine. PyTorch's matmul reads a transposed matrix as it is, and copies steps, \
                 slices of inner dims and broadcast batches. osteon's operations read any strides: \
                 a transpose, every second column, a broadcast row, a product of columns and rows that are \
                 two apart, and no copy in the log.",
            zh: "取决于引擎。PyTorch 的 matmul 能直接读转置矩阵，但会复制带步长的切片、内层维度的切片和广播的批次。\
                 osteon 的运算可以读任意步幅：转置、隔列、广播的一行，以及隔列与隔行的矩阵乘积，日志中都没有复制。",
        },
    },
    Point {
        title: Text {
            en: "Making it contiguous once can pay",
            zh: "先变连续一次，可能更划算",
        },
        told: Text {
            en: "making the input contiguous once can be faster than many small implicit copies.",
            zh: "把输入变连续一次，可能比许多次小的隐式复制更快。",
        },
        verdict: Verdict::Right,
        run: once,
        truth: Text {
            en: "when there are many uses. The two times are of this machine, just now: a sum with the transposed \
                 operand, and one with the dense copy. The copy is paid once, and the log shows its 4,194,304 \
                 bytes; whether the difference pays it back depends on how often the operand is used.",
            zh: "前提是要用很多次。上面两个时间是在这台机器上刚刚测得的：一个用转置的操作数求和，一个用连续的副本求和。\
                 复制只付一次，日志中记着它的 4,194,304 字节；差价能否抵回，要看用多少次。",
        },
    },
    Point {
        title: Text {
            en: "Watch allocated memory and storage sizes together",
            zh: "同时观察已分配内存和存储大小",
        },
        told: Text {
            en: "watch memory_allocated() together with the storages' sizes.",
            zh: "同时观察 memory_allocated() 和各个存储的大小。",
        },
        verdict: Verdict::Right,
        run: allocated,
        truth: Text {
            en: "and PyTorch has it for accelerators only; here the CPU is counted the same way. allocated counts blocks, \
                 which are rounded up, and so may exceed the 4,000 bytes of the storage; reserved also counts \
                 what the allocator keeps cached, and need not fall when tensors go.",
            zh: "而 PyTorch 只对加速器（如 CUDA）提供；这里 CPU 也同样计数。allocated 统计的是取整后的内存块，因此可能多于存储的 4,000 字节；\
                 reserved 还包括分配器缓存的内存，张量释放后不一定下降。",
        },
    },
    Point {
        title: Text {
            en: "Memory that climbs each step",
            zh: "内存每步上涨",
        },
        told: Text {
            en: "memory that climbs each step means that something is kept each step: a copy, or a list of losses.",
            zh: "内存每步上涨，说明每步都有东西被留下：一个副本，或者一个 loss 列表。",
        },
        verdict: Verdict::Right,
        run: climbs,
        truth: Text {
            en: "and there is no need to guess: the difference of two maps names what grew, by how much, and the \
                 line that made it. Losses that keep their graphs are named the same way: what a graph saved, for which \
                 operation, and the tensor that keeps it.",
            zh: "而且不用猜：两张图的差会说出什么增加了、增加了多少、是哪一行造成的。\
                 保留计算图的 loss 也是这样列出：图保存了什么、为哪个运算、被哪个张量留着。",
        },
    },
    Point {
        title: Text {
            en: "Three tensors, two storages",
            zh: "三个张量，两个存储",
        },
        told: Text {
            en: "a picture: tensors A and B point to storage A with different shapes and offsets, tensor C points \
                 to storage B. Three tensors, two storages; sometimes only one.",
            zh: "一张图：张量 A 和 B 以不同的形状和偏移指向存储 A，张量 C 指向存储 B。三个张量，两个存储；有时只有一个。",
        },
        verdict: Verdict::Right,
        run: three_tensors,
        truth: Text {
            en: "B is a corner of A's storage: written through B, it is seen in A. C is a copy: it has the numbers as they were.",
            zh: "B 是 A 的存储的一角：通过 B 写入，在 A 中可见。C 是副本：其中的数还是原来的。",
        },
    },
];

fn any_strides(stage: &mut Stage<'_>) -> Result<(), Failure> {
    live! { stage;
        let a = Tensor::arange(0, 12, 1)?.view([3, 4])?;
        let b = Tensor::arange(0, 12, 1)?.view([4, 3])?;
        let mark = copies::mark();
        => (&a + &b.t()?)?.to_vec::<i64>()?;
        => (&a.slice_step(1, .., 2)? * 10)?.to_vec::<i64>()?;
        => (&a - &a.i(s![1])?.expand([3, 4])?)?.to_vec::<i64>()?;
        => a.i(s![.., 0..;2])?.matmul(&b.i(s![0..;2, ..])?)?.to_vec::<i64>()?;
        => copies::since(&mark).len();
    }
    Ok(())
}

fn once(stage: &mut Stage<'_>) -> Result<(), Failure> {
    live! { stage;
        let a = Tensor::ones([1024, 1024], DType::F32, &Device::cpu())?;
        let t = Tensor::ones([1024, 1024], DType::F32, &Device::cpu())?.t()?;
        let mark = copies::mark();
        let c = t.contiguous()?;
        => copies::since(&mark).bytes();
        => (best_of_5(|| &a + &t)?, best_of_5(|| &a + &c)?);
    }
    Ok(())
}

/// The shortest of five runs.
fn best_of_5(run: impl Fn() -> Result<Tensor>) -> Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        let result = run()?;
        best = best.min(start.elapsed());
        drop(result);
    }
    Ok(best)
}

fn allocated(stage: &mut Stage<'_>) -> Result<(), Failure> {
    live! { stage;
        let cpu = Device::cpu();
        let before = memory::allocated(&cpu);
        let x = Tensor::zeros([1000], DType::F32, &cpu)?;
        => x.storage().nbytes();
        => memory::allocated(&cpu) - before;
        => memory::reserved(&cpu);
        drop(x);
        => memory::allocated(&cpu) - before;
        => memory::reserved(&cpu);
    }
    Ok(())
}

fn climbs(stage: &mut Stage<'_>) -> Result<(), Failure> {
    live! { stage;
        let mut losses = Vec::new();
        let start = memory::map();
        for _ in 0..3 { losses.push(Tensor::arange(0, 128, 1)?.named("loss")) };
        print memory::map().diff(&start);
    }
    Ok(())
}

fn three_tensors(stage: &mut Stage<'_>) -> Result<(), Failure> {
    live! { stage;
        let a = Tensor::arange(0, 12, 1)?.view([3, 4])?.named("A");
        let b = a.i(s![1.., 2..])?.named("B");
        let c = b.copy()?.named("C");
        b.fill_(0)?;
        print a;
        => c.to_vec::<i64>()?;
        => (a.storage().id(), b.storage().id(), c.storage().id());
    }
    stage.kept.extend([a, b, c]);
    Ok(())
}
