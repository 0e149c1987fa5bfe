//! Points 6 to 12: what looks, and what copies.

use super::stage::{Stage, live};
use super::{Point, Verdict};
use crate::failure::Failure;
use crate::lang::Text;
use osteon::{DType, Device, Tensor, copies};

pub const POINTS: [Point; 7] = [
    Point {
        title: Text {
            en: "Views never copy",
            zh: "视图从不复制",
        },
        told: Text {
            en: "view, transpose, permute, slice, unsqueeze, squeeze, expand and detach never copy; they change \
                 shape, strides and offset.",
            zh: "view、transpose、permute、slice、unsqueeze、squeeze、expand 和 detach 从不复制，只改变形状、步幅和偏移。",
        },
        verdict: Verdict::Right,
        run: views,
        truth: Text {
            en: "eight views, one storage, no copy in the log. The expanded one has 60 elements on 96 bytes: a \
                 stride of 0 shows the same 12 numbers five times.",
            zh: "八个视图，一个存储，日志中没有复制。expand 得到的视图在 96 个字节上有 60 个元素：步幅 0 把同样的 12 个数显示五遍。",
        },
    },
    Point {
        title: Text {
            en: "id(x.storage()) shows sharing",
            zh: "用 id(x.storage()) 判断共享",
        },
        told: Text {
            en: "“id(x.storage()) is equal for x, its view and its transpose, which shows that they share.”",
            zh: "“x、它的视图和它的转置的 id(x.storage()) 相等，说明它们共享存储。”",
        },
        verdict: Verdict::Accident,
        run: identity,
        truth: Text {
            en: "they do share, but Python's id() does not show it. In PyTorch each call of storage() makes a new \
                 object, which is freed at once, and the next one takes its address. Keep two of them alive, and \
                 their ids differ. Here id() is the storage's own number: equal exactly where one storage is.",
            zh: "它们确实共享，但 Python 的 id() 证明不了。在 PyTorch 中每次调用 storage() 都会新建一个对象，随即释放，\
                 下一个对象又占用同一地址。让两个对象同时存活，它们的 id 就不同。这里的 id() 是存储自己的编号：\
                 相等当且仅当是同一个存储。",
        },
    },
    Point {
        title: Text {
            en: "transpose, then view",
            zh: "先 transpose 再 view",
        },
        told: Text {
            en: "transpose makes a tensor non-contiguous; then view may fail, and the message says so.",
            zh: "transpose 之后张量不再连续；这时 view 可能失败，错误信息会说明。",
        },
        verdict: Verdict::Right,
        run: transposed,
        truth: Text {
            en: "may fail: the 6 elements in row-major order lie at 0, 3, 1, 4, 2, 5, which no single stride \
                 says. A shape that keeps the dims apart is a view still.",
            zh: "是“可能”失败：这 6 个元素按行优先的位置是 0、3、1、4、2、5，没有一个步幅能表达。不合并这些维度的形状仍然是视图。",
        },
    },
    Point {
        title: Text {
            en: "reshape is a view, or else a copy",
            zh: "reshape 是视图，否则是复制",
        },
        told: Text {
            en: "reshape is a view when strides allow, and else a copy, silently.",
            zh: "步幅允许时 reshape 是视图，否则悄悄复制。",
        },
        verdict: Verdict::Right,
        run: reshape,
        truth: Text {
            en: "and it need not be silent. reshape_info() says in advance which it will be, and the dims that \
                 force it; the copy log says afterwards what was copied, how much, at which line, and how to \
                 avoid it.",
            zh: "而且不必是悄悄的。reshape_info() 事先说明是哪一种，以及是哪些维度造成的；\
                 复制日志事后说明复制了什么、多少字节、在哪一行，以及如何避免。",
        },
    },
    Point {
        title: Text {
            en: "permute + reshape instead of transpose + contiguous",
            zh: "用 permute + reshape 代替 transpose + contiguous",
        },
        told: Text {
            en: "“Replace transpose + contiguous by permute + reshape, and memory falls.”",
            zh: "“把 transpose + contiguous 换成 permute + reshape，内存就降下来了。”",
        },
        verdict: Verdict::Wrong,
        run: permute_reshape,
        truth: Text {
            en: "sorry: both copy the same 16,384 bytes; reshape just does not say so. Merging dims that are no \
                 neighbours in memory is a copy under any name. What helps: not merging them (operations here \
                 read any strides), copying once outside the loop, or laying the data out right to begin with. \
                 copies::forbid() finds such copies: they become errors.",
            zh: "可惜不对：两种写法都复制同样的 16,384 字节，reshape 只是没有说出来。合并内存中不相邻的维度，换什么名字都是复制。\
                 真正有用的是：不合并（这里的运算可以直接读任意步幅）、在循环外只复制一次，或者一开始就把数据排好。\
                 copies::forbid() 能找出这种复制：它们会变成错误。",
        },
    },
    Point {
        title: Text {
            en: "view + contiguous in a data loader",
            zh: "在数据加载器中用 view + contiguous",
        },
        told: Text {
            en: "“In a data loader, view plus ensured contiguity instead of reshape removes the copy.”",
            zh: "“在数据加载器里，确保连续再用 view，代替 reshape，就没有复制了。”",
        },
        verdict: Verdict::HalfRight,
        run: data_loader,
        truth: Text {
            en: "ensuring contiguity is the copy: once in each of the three rounds. What removes copies is \
                 ensuring it once, where the data is made.",
            zh: "“确保连续”本身就是那次复制：三轮里每轮一次。真正减少复制的，是在生成数据的地方只做一次。",
        },
    },
    Point {
        title: Text {
            en: "clone copies, detach shares",
            zh: "clone 复制，detach 共享",
        },
        told: Text {
            en: "clone copies always; detach shares the storage and only leaves the graph, so it costs nothing.",
            zh: "clone 总是复制；detach 共享存储，只是离开计算图，所以没有代价。",
        },
        verdict: Verdict::Right,
        run: detach,
        truth: Text {
            en: "(PyTorch's clone() is copy() here; Rust's clone() is another handle.) But mind the price of \
                 free: x is gone, and the 10 detached numbers keep the room of 1,000.",
            zh: "（PyTorch 的 clone() 在这里叫 copy()；Rust 的 clone() 只是多一个句柄。）不过“没有代价”也有代价：\
                 x 已经不在了，detach 得到的 10 个数仍然占着 1,000 个数的空间。",
        },
    },
];

fn views(stage: &mut Stage<'_>) -> Result<(), Failure> {
    live! { stage;
        let x = Tensor::arange(0, 12, 1)?.view([3, 4])?;
        let mark = copies::mark();
        let (a, b, c) = (x.view([4, 3])?, x.transpose(0, 1)?, x.permute([1, 0])?);
        let (d, e, f) = (x.slice(0, 1..)?, x.unsqueeze(0)?, x.detach()?);
        let (g, h) = (e.squeeze()?, e.expand([5, 3, 4])?);
        => [&a, &b, &c, &d, &e, &f, &g, &h].iter().all(|v| v.shares_storage(&x));
        => copies::since(&mark).len();
        => (b.stride(), d.storage_offset(), h.stride());
        => (h.numel(), h.storage().nbytes());
    }
    Ok(())
}

fn identity(stage: &mut Stage<'_>) -> Result<(), Failure> {
    live! { stage;
        let x = Tensor::arange(0, 6, 1)?;
        let (view, transpose) = (x.view([2, 3])?, x.view([2, 3])?.t()?);
        let other = x.copy()?;
        => [&x, &view, &transpose, &other].map(|t| t.storage().id());
        => (x.shares_storage(&transpose), x.shares_storage(&other));
    }
    Ok(())
}

fn transposed(stage: &mut Stage<'_>) -> Result<(), Failure> {
    live! { stage;
        let t = Tensor::arange(0, 6, 1)?.view([2, 3])?.transpose(0, 1)?;
        => (t.shape(), t.stride(), t.is_contiguous());
        => t.view([6]);
        => t.view([3, 1, 2])?.stride();
    }
    Ok(())
}

fn reshape(stage: &mut Stage<'_>) -> Result<(), Failure> {
    live! { stage;
        let x = Tensor::arange(0, 6, 1)?.view([2, 3])?;
        let mark = copies::mark();
        => x.reshape([6])?.shares_storage(&x);
        => x.t()?.reshape([6])?.shares_storage(&x);
        print x.t()?.reshape_info([6])?;
        print copies::since(&mark);
    }
    Ok(())
}

fn permute_reshape(stage: &mut Stage<'_>) -> Result<(), Failure> {
    live! { stage;
        let x = Tensor::zeros([8, 16, 32], DType::F32, &Device::cpu())?;
        let mark = copies::mark();
        let one = x.transpose(0, 1)?.contiguous()?.view([16, 256])?;
        let two = x.permute([1, 0, 2])?.reshape([16, 256])?;
        => (one.storage().nbytes(), two.storage().nbytes());
        => copies::since(&mark).iter().map(|c| (c.op, c.bytes)).collect::<Vec<_>>();
        let none = copies::forbid();
        => x.permute([1, 0, 2])?.reshape([16, 256]);
        drop(none);
    }
    Ok(())
}

fn data_loader(stage: &mut Stage<'_>) -> Result<(), Failure> {
    live! { stage;
        let image = Tensor::arange(0, 192, 1)?.view([3, 8, 8])?.permute([1, 2, 0])?;
        let mark = copies::mark();
        for _ in 0..3 { image.contiguous()?.view([64, 3])?; };
        => copies::since(&mark).len();
        let mark = copies::mark();
        let ready = image.contiguous()?;
        for _ in 0..3 { ready.view([64, 3])?; };
        => copies::since(&mark).len();
    }
    Ok(())
}

fn detach(stage: &mut Stage<'_>) -> Result<(), Failure> {
    live! { stage;
        let x = Tensor::zeros([1000], DType::F32, &Device::cpu())?;
        let ten = x.slice(0, ..10)?.detach()?;
        => (ten.shares_storage(&x), x.copy()?.shares_storage(&x));
        drop(x);
        => ten.storage().nbytes();
        => ten.compact()?.storage().nbytes();
    }
    Ok(())
}
