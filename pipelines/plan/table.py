"""A plan as text for the terminal."""

from __future__ import annotations

from typing import Any

from tabulate import tabulate


def render(plan: dict[str, Any]) -> str:
    """Memory, the time of an iteration, the run, and what would change it."""
    gpu, run = plan["gpu"], plan["run"]
    lines = [
        f"{plan['profile']}: {plan['model_name']}, {plan['parameters'] / 1e9:.2f} billion weights, "
        f"on {plan['gpus']} {gpu['name']}",
        "",
        *_memory(plan["memory"]),
        "",
        _iterations(run),
        "",
        f"the run: {run['iterations']} iterations, {run['optimizer_steps']} optimizer steps, {run['hours']:.1f} h, "
        f"{run['pods']} pods",
        f"{run['evaluations']} evaluations, the last of which takes {run['evaluation_s'] / 3600:.1f} h",
        f"{run['gpu_hours_reserved']:.0f} GPU hours reserved ({run['usd_reserved']:,.0f} USD), "
        f"{run['gpu_hours_held']:.0f} held by pods ({run['usd_held']:,.0f} USD)",
        "",
        _alternatives(plan),
        "",
        "Estimates from stated formulas (pipelines/plan), not measurements. --json shows every assumption, "
        "--assume key=value changes one.",
        *(f"WARNING: {warning}" for warning in warnings(plan)),
    ]
    return "\n".join(lines)


def warnings(plan: dict[str, Any]) -> list[str]:
    """What would fail or be wasted."""
    memory, run = plan["memory"], plan["run"]
    found = []
    update = memory["policy_update"]
    if not update["fits"]:
        found.append(
            f"the policy update needs {update['total'] / 1e9:.0f} GB a GPU of {update['limit'] / 1e9:.0f}: raise "
            "policy_update.ranks, lower policy_update.ppo_max_token_len_per_gpu (not below one whole answer), or set "
            "policy_update.offload_optimizer=true"
        )
    if not memory["context_fits"]:
        found.append(
            f"one rollout engine's KV cache holds {memory['kv_tokens_per_engine']:,} tokens, less than context_length: "
            "raise rollout.tensor_parallel_size"
        )
    if plan["mode"] != "single":
        found.append(f"rollout.mode={plan['mode']}: only one turn an answer is planned for; more of them take longer")
    best = min(plan["alternatives"], key=lambda one: one["hours"])
    if best["hours"] < 0.95 * run["hours"]:
        found.append(
            f"rollout.shards={best['shards']} staleness={best['staleness']} would take {best['hours']:.1f} h "
            f"instead of {run['hours']:.1f}"
        )
    return found


def _memory(memory: dict[str, Any]) -> list[str]:
    rows = []
    for name in ("policy_update", "rollout"):
        one = memory[name]
        rows += [[name, part, f"{size / 1e9:.1f}"] for part, size in one["parts"].items() if size]
        verdict = "" if one["fits"] else "  DOES NOT FIT"
        rows.append([name, "total", f"{one['total'] / 1e9:.1f} of {one['limit'] / 1e9:.0f}{verdict}"])
    return [
        tabulate(rows, headers=["GB on one GPU", "", ""], stralign="left", disable_numparse=True),
        f"micro-batch of a rank {memory['micro_batch_tokens']:,} tokens; KV cache "
        f"{memory['kv_tokens_per_engine']:,} tokens an engine ({memory['kv_bytes_per_token'] / 1024:.0f} KiB each), "
        f"room for {memory['longest_answers_at_once']:.1f} longest answers at once",
    ]


def _iterations(run: dict[str, Any]) -> str:
    rows = []
    for stage in run["stages"]:
        rows.append([stage["name"], "iteration, mean, waits included", f"{stage['iteration_s']:.0f}"])
        for step in ("rollout_s", "reward_s", "update_s"):
            rows += [["", f"{step.removesuffix('_s')}: {part}", f"{time:.0f}"] for part, time in stage[step].items()]
        rows.append(["", "mean answer, tokens", f"{stage['mean_response_tokens']:,.0f}"])
    return tabulate(rows, headers=["stage", "", "seconds"], colalign=("left", "left", "right"), disable_numparse=True)


def _alternatives(plan: dict[str, Any]) -> str:
    run = plan["run"]
    rows = []
    for one in plan["alternatives"]:
        this = (one["shards"], one["staleness"]) == (run["shards"], run["staleness"])
        stages = " / ".join(f"{stage['iteration_s']:.0f}" for stage in one["stages"])
        busy = one["gpu_hours_held"] / one["gpu_hours_reserved"]
        rows.append(
            [
                one["shards"],
                one["staleness"],
                stages,
                f"{one['hours']:.1f}",
                f"{busy:.0%}",
                f"{one['usd_reserved']:,.0f}",
            ]
            + (["this profile"] if this else [""])
        )
    headers = ["shards", "staleness", "iteration, s", "hours", "GPUs held", "USD reserved", ""]
    return tabulate(rows, headers=headers, disable_numparse=True, colalign=("right",) * 6 + ("left",))
