"""The GPU, and every number that the estimates take for granted; each can be set on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from components.core.errors import UserError
from components.core.section import Section

_TABLE = Path(__file__).with_name("gpus.yaml")


class Gpu(Section):
    """One GPU; see gpus.yaml."""

    name: str
    memory_gb: float = Field(gt=0)
    """In 1e9 bytes."""
    memory_gb_per_s: float = Field(gt=0)
    """Of its own memory."""
    tflops: float = Field(gt=0)
    """Dense bf16, in 1e12 operations a second."""
    link_gb_per_s: float = Field(gt=0)
    """To another GPU of the node, one direction."""
    usd_per_hour: float = Field(ge=0)
    """Price of one."""


class Assumptions(Section):
    """What no configuration says. Where a default is measured or published the field says so; the rest is judgement."""

    gpus_per_node: int = Field(8, ge=1)
    """GPUs of one machine."""
    node_gb_per_s: float = Field(50, gt=0)
    """Between machines, a GPU: 400 Gb/s InfiniBand."""
    store_gb_per_s: float = Field(2.0, gt=0)
    """One pod from or to the store."""
    pod_start_s: float = Field(60, ge=0)
    """Scheduling, image and imports, a pod. KFP starts a driver pod before each."""
    engine_start_s: float = Field(60, ge=0)
    """vLLM's profiling and CUDA graphs, without the weights."""
    mfu: float = Field(0.4, gt=0, le=1)
    """Share of the peak rate that training reaches."""
    prefill_mfu: float = Field(0.5, gt=0, le=1)
    """The same for prompts."""
    decode_mbu: float = Field(0.7, gt=0, le=1)
    """Share of the memory bandwidth that decoding reaches."""
    decode_overhead_ms: float = Field(3.0, ge=0)
    """A decoding step's fixed cost: scheduler, sampler, launches."""
    tensor_parallel_ms: float = Field(2.0, ge=0)
    """More of it where an engine spans several GPUs: two small all-reduces a layer."""
    response_share: float = Field(0.5, gt=0, lt=1)
    """Mean answer as a share of a stage's longest. Published for DeepCoder-14B: 8K of 16K at its start, 17.5K of 32K at
    its end."""
    response_sigma: float = Field(0.7, ge=0)
    """Spread of the log-normal that answers are drawn from before they are cut at the longest."""
    prompt_tokens: int = Field(600, ge=1)
    """Mean prompt."""
    trained_share: float = Field(1.0, gt=0, le=1)
    """Of the answers, those whose advantage is not 0; groups of equal rewards cost the update nothing."""
    test_problems: int = Field(279, ge=1)
    """Held-out problems: DeepCoder's part of LiveCodeBench, unless data.max_test_problems is less."""
    grade_cpu_s: float = Field(5.0, gt=0)
    """CPU seconds to grade an answer: its tests, and time limits that wrong answers run into."""
    prepare_h: float = Field(1.0, ge=0)
    """Data preparation, hours; later runs find it done."""
    reserved_gb: float = Field(4.0, ge=0)
    """A GPU's memory for the CUDA context, NCCL and what the allocator loses to fragments."""
    optimizer_pass_ms: float = Field(200, ge=0)
    """AdamW over a rank's share."""
    seed: int = 0
    """Of the simulated answer lengths."""


def hardware(name: str, settings: list[str]) -> tuple[Gpu, Assumptions]:
    """A GPU and the assumptions, with `key=value` settings laid over both.

    Args:
        name: of gpus.yaml, or a YAML file of one GPU's numbers.
        settings: keys of `Gpu` or `Assumptions`.

    Raises:
        UserError: an unknown GPU or key, or a value that cannot be.
    """
    table: dict[str, dict[str, Any]] = yaml.safe_load(_TABLE.read_text())
    if name.endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise UserError(f"--gpu {name}: no such file")
        table[name] = {"name": path.stem, **(yaml.safe_load(path.read_text()) or {})}
    if name not in table:
        raise UserError(f"--gpu {name}: not in the table ({', '.join(table)}); give its numbers in a YAML file")
    gpu: dict[str, Any] = {"name": name, **table[name]}
    assumed: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or key not in {**Gpu.model_fields, **Assumptions.model_fields}:
            known = ", ".join([*Gpu.model_fields, *Assumptions.model_fields])
            raise UserError(f"--assume {setting}: write key=value; keys are {known}")
        (gpu if key in Gpu.model_fields else assumed)[key] = yaml.safe_load(text)
    try:
        return Gpu.model_validate(gpu), Assumptions.model_validate(assumed)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, one['loc']))}: {one['msg']} (got {one['input']!r})" for one in error.errors()]
        raise UserError(f"--gpu {name}: " + "; ".join(lines)) from error
