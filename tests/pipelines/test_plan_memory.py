import json
from pathlib import Path
from typing import Any

import pytest
import torch
from deepspeed.runtime.zero import stage3
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

from components.core.errors import UserError
from pipelines.compile import load_profile
from pipelines.plan.architecture import find_architecture, from_config
from pipelines.plan.hardware import hardware
from pipelines.plan.memory import kv_tokens, layer_activations, rollout_memory, update_memory, zero3_states

QWEN_14B = find_architecture("Qwen2.5-14B")

# The totals of each model's safetensors index on the hub.
PUBLISHED = {
    "Qwen/Qwen2.5-0.5B": 494_032_768,
    "Qwen/Qwen2.5-1.5B": 1_543_714_304,
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": 1_777_088_000,
    "Qwen/Qwen2.5-7B": 7_615_616_512,
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B": 14_770_033_664,
    "Qwen/Qwen2.5-32B": 32_763_876_352,
    "Qwen/Qwen3-8B": 8_190_735_360,
    "Qwen/Qwen3-14B": 14_768_307_200,
    "meta-llama/Llama-3.1-8B": 8_030_261_248,
    "HuggingFaceTB/SmolLM2-135M": 134_515_008,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameter_counts_are_the_published_ones(name: str) -> None:
    assert find_architecture(name).parameters == PUBLISHED[name]


SHAPE = {
    "vocab_size": 320,
    "hidden_size": 128,
    "intermediate_size": 336,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


@pytest.mark.parametrize(
    "config",
    [Qwen2Config(**SHAPE), Qwen3Config(**SHAPE, head_dim=48, tie_word_embeddings=True), LlamaConfig(**SHAPE)],
    ids=lambda config: config.model_type,
)
def test_a_directory_is_planned_by_its_config_and_has_the_weights_that_transformers_makes(
    config: Any, tmp_path: Path
) -> None:
    config.save_pretrained(tmp_path)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    arch = find_architecture(str(tmp_path))
    assert arch.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert arch.largest_module == max(
        sum(parameter.numel() for parameter in module.parameters(recurse=False)) for module in model.modules()
    )


def test_a_random_policy_has_the_weights_that_the_pipeline_makes(tmp_path: Path) -> None:
    from components.core.policy import _random

    _random("random:2x64", tmp_path, seed=0)
    assert find_architecture("random:2x64") == from_config(json.loads((tmp_path / "config.json").read_text()), "")


def test_an_unknown_model_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"model_name=acme/x: no architecture is known.*--architecture; there are: .*14B"
    ):
        find_architecture("acme/x")
    (tmp_path / "config.json").write_text('{"model_type": "mamba"}')
    with pytest.raises(UserError, match=r"config.json: model_type='mamba'; formulas are there for llama"):
        find_architecture(str(tmp_path))


def test_attention_adds_its_known_share_of_operations_and_the_cache_has_its_known_size() -> None:
    # Of a 14B forward pass: 27 % more at 16K, 55 % at 32K, 109 % at 64K; 192 KiB a token.
    for context, share in ((16384, 0.27), (32768, 0.55), (65536, 1.09)):
        added = QWEN_14B.forward_flops(1, context / 2) / (2 * QWEN_14B.parameters)
        assert added - 1 == pytest.approx(share, abs=0.06)
    assert QWEN_14B.kv_bytes_per_token() == 192 << 10


@pytest.mark.parametrize("ranks", [1, 8, 32])
@pytest.mark.parametrize("offload", [False, True])
@pytest.mark.parametrize("name", ["Qwen2.5-14B", "DeepSeek-R1-Distill-Qwen-1.5B", "SmolLM2-135M"])
def test_zero3_states_are_those_of_deepspeeds_own_estimator(name: str, offload: bool, ranks: int) -> None:
    arch = find_architecture(name)
    _, gpu_bytes, _ = stage3.estimate_zero3_model_states_mem_needs(
        arch.parameters,
        arch.largest_module,
        num_gpus_per_node=min(ranks, 8),
        num_nodes=max(1, ranks // 8),
        cpu_offload=offload,
        cpu_offload_params=False,
    )
    ours = zero3_states(arch, ranks=ranks, trained=arch.parameters, bytes_per_weight=2, offload=offload)
    assert ours == pytest.approx(gpu_bytes, abs=2)


@pytest.mark.parametrize("kind", [Qwen2Config, Qwen3Config, LlamaConfig])
def test_a_layers_activations_are_about_what_autograd_keeps(kind: Any) -> None:
    config = kind(**SHAPE, attn_implementation="sdpa")
    model = AutoModelForCausalLM.from_config(config).model
    kept: dict[int, int] = {}
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    def measured(tokens: int) -> int:
        kept.clear()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            output = model(input_ids=torch.zeros(1, tokens, dtype=torch.long), use_cache=False)
            total = sum(kept.values())
        del output
        return total

    arch = from_config(config.to_dict(), "")
    # Twice the tokens, so that what does not grow with them drops out.
    grown = (measured(1024) - measured(512)) / arch.layers
    assert layer_activations(arch, 512, 4) == pytest.approx(grown, rel=0.15)


def test_the_large_profiles_fit_where_their_recipes_ran() -> None:
    for name in ("deepcoder-14b", "deepcoder-1.5b"):
        _, config = load_profile(name, [])
        arch = find_architecture(config.model_name)
        gpu, assume = hardware("H100", [])
        assert update_memory(config, arch, gpu, assume).fits
        assert kv_tokens(config, arch, rollout_memory(config, arch, gpu, assume)) >= config.context_length


def test_a_14b_update_in_32k_contexts_needs_the_known_bytes_and_one_gpu_does_not_hold_it() -> None:
    _, config = load_profile("deepcoder-14b", [])
    gpu, assume = hardware("H100", [])
    parts = update_memory(config, QWEN_14B, gpu, assume).parts
    # 18 bytes a weight over 8 GPUs; layer inputs of 24,000 tokens: 48 x 5120 x 2 bytes each, and one layer more.
    assert parts["weights, gradients, AdamW"] == pytest.approx(33.2e9, rel=0.01)
    inputs = 48 * 5120 * 2 * 24000
    assert inputs < parts["activations"] < 1.7 * inputs
    alone = config.model_copy(update={"policy_update": config.policy_update.model_copy(update={"ranks": 1})})
    assert not update_memory(alone, QWEN_14B, gpu, assume).fits
    assert not rollout_memory(config, QWEN_14B, hardware("L4", ["memory_gb=16"])[0], assume).parts["KV cache"]


def test_hardware_is_overridable_and_a_wrong_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "{memory_gb: 96, memory_gb_per_s: 4000, tflops: 900, link_gb_per_s: 400, usd_per_hour: 2}"
    )
    gpu, assume = hardware(str(tmp_path / "mine.yaml"), ["usd_per_hour=1.9", "mfu=0.3"])
    assert (gpu.name, gpu.memory_gb, gpu.usd_per_hour, assume.mfu) == ("mine", 96, 1.9, 0.3)
    with pytest.raises(UserError, match=r"--gpu V100: not in the table \(H100, "):
        hardware("V100", [])
    with pytest.raises(UserError, match="--assume mfus=1: write key=value; keys are name, memory_gb"):
        hardware("H100", ["mfus=1"])
    with pytest.raises(UserError, match=r"mfu: .*less than or equal to 1 \(got 40\)"):
        hardware("H100", ["mfu=40"])
