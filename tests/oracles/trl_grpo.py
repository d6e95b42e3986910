"""What `trl.GRPOTrainer` computes: its loss for given log-probs, and its advantages for given rewards."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from torch import Tensor

GROUP = 4
# What TRL logs, under our names.
_METRICS = {
    "clip_ratio/region_mean": "actor/pg_clipfrac",
    "clip_ratio/low_mean": "actor/pg_clipfrac_low",
    "clip_ratio/high_mean": "actor/pg_clipfrac_high",
}


def make_trainer(folder: str, rewards: list[float | None], **settings: Any) -> Any:
    """A trainer of a tiny random policy, whose answers earn the given rewards."""
    from datasets import Dataset
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from trl import GRPOConfig, GRPOTrainer

    words = Tokenizer(models.WordLevel({"<eos>": 0, "a": 1}, unk_token="a"))
    size = {"vocab_size": 2, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    torch.manual_seed(0)
    return GRPOTrainer(
        model=LlamaForCausalLM(LlamaConfig(**size, bos_token_id=None, eos_token_id=0, pad_token_id=0)),
        reward_funcs=lambda **_: rewards,
        args=GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=len(rewards),
            num_generations=GROUP,
            use_cpu=True,
            bf16=False,
            report_to=[],
            **settings,
        ),
        train_dataset=Dataset.from_list([{"prompt": "a"}]),
        processing_class=PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<eos>", pad_token="<eos>"),
    )


def loss(
    data: dict[str, Tensor], weight_BT: Tensor | None = None, *, beta: float = 0.0, **settings: Any
) -> dict[str, Any]:
    """The loss, its gradient in the log-probs, and what TRL logs of it.

    Args:
        data: logp, old, reference and the mask of real tokens, (B, T); an advantage an answer.
        weight_BT: importance weights, as TRL has them when vLLM samples.
        beta: weight of the divergence from the reference.
        settings: GRPOConfig's.
    """
    logp_BT = data["logp"].clone().requires_grad_()
    mask_BT = data["mask"].long()
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(folder, [0.0] * len(logp_BT), **settings)
    # What would ask for a model that is given here: the policy's log-probs, the reference, vLLM.
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: (logp_BT, torch.zeros_like(logp_BT), None)
    trainer.beta, trainer.use_vllm, trainer.current_gradient_accumulation_steps = beta, weight_BT is not None, 1
    inputs = {
        "prompt_ids": mask_BT[:, :1],
        "prompt_mask": mask_BT[:, :1],
        "completion_ids": mask_BT,
        "completion_mask": mask_BT,
        "advantages": data["advantage"],
        "old_per_token_logps": data["old"],
        "ref_per_token_logps": data["reference"],
        "importance_sampling_ratio": weight_BT,
        "num_items_in_batch": mask_BT.sum(),
    }
    value = trainer._compute_loss(trainer.model, inputs)
    (grad_BT,) = torch.autograd.grad(value, logp_BT)
    logged = trainer._metrics["train"]
    # Fractions of sequences, where the ratio is a sequence's.
    known = _METRICS if trainer.importance_sampling_level == "token" else {}
    return {"loss": value.item(), "grad": grad_BT.tolist()} | {
        ours: logged[name][-1] for name, ours in known.items() if name in logged
    }


def advantages(rewards: list[float | None], scale: str) -> list[float]:
    """Of answers in groups of GROUP; None could not be scored. `scale` is TRL's `scale_rewards`."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(folder, rewards, scale_rewards=scale, max_completion_length=2)
        output = trainer._generate_and_score_completions([{"prompt": "a"}] * len(rewards))
    result: list[float] = output["advantages"].tolist()
    return result
