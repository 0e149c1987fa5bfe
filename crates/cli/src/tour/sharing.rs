//! Points 1 to 5: whose the bytes are.

use super::stage::{Stage, live};
use super::{Point, Verdict};
use crate::failure::Failure;
use crate::lang::Text;
use osteon::{DType, Device, Result, Tensor, memory, s};

pub const POINTS: [Point; 5] = [
    Point {
        title: Text {
            en: "A tensor is a shell",
            zh: "张量是一个外壳",
        },
        told: Text {
            en: "a Tensor is a shell: a pointer to a Storage, a shape, strides, an offset. The Storage holds the \
                 data and may be shared.",
            zh: "张量（Tensor）是一个外壳：指向存储（Storage）的指针，加上形状、步幅和偏移。数据在存储里，存储可以共享。",
        },
        verdict: Verdict::Right,
        run: shell,
        truth: Text {
            en: "all 48 bytes are the storage's. The tensor itself is a few small numbers and a handle to it; a \
                 step along dim 0 is 3 elements, along dim 1 it is 1.",
            zh: "全部 48 个字节都属于存储。张量本身只是几个小数字和一个句柄；沿第 0 维走一步是 3 个元素，沿第 1 维是 1 个。",
        },
    },
    Point {
        title: Text {
            en: "Memory in use is the sum of storages",
            zh: "占用的内存是存储之和",
        },
        told: Text {
            en: "memory in use is the sizes of the Storages, not the number of Tensors: ten tensors of ten shapes \
                 may be one storage.",
            zh: "占用的内存是各个存储的大小之和，与张量的个数无关：十个形状各异的张量可以只有一个存储。",
        },
        verdict: Verdict::Right,
        run: sum_of_storages,
        truth: Text {
            en: "ten tensors, one storage more than before. Added up tensor by tensor they seem to be 220 bytes; \
                 40 are held.",
            zh: "十个张量，只多了一个存储。逐个张量相加似乎有 220 字节，实际只占 40 字节。",
        },
    },
    Point {
        title: Text {
            en: "A slice is an offset",
            zh: "切片就是偏移",
        },
        told: Text {
            en: "the data_ptr of a[1:3] is 8 bytes after a's (int64): one element of offset, same storage.",
            zh: "a[1:3] 的 data_ptr 比 a 的大 8 个字节（int64）：偏移一个元素，同一个存储。",
        },
        verdict: Verdict::Right,
        run: offset,
        truth: Text {
            en: "8 bytes are 1 element of 8. But do not conclude the other way: a freed address is handed out \
                 again, as c shows, and an empty tensor's is null. Equal addresses prove little. Identity is the \
                 storage's id, which is never used twice.",
            zh: "8 字节就是 1 个 8 字节的元素。但不要反过来推断：释放后的地址会再次分配出去（看 c），空张量的地址是空指针。\
                 地址相同说明不了什么。能标识存储的是它的编号，编号从不重复使用。",
        },
    },
    Point {
        title: Text {
            en: "A slice keeps the whole storage alive",
            zh: "切片让整个存储无法释放",
        },
        told: Text {
            en: "b.storage() of a small slice has the size of all of a: a slice borrows the whole storage, and \
                 keeps it alive.",
            zh: "小切片 b 的 b.storage() 和整个 a 一样大：切片借用整个存储，也让它无法释放。",
        },
        verdict: Verdict::Right,
        run: pinned,
        truth: Text {
            en: "and it is the commonest leak of all. batch is gone, and its 1,048,576 bytes are not: 4,096 of \
                 them have a reader. (first_row is kept to the end of this tour; look for it in the picture.)",
            zh: "这也是最常见的泄漏。batch 已经不在了，它的 1,048,576 个字节却还在，其中只有 4,096 个有人读。\
                 （first_row 会一直留到导览结束，请在图中找它。）",
        },
    },
    Point {
        title: Text {
            en: "contiguous() of a slice",
            zh: "对切片调用 contiguous()",
        },
        told: Text {
            en: "“.contiguous() of that slice makes a new storage of just its 2 elements.”",
            zh: "“对这个切片调用 .contiguous()，会得到只有 2 个元素的新存储。”",
        },
        verdict: Verdict::Wrong,
        run: contiguous,
        truth: Text {
            en: "please do not rely on it! The slice is contiguous already, so contiguous() returns the slice \
                 itself, and all 32 bytes stay. copy(), which is PyTorch's clone(), makes a storage of 16. What \
                 the teller wants is compact(): a copy of just what is reached, and none where nothing would be \
                 let go.",
            zh: "请千万不要依赖这个说法！这个切片本来就是连续的，contiguous() 返回它自己，32 个字节一个也没有少。\
                 copy()（即 PyTorch 的 clone()）才会得到 16 字节的存储。说这话的人真正想要的是 compact()：\
                 只复制可达的部分；没有什么可释放时就不复制。",
        },
    },
];

fn shell(stage: &mut Stage<'_>) -> Result<(), Failure> {
    live! { stage;
        let x = Tensor::arange(0, 6, 1)?.view([2, 3])?;
        => (x.shape(), x.stride(), x.storage_offset(), x.dtype());
        => x.storage().id();
        => x.storage().data_ptr();
        => x.storage().nbytes();
    }
    Ok(())
}

fn sum_of_storages(stage: &mut Stage<'_>) -> Result<(), Failure> {
    live! { stage;
        let before = memory::map();
        let x = Tensor::zeros([10], DType::F32, &Device::cpu())?;
        let views = (1..10).map(|n| x.narrow(0, 0, n)).collect::<Result<Vec<_>>>()?;
        => 1 + views.len();
        => memory::map().storages.len() - before.storages.len();
        => x.nbytes() + views.iter().map(Tensor::nbytes).sum::<usize>();
        => memory::map().requested() - before.requested();
    }
    Ok(())
}

fn offset(stage: &mut Stage<'_>) -> Result<(), Failure> {
    live! { stage;
        let a = Tensor::new([1i64, 2, 3, 4])?;
        let b = a.slice(0, 1..3)?;
        => (a.data_ptr(), b.data_ptr());
        => b.data_ptr().addr() - a.data_ptr().addr();
        => b.storage_offset() * b.element_size();
        => (a.storage().id(), b.storage().id());
        let (address, id) = (a.data_ptr(), a.storage().id());
        drop((a, b));
        let c = Tensor::new([5i64, 6, 7, 8])?;
        => c.data_ptr() == address;
        => c.storage().id() == id;
        => Tensor::empty([0], DType::F32, &Device::cpu())?.data_ptr();
    }
    Ok(())
}

fn pinned(stage: &mut Stage<'_>) -> Result<(), Failure> {
    live! { stage;
        let cpu = Device::cpu();
        let batch = Tensor::zeros([256, 1024], DType::F32, &cpu)?.named("batch");
        let first = batch.i(s![0])?.named("first_row");
        drop(batch);
        => first.nbytes();
        => first.storage().nbytes();
        => first.storage().tensors().len();
    }
    stage.kept.push(first);
    Ok(())
}

fn contiguous(stage: &mut Stage<'_>) -> Result<(), Failure> {
    live! { stage;
        let a = Tensor::new([1i64, 2, 3, 4])?;
        let b = a.slice(0, 1..3)?;
        => b.is_contiguous();
        => b.contiguous()?.is(&b);
        => b.contiguous()?.storage().nbytes();
        => b.copy()?.storage().nbytes();
        => b.compact()?.storage().nbytes();
        => a.compact()?.is(&a);
    }
    Ok(())
}
