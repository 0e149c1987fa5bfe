"""Records PyTorch's answers into this folder: `python record.py` (PyTorch 2.15, x86-64 with AVX-512).

cast.txt    dtype, its edge values; then for each dtype the results of `.to(dtype)`.
ops.txt     operation, dtype, result dtype, results over the dtype's values (or all pairs, or triples).
Elements are the hexadecimal digits of their bytes; '-' where PyTorch's own answer depends on the
position in the tensor (its vector and scalar loops differ).
"""

import struct
import torch

NAMES = """bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64
complex64 complex128 float8_e4m3fn float8_e5m2""".split()
NAN, INF = float("nan"), float("inf")
FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, 2.5, 3.5, 100.0, 127.9, -128.9, 255.9, 300.7, -300.7, 448.0, 464.0, 465.0,
          480.0, 32768.5, -40000.0, 57344.0, 61439.0, 61440.0, 65504.0, 65519.9, 65520.0, 70000.0, 1e-3, 1.5e-5, 3e-8,
          5.9604645e-8, 2.0**-9, 2.0**-10, 3 * 2.0**-11, 1.7e-3, 1e-40, 2147483647.0, 2147483648.0, -2147483648.0,
          -2147483649.0, 3000000001.0, 4294967300.0, 1e10, 9.3e18, 2.0**63, 2.0**64, -9.3e18, 3.4e38, 1e300, -1e300,
          INF, -INF, NAN, 1 + 2**-8 + 2**-40, 1 + 2**-11 + 2**-40, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-11, 1 + 2**-24 + 2**-50]
INTS = [0, 1, -1, 2, 7, 100, 127, 128, -128, 200, 255, 256, 300, 32767, 32768, -32768, 65519, 65520, 65535, 65536,
        2**24 + 1, 2**31 - 1, 2**31, -2**31, 2**32 - 1, 2**32 + 5, 2**53 + 1, 2**62 + 1, 2**63 - 1, -2**63,
        2**63, 2**64 - 1, 3, 9, 449]


def values(name, ints, floats):
    d = getattr(torch, name)
    if name == "bool":
        return torch.tensor([0, 1, 2, 255], dtype=torch.uint8).view(torch.bool)
    if not (d.is_floating_point or d.is_complex):
        info = torch.iinfo(d)
        return torch.tensor([v for v in ints if info.min <= v <= info.max], dtype=d)
    wide = torch.tensor(floats, dtype=torch.float64)
    if d.is_complex:
        part = torch.float32 if name == "complex64" else torch.float64
        re = wide.to(part)
        im = torch.tensor([[0.0, 2.0, -1.0][i % 3] for i in range(len(floats))], dtype=part)
        return torch.complex(re, im)
    return wide.to(d)


def hexes(t):
    raw = bytes(t.contiguous().view(torch.uint8).flatten().tolist()) if t.numel() else b""
    n = t.element_size()
    return [raw[i:i + n].hex() for i in range(0, len(raw), n)]


def stable(f, *xs):
    """The answers for a long tensor, '-' where a tensor of one element, or another position, says otherwise."""
    n = xs[0].numel()
    long = f(*[x.repeat(40) for x in xs])
    copies = [hexes(long[i * n:(i + 1) * n]) for i in (0, 1, 7, 39)]
    single = [hexes(f(*[x[i:i + 1] for x in xs]))[0] for i in range(n)]
    nan = torch.isnan(long[:n].to(torch.complex128)) if long.dtype != torch.bool else torch.zeros(n)
    return [c[0] if nan[i] or len(set(c)) == 1 else "-" for i, c in enumerate(zip(*copies, single))], long.dtype


def cast():
    with open("cast.txt", "w") as out:
        for a in NAMES:
            x = values(a, INTS, FLOATS)
            print(a, *hexes(x), file=out)
            for b in NAMES:
                got, _ = stable(lambda t: t.to(getattr(torch, b)), x)
                print(" ", b, *got, file=out)


UNARY = """Neg Abs Square Relu Sign Sgn Conj=conj_physical Angle Sqrt Rsqrt Reciprocal Exp Exp2 Expm1 Log Log2 Log10 Log1p Sin Cos
Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Sigmoid Floor Ceil Round Trunc Frac IsNan IsInf IsFinite SignBit
LogicalNot=logical_not BitwiseNot=bitwise_not""".split()
BINARY = """Add Sub Mul Div FloorDivide=floor_divide Remainder Fmod Pow Maximum Minimum Fmax Fmin BitwiseAnd=bitwise_and
BitwiseOr=bitwise_or BitwiseXor=bitwise_xor ShiftLeft=bitwise_left_shift ShiftRight=bitwise_right_shift Atan2 Hypot
Copysign Eq Ne Lt Le Gt Ge LogicalAnd=logical_and LogicalOr=logical_or LogicalXor=logical_xor""".split()
SPECIAL = {
    "DivTrunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "AddScaled": lambda x, y: torch.add(x, y, alpha=3),
    "Addcmul": lambda x, y, z: torch.addcmul(x, y, z, value=2),
    "Addcdiv": lambda x, y, z: torch.addcdiv(x, y, z, value=2),
    "Lerp": torch.lerp,
    "Clamp": lambda x, y, z: torch.clamp(x, y, z),
}
SMALL_INTS = [0, 1, -1, 3, 7, -128, 127, 200, -2**31, 2**63 - 1, -2**63]
SMALL_FLOATS = [0.0, -0.0, 1.0, -1.5, 0.3, 2.5, -7.0, 40.0, 1e4, INF, -INF, NAN]


def ops():
    names = [(n, 1) for n in UNARY] + [(n, 2) for n in BINARY] + [("DivTrunc", 2), ("AddScaled", 2)]
    names += [(n, 3) for n in ("Addcmul", "Addcdiv", "Lerp", "Clamp")]
    with open("ops.txt", "w") as out:
        for d in NAMES[:15]:
            print("values", d, *hexes(values(d, SMALL_INTS, SMALL_FLOATS)), file=out)
        for name, arity in names:
            rust, _, py = name.partition("=")
            f = SPECIAL.get(rust) or getattr(torch, py or rust.lower())
            for d in NAMES[:15]:
                x = values(d, SMALL_INTS, SMALL_FLOATS)
                if arity == 1:
                    xs = [x]
                elif arity == 2:
                    n = len(x)
                    xs = [x.repeat_interleave(n), x.repeat(n)]
                    if "int" in d and rust in ("DivTrunc", "FloorDivide", "Remainder", "Fmod"):
                        # Not by zero, nor the smallest by -1, which is a fault of the CPU.
                        xs[1] = torch.tensor([3 if v in (0, -1) else v for v in xs[1].tolist()], dtype=x.dtype)
                else:
                    xs = [x, x.roll(1), x.roll(3)]
                try:
                    got, result = stable(f, *xs)
                except (RuntimeError, NotImplementedError, TypeError, AttributeError):
                    continue
                same_kind = x.is_floating_point() or x.is_complex() or result in (x.dtype, torch.bool)
                if not same_kind:
                    # Integers through floats, and sums of bools in integers: the loop of another dtype.
                    continue
                print(rust, d, str(result)[6:], *got, file=out)


torch.set_num_threads(1)
cast()
ops()
