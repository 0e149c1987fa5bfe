"""Makes built_in.pt, the checkpoint that `osteon map` shows without a file. Needs PyTorch."""

import pathlib

import torch

ramp = lambda *shape: torch.arange(float(torch.Size(shape).numel())).reshape(shape) / 64

embed = ramp(16, 24)
activations = ramp(8, 128)
checkpoint = {
    "embed": {"weight": embed},
    "head": {"weight": embed, "bias": ramp(16)},  # tied: one storage under two names
    "attention": {"weight_t": ramp(24, 12).t()},  # transposed: the strides say so, nothing moved
    "mask": torch.ones(1, 48, dtype=torch.bool).expand(48, 48),  # 48 bytes that look like 2,304
    "last_row": activations[-1],  # 512 bytes that keep 4,096
}
torch.save(checkpoint, pathlib.Path(__file__).with_name("built_in.pt"))
