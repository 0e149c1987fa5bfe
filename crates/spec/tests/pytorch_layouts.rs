//! Every layout rule against what PyTorch 2.15 answered for random arguments.
//!
//! A line of `data/layouts.txt` is `op layout… argument… = answer`. A layout is
//! `sizes@strides+offset`, a list `[..]`, an absent argument `_`. An answer is a layout, several
//! that each end in `;` or `none`, `!index` for an IndexError, `!` for any other error, or a word of its op.
//! `OSTEON_LAYOUTS=FILE` reads another file of such lines.

use osteon_spec::{
    DType, InternalOverlap, Kind, Layout, MemoryFormat, PartialOverlap, Placed, ReshapeInfo,
    Result, Sections, broadcast_shapes, elementwise_output, partial_overlap,
};

#[derive(Debug)]
enum Arg {
    Layout(Layout),
    List(Vec<isize>),
    Int(isize),
    None,
    Word(String),
}

fn numbers<T: std::str::FromStr>(text: &str) -> Vec<T>
where
    T::Err: std::fmt::Debug,
{
    text.split(',')
        .filter(|n| !n.is_empty())
        .map(|n| n.parse().unwrap())
        .collect()
}

fn parse(text: &str) -> Arg {
    if let Some((sizes, rest)) = text.split_once('@') {
        let (strides, offset) = rest.split_once('+').unwrap();
        let (sizes, strides) = (numbers(sizes), numbers(strides));
        Arg::Layout(Layout::new(sizes.into(), strides.into(), offset.parse().unwrap()).unwrap())
    } else if let Some(list) = text.strip_prefix('[') {
        Arg::List(numbers(list.trim_end_matches(']')))
    } else if text == "_" {
        Arg::None
    } else {
        text.parse()
            .map_or_else(|_| Arg::Word(text.into()), Arg::Int)
    }
}

fn show(x: &Layout) -> String {
    let list = |v: &[usize]| v.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    format!("{}@{}+{}", list(x.sizes()), list(x.strides()), x.offset())
}

fn show_list(list: &[usize]) -> String {
    format!(
        "[{}]",
        list.iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join(",")
    )
}

fn show_reshape(info: ReshapeInfo) -> String {
    match info {
        ReshapeInfo::View(x) => show(&x),
        ReshapeInfo::Copy { shape, .. } => format!("copy {}", show_list(&shape)),
    }
}

fn dtype(name: &str) -> DType {
    DType::from_name(name).unwrap()
}

/// What PyTorch says of an operation that reads `b` and writes `a`.
fn write_check(a: &Layout, b: &Layout) -> &'static str {
    if a.has_internal_overlap() == InternalOverlap::Yes {
        "o internal"
    } else if partial_overlap(Placed::new(a, 4), Placed::new(b, 4)) == PartialOverlap::Partial {
        "o partial"
    } else {
        "o ok"
    }
}

fn predicates(x: &Layout) -> String {
    let bit = u8::from;
    let suggested = match x.suggest_memory_format() {
        MemoryFormat::ChannelsLast => 'l',
        MemoryFormat::ChannelsLast3d => '3',
        MemoryFormat::Contiguous => 'c',
        MemoryFormat::Preserve => '?',
    };
    let overlap = match x.has_internal_overlap() {
        InternalOverlap::No => 0,
        InternalOverlap::Yes => 1,
        InternalOverlap::TooHard => 2,
    };
    format!(
        "p {}{}{}{}{suggested}{overlap}",
        bit(x.is_contiguous()),
        bit(x.is_channels_last()),
        bit(x.is_channels_last_3d()),
        bit(x.is_non_overlapping_and_dense()),
    )
}

/// Our answer in the file's notation.
fn answer(op: &str, args: &[Arg]) -> Result<String> {
    use Arg::{Int, Layout as L, List, Word};
    let one = |x: Result<Layout>| x.map(|x| show(&x));
    let many = |x: Result<Vec<Layout>>| {
        x.map(|x| match x.as_slice() {
            [] => "none".into(),
            x => x.iter().map(|x| show(x) + ";").collect::<String>(),
        })
    };
    let opt = |a: &Arg| match a {
        Int(n) => Some(*n),
        _ => None,
    };
    fn sections(a: &Arg) -> Sections<'_> {
        match a {
            Int(n) => (*n).into(),
            List(l) => l.as_slice().into(),
            _ => panic!("{a:?}"),
        }
    }
    match (op, args) {
        ("view", [L(x), List(s)]) => one(x.view(s)),
        ("reshape", [L(x), List(s)]) => x.reshape_info(s).map(show_reshape),
        ("flatten", [L(x), Int(a), Int(b)]) => x
            .flatten(*a, *b)
            .map(|info| info.map_or("self".into(), show_reshape)),
        ("unflatten", [L(x), Int(d), List(s)]) => one(x.unflatten(*d, s)),
        ("permute", [L(x), List(p)]) => one(x.permute(p)),
        ("transpose", [L(x), Int(a), Int(b)]) => one(x.transpose(*a, *b)),
        ("t", [L(x)]) => one(x.t()),
        ("mt", [L(x)]) => one(x.mt()),
        ("movedim", [L(x), List(a), List(b)]) => one(x.movedim(a, b)),
        ("select", [L(x), Int(d), Int(i)]) => one(x.select(*d, *i)),
        ("slice", [L(x), Int(d), a, b, Int(s)]) => one(x.slice(*d, opt(a), opt(b), *s)),
        ("narrow", [L(x), Int(d), Int(a), Int(n)]) => one(x.narrow(*d, *a, *n)),
        ("split", [L(x), Int(n), Int(d)]) => many(x.split(*n, *d)),
        ("split_with_sizes", [L(x), List(s), Int(d)]) => many(x.split_with_sizes(s, *d)),
        ("chunk", [L(x), Int(n), Int(d)]) => many(x.chunk(*n, *d)),
        ("tensor_split", [L(x), s, Int(d)]) => many(x.tensor_split(sections(s), *d)),
        ("hsplit", [L(x), s]) => many(x.hsplit(sections(s))),
        ("vsplit", [L(x), s]) => many(x.vsplit(sections(s))),
        ("dsplit", [L(x), s]) => many(x.dsplit(sections(s))),
        ("unbind", [L(x), Int(d)]) => many(x.unbind(*d)),
        ("diagonal", [L(x), Int(o), Int(a), Int(b)]) => one(x.diagonal(*o, *a, *b)),
        ("unfold", [L(x), Int(d), Int(n), Int(s)]) => one(x.unfold(*d, *n, *s)),
        ("as_strided", [L(x), List(s), List(t), o]) => one(x.as_strided(s, t, opt(o))),
        ("squeeze", [L(x)]) => Ok(show(&x.squeeze())),
        ("squeeze_dims", [L(x), List(d)]) => one(x.squeeze_dims(d)),
        ("unsqueeze", [L(x), Int(d)]) => one(x.unsqueeze(*d)),
        ("expand", [L(x), List(s)]) => one(x.expand(s)),
        ("view_dtype", [L(x), Word(a), Word(b)]) => one(x.view_dtype(dtype(a), dtype(b))),
        ("view_as_real", [L(x)]) => one(x.view_as_real()),
        ("view_as_complex", [L(x)]) => one(x.view_as_complex()),
        ("real", [L(x)]) => one(x.real()),
        ("imag", [L(x)]) => one(x.imag()),
        ("predicates", [L(x)]) => Ok(predicates(x)),
        ("partial", [L(a), L(b)]) => Ok(write_check(a, b).into()),
        ("like", [L(x), Word(format)]) => {
            let formats = [
                MemoryFormat::Preserve,
                MemoryFormat::Contiguous,
                MemoryFormat::ChannelsLast,
                MemoryFormat::ChannelsLast3d,
            ];
            let format = formats
                .into_iter()
                .find(|f| f.to_string() == *format)
                .unwrap();
            one(x.like(format))
        }
        ("elementwise", inputs) => {
            let inputs: Vec<&Layout> = inputs
                .iter()
                .map(|a| match a {
                    L(x) => x,
                    _ => panic!("{a:?}"),
                })
                .collect();
            let shapes: Vec<&[usize]> = inputs.iter().map(|x| x.sizes()).collect();
            one(elementwise_output(&inputs, &broadcast_shapes(&shapes)?))
        }
        ("broadcast", shapes) => {
            let shapes: Vec<Vec<usize>> = shapes
                .iter()
                .map(|a| match a {
                    List(l) => l.iter().map(|&n| n as usize).collect(),
                    _ => panic!("{a:?}"),
                })
                .collect();
            let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
            broadcast_shapes(&shapes).map(|s| format!("s {}", show_list(&s)))
        }
        _ => panic!("{op} {args:?}"),
    }
}

#[test]
fn layouts_are_pytorchs() {
    let recorded = include_str!("data/layouts.txt").to_owned();
    let lines = match std::env::var("OSTEON_LAYOUTS") {
        Ok(file) => std::fs::read_to_string(file).unwrap(),
        Err(_) => recorded,
    };
    let (mut failures, mut cases) = (Vec::new(), 0);
    for line in lines.lines() {
        let (call, want) = line.split_once(" = ").unwrap();
        let mut words = call.split(' ');
        let op = words.next().unwrap();
        let args: Vec<Arg> = words.map(parse).collect();
        let got = match answer(op, &args) {
            Ok(text) => text,
            Err(e) if e.kind() == Kind::Index => "!index".into(),
            Err(_) => "!".into(),
        };
        if got != want {
            failures.push(format!("{call} = {want}, but we say {got}"));
        }
        cases += 1;
    }
    assert!(cases > 1000, "only {cases} cases were read");
    assert!(
        failures.is_empty(),
        "{} of {cases} differ:\n{}",
        failures.len(),
        failures[..failures.len().min(40)].join("\n")
    );
}
