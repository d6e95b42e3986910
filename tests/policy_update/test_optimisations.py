"""What saves time or memory changes no result; packing, checkpointing and the chunked head are in test_logprob.py."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from components.core.errors import UserError
from components.core.store import Pointer
from tests.policy_update.helpers import World, make_samples

ROOT = Path(__file__).parent.parent.parent


def same_update(world: World, one: Pointer, other: Pointer) -> None:
    norms = [pointer.extra["metrics"]["actor/grad_norm"] for pointer in (one, other)]
    assert norms[0] == pytest.approx(norms[1], rel=1e-5)
    start, expected = world.weights(world.base), world.weights(one)
    for name, tensor in world.weights(other).items():
        torch.testing.assert_close(tensor, expected[name], atol=1e-4, rtol=0)  # of a step of 1e-2
        assert not torch.equal(tensor, start[name])


def test_optimizer_offload(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = world.update(world.config(run_name="plain"), make_samples())
    offloaded: list[bool] = []
    from deepspeed.runtime.zero.stage3 import DeepSpeedZeroOptimizer_Stage3 as Optimizer

    step = Optimizer.step

    def watched(self: Optimizer, *arguments: object, **named: object) -> object:
        offloaded.append(self.offload_optimizer)
        return step(self, *arguments, **named)

    monkeypatch.setattr(Optimizer, "step", watched)
    same_update(world, plain, world.update(world.config(run_name="offload", offload_optimizer=True), make_samples()))
    assert offloaded == [True]


LIGER = """
import os, sys
from pathlib import Path
os.environ |= {"TRITON_INTERPRET": "1", "DS_ACCELERATOR": "cpu"}
import numpy, triton.language as tl
from triton.runtime import interpreter
from liger_kernel.ops import rms_norm, rope, swiglu

# Two gaps of the interpreter: a float argument is no tensor there, and there is no libdevice.
convert = interpreter._implicit_cvt
def convert_floats(value):
    if isinstance(value, float):
        return tl.tensor(interpreter.TensorHandle(numpy.array([value], numpy.float32), tl.float32), tl.float32)
    return convert(value)
interpreter._implicit_cvt = convert_floats
rms_norm.rsqrt = lambda x: 1.0 / tl.sqrt(x)

ran = set()
for module in (rms_norm, rope, swiglu):
    for name, kernel in vars(module).items():
        if isinstance(kernel, interpreter.InterpretedFunction):
            kernel.add_pre_run_hook(lambda *_, name=name, **__: ran.add(name))

import components.core.tracking
from components.core.store import Pointer
from tests.policy_update.helpers import Curves, World, make_samples
components.core.tracking.Tracking = Curves()
world = World(Path(sys.argv[1]), components.core.tracking.Tracking)
world.update(world.config(run_name="liger", use_liger=True), make_samples(problems=2)).write(sys.argv[2])
print("ran", *sorted(ran))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("triton", "liger_kernel"))),
    reason="Triton and liger-kernel are not installed; Triton comes with torch's build for GPUs",
)
def test_liger_kernels_in_tritons_interpreter(world: World, tmp_path: Path) -> None:
    plain = world.update(world.config(run_name="plain"), make_samples(problems=2))
    arguments = [str(world.folder), str(tmp_path / "liger.json")]
    done = subprocess.run([sys.executable, "-c", LIGER, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    ran = next(line for line in done.stdout.splitlines() if line.startswith("ran")).split()
    for kernel in ("rms_norm", "rope", "swiglu"):
        assert any(kernel in name for name in ran), ran
    same_update(world, plain, Pointer.read(tmp_path / "liger.json"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"use_liger": True}, "use_liger=true needs a GPU"),
        ({"attn_implementation": "flash_attention_2"}, "needs a GPU, the package flash_attn and dtype=bfloat16"),
        ({"attn_implementation": "flash_attention_3"}, "a GPU, the package flash_attn_interface and dtype=bfloat16"),
    ],
)
def test_what_needs_a_gpu_says_so(world: World, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        world.update(world.config(**settings), make_samples())
