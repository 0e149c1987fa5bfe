"""Records PyTorch's answers into this folder: `python record.py` (PyTorch 2.15, NumPy, with OMP_NUM_THREADS=1).

optim.json      for each optimiser and its options the parameters after every step along given gradients.
schedules.json  for each schedule the learning rate (and momentum) at every step.
modules.json    for each layer a state, inputs, results and gradients.
curves.json     losses of the examples' models, step by step, from weights and batches that a formula gives.
"""

import json
import math
import pathlib
import numpy
import torch
from torch import nn, optim
from torch.nn import functional as F

HERE = pathlib.Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples" / "data"
torch.set_num_threads(1)
torch.manual_seed(0)


def dense(t):
    return {"shape": list(t.shape), "values": t.detach().contiguous().reshape(-1).tolist()}


def write(name, value):
    (HERE / name).write_text(json.dumps(value, separators=(",", ":")) + "\n")


# Optimisers: two parameters, of which the second has no gradient in the third step.
STEPS = 6
START = [torch.randn(2, 3), torch.randn(4)]
GRADS = [[torch.randn(2, 3), torch.randn(4)] for _ in range(STEPS)]
GRADS[2][1] = None
OPTIMISERS = [
    (name, options)
    for name, options in [
        ("SGD", dict(lr=0.1)),
        ("SGD", dict(lr=0.1, weight_decay=0.05)),
        ("SGD", dict(lr=0.1, momentum=0.9)),
        ("SGD", dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.05)),
        ("SGD", dict(lr=0.1, momentum=0.9, nesterov=True)),
        ("SGD", dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.05, maximize=True)),
        ("SGD", dict(lr=0.1, maximize=True)),
        ("Adam", dict(lr=0.05)),
        ("Adam", dict(lr=0.05, betas=[0.8, 0.95], eps=1e-4)),
        ("Adam", dict(lr=0.05, weight_decay=0.1)),
        ("Adam", dict(lr=0.05, amsgrad=True, weight_decay=0.1, maximize=True)),
        ("AdamW", dict(lr=0.05)),
        ("AdamW", dict(lr=0.05, weight_decay=0.2, amsgrad=True)),
        ("AdamW", dict(lr=0.05, maximize=True)),
        ("RMSprop", dict(lr=0.02)),
        ("RMSprop", dict(lr=0.02, alpha=0.9, eps=1e-4, weight_decay=0.1)),
        ("RMSprop", dict(lr=0.02, momentum=0.8)),
        ("RMSprop", dict(lr=0.02, centered=True)),
        ("RMSprop", dict(lr=0.02, centered=True, momentum=0.8, weight_decay=0.1, maximize=True)),
    ]
]


def trajectory(name, options, dtype):
    parameters = [p.to(dtype).clone().requires_grad_() for p in START]
    optimiser = getattr(optim, name)(parameters, **options)
    steps = []
    for gradients in GRADS:
        for p, g in zip(parameters, gradients):
            p.grad = None if g is None else g.to(dtype)
        optimiser.step()
        steps.append([x for p in parameters for x in p.detach().reshape(-1).tolist()])
    return steps


write("optim.json", {
    "start": [dense(p) for p in START],
    "gradients": [[g is not None and dense(g) or None for g in step] for step in GRADS],
    "cases": [
        {"name": n, "options": o, "dtype": d, "steps": trajectory(n, dict(o, **({"betas": tuple(o["betas"])} if "betas" in o else {})), t)}
        for n, o in OPTIMISERS for d, t in [("float32", torch.float32), ("float64", torch.float64)]
    ],
})


# Clipping.
def clipped(order):
    parameters = [p.clone().requires_grad_() for p in START]
    for p, g in zip(parameters, GRADS[0]):
        p.grad = g.clone()
    norm = nn.utils.clip_grad_norm_(parameters, 0.7, order)
    return {"order": str(order), "norm": norm.item(), "gradients": [dense(p.grad) for p in parameters]}


# Schedules.
def rates(name, options, steps=24, optimiser="SGD"):
    p = torch.zeros(1, requires_grad=True)
    p.grad = torch.zeros(1)
    opt = optim.SGD([p], lr=0.8, momentum=0.9) if optimiser == "SGD" else optim.Adam([p], lr=0.8)
    schedulers = optim.lr_scheduler
    if name == "SequentialLR":
        schedule = schedulers.SequentialLR(opt, [
            schedulers.LinearLR(opt, start_factor=0.25, total_iters=5),
            schedulers.CosineAnnealingLR(opt, T_max=15),
        ], milestones=[5])
    elif name == "LambdaLR":
        schedule = schedulers.LambdaLR(opt, lambda step: 0.9 ** step / (1 + step))
    else:
        schedule = getattr(schedulers, name)(opt, **options)
    lrs, momenta = [], []
    metrics = [5, 4, 4, 4, 4, 3.9999, 4, 2, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 1, 1, 1, 1, 1, 1, 1, 1]
    for i in range(steps):
        group = opt.param_groups[0]
        lrs.append(group["lr"])
        momenta.append(group["momentum"] if optimiser == "SGD" else group["betas"][0])
        opt.step()
        schedule.step(*([metrics[i]] if name == "ReduceLROnPlateau" else []))
    return {"name": name, "options": options, "optimiser": optimiser, "lr": lrs, "momentum": momenta,
            **({"metrics": metrics} if name == "ReduceLROnPlateau" else {})}


write("schedules.json", [
    rates("StepLR", dict(step_size=5, gamma=0.3)),
    rates("MultiStepLR", dict(milestones=[3, 4, 17], gamma=0.5)),
    rates("ExponentialLR", dict(gamma=0.9)),
    rates("CosineAnnealingLR", dict(T_max=10, eta_min=0.05)),
    rates("LinearLR", dict(start_factor=0.25, end_factor=0.75, total_iters=7)),
    rates("ConstantLR", dict(factor=0.25, total_iters=6)),
    rates("PolynomialLR", dict(total_iters=11, power=1.5)),
    rates("LambdaLR", {}),
    rates("SequentialLR", {}),
    rates("OneCycleLR", dict(max_lr=1.5, total_steps=24)),
    rates("OneCycleLR", dict(max_lr=1.5, total_steps=24, pct_start=0.4, anneal_strategy="linear", three_phase=True)),
    rates("OneCycleLR", dict(max_lr=1.5, total_steps=24), optimiser="Adam"),
    rates("ReduceLROnPlateau", dict(factor=0.5, patience=2)),
    rates("ReduceLROnPlateau", dict(factor=0.5, patience=1, cooldown=2, threshold=0.3, threshold_mode="abs", min_lr=0.15)),
    rates("ReduceLROnPlateau", dict(mode="max", factor=0.5, patience=3)),
])


# Modules.
def run(kind, module, inputs, call=None, steps=1, evaluate=False, **options):
    module = module.double()
    with torch.no_grad():
        for p in module.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    state = {k: dense(v) for k, v in module.state_dict().items()}
    if evaluate:
        module.eval()
    inputs = [x.requires_grad_(x.is_floating_point()) for x in inputs]
    for _ in range(steps):
        out = (call or (lambda m, *xs: m(*xs)))(module, *inputs)
    outs = out if isinstance(out, tuple) else (out,)
    weight = torch.randn_like(outs[0])
    module.zero_grad()
    for x in inputs:
        x.grad = None
    (outs[0] * weight).sum().backward()
    return {
        "kind": kind, "options": options, "steps": steps, "evaluate": evaluate, "state": state,
        "inputs": [dense(x) for x in inputs], "outputs": [dense(o) for o in outs], "weight": dense(weight),
        "after": {k: dense(v) for k, v in module.state_dict().items()},
        "input_gradients": [x.grad is not None and dense(x.grad) or None for x in inputs],
        "gradients": {k: dense(p.grad) for k, p in module.named_parameters()},
    }


def r(*shape):
    return torch.randn(*shape, dtype=torch.float64)


causal = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
padding = torch.tensor([[False] * 5, [False, False, False, True, True], [False, False, False, False, True]])
added = r(5, 5)


def attend(module, q, k, v, **how):
    return module(q, k, v, **how)


def encoder(norm_first, batch_first, activation):
    return nn.TransformerEncoderLayer(8, 2, 12, 0.0, activation, norm_first=norm_first, batch_first=batch_first)


write("modules.json", [
    run("Linear", nn.Linear(3, 4), [r(2, 5, 3)]),
    run("Linear", nn.Linear(3, 4, bias=False), [r(5, 3)], bias=False),
    run("Embedding", nn.Embedding(6, 3), [torch.tensor([[1, 5, 1], [0, 2, 2]])]),
    run("LayerNorm", nn.LayerNorm([2, 3]), [r(4, 2, 3)]),
    run("RMSNorm", nn.RMSNorm([3]), [r(4, 2, 3)]),
    run("BatchNorm1d", nn.BatchNorm1d(3), [r(5, 3)], steps=2),
    run("BatchNorm1d", nn.BatchNorm1d(3, momentum=None), [r(5, 3, 4)], steps=3, momentum=None),
    run("BatchNorm2d", nn.BatchNorm2d(3), [r(2, 3, 4, 2)]),
    run("BatchNorm2d", nn.BatchNorm2d(3), [r(2, 3, 4, 2)], evaluate=True),
    run("Conv1d", nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), [r(2, 4, 9)], stride=2, padding=1, dilation=1, groups=2),
    run("Conv2d", nn.Conv2d(2, 3, 3), [r(2, 2, 6, 5)], stride=1, padding=0, dilation=1, groups=1),
    run("Conv2d", nn.Conv2d(4, 4, 3, stride=2, padding=2, dilation=2, groups=4), [r(1, 4, 7, 8)], stride=2, padding=2, dilation=2, groups=4),
    run("MultiheadAttention", nn.MultiheadAttention(8, 2, batch_first=True), [r(3, 5, 8)],
        lambda m, x: m(x, x, x), masks="none", batch_first=True),
    run("MultiheadAttention", nn.MultiheadAttention(8, 4), [r(5, 3, 8)],
        lambda m, x: m(x, x, x, attn_mask=causal), masks="causal", batch_first=False),
    run("MultiheadAttention", nn.MultiheadAttention(8, 2), [r(4, 3, 8), r(5, 3, 8), r(5, 3, 8)],
        lambda m, q, k, v: m(q, k, v, key_padding_mask=padding), masks="padding", batch_first=False),
    run("MultiheadAttention", nn.MultiheadAttention(8, 2), [r(5, 8)],
        lambda m, x: m(x, x, x, attn_mask=added), masks="added", batch_first=False, added=dense(added)),
    run("TransformerEncoderLayer", encoder(False, False, "relu"), [r(5, 3, 8)],
        norm_first=False, batch_first=False, activation="relu", causal=False),
    run("TransformerEncoderLayer", encoder(True, True, "gelu"), [r(3, 5, 8)],
        lambda m, x: m(x, src_mask=causal), norm_first=True, batch_first=True, activation="gelu", causal=True),
])
clip = [clipped(o) for o in [1.0, 2.0, 3.0, math.inf]]
(HERE / "clip.json").write_text(json.dumps(clip, separators=(",", ":")) + "\n")


# The examples' models, from weights that a formula gives.
def formula(module):
    with torch.no_grad():
        for k, (name, p) in enumerate(module.named_parameters()):
            v = torch.sin(0.7 * torch.arange(p.numel(), dtype=torch.float64) + k).reshape(p.shape)
            if p.dim() > 1:
                v = v / math.sqrt(p.shape[-1])
            else:
                v = 0.1 * v + (1.0 if name.endswith("weight") else 0.0)
            p.copy_(v.float())


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64, 64)
        self.output = nn.Linear(64, 10)

    def forward(self, x):
        return self.output(F.relu(self.hidden(x)))


def digits_curve():
    data = numpy.load(EXAMPLES / "digits.npz")
    images = torch.from_numpy(data["images"]).float().reshape(-1, 64) / 16
    labels = torch.from_numpy(data["labels"]).long()
    model = Mlp()
    formula(model)
    optimiser = optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for step in range(28):
        x, y = images[step * 64:][:64], labels[step * 64:][:64]
        loss = F.cross_entropy(model(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


class CharTransformer(nn.Module):
    def __init__(self, vocabulary, context, width, heads, layers):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.ModuleList([
            nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", norm_first=True, batch_first=True)
            for _ in range(layers)
        ])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x):
        length = x.shape[-1]
        mask = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
        x = self.tokens(x) + self.places(torch.arange(length))
        for block in self.blocks:
            x = block(x, src_mask=mask)
        return self.head(self.norm(x))


def text_curve():
    text = (EXAMPLES / "sonnets.txt").read_text()
    letters = sorted(set(text))
    codes = torch.tensor([letters.index(c) for c in text])
    model = CharTransformer(len(letters), 16, 32, 4, 2)
    formula(model)
    optimiser = optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    schedule = optim.lr_scheduler.OneCycleLR(optimiser, max_lr=3e-3, total_steps=20)
    losses, norms = [], []
    for step in range(20):
        starts = [(step * 97 + row * 331) % (len(codes) - 17) for row in range(8)]
        x = torch.stack([codes[s:s + 16] for s in starts])
        y = torch.stack([codes[s + 1:s + 17] for s in starts])
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimiser.zero_grad()
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
    return {"loss": losses, "norm": norms}


write("curves.json", {"digits": digits_curve(), "text": text_curve()})
