"""What an experienced eye would stop at in the numbers of an update, said as a warning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.core.progress import say
from components.core.update_config import AlarmsConfig
from components.policy_update.job import Job

History = list[dict[str, float]]
"""A few numbers of each earlier update of the run, oldest first; they travel with the policy."""

_KEPT = ("actor/entropy", "critic/score/mean", "response_length/clip_ratio")
# Less than this is noise: shares of truncated answers, and rewards.
_TREND = 0.02


def extend_history(history: History, metrics: Mapping[str, float], config: AlarmsConfig) -> History:
    """The history with one more update: of all, the first that has an entropy, and as many as the trend needs."""
    updates = [*history, {name: metrics[name] for name in _KEPT if name in metrics}]
    first = next((number for number, update in enumerate(updates) if "actor/entropy" in update), 0)
    start = max(0, len(updates) - 2 * config.window)
    return updates[start:] if first >= start else [updates[first], *updates[start:]]


def find_alarms(
    metrics: Mapping[str, float], history: History, config: AlarmsConfig
) -> tuple[dict[str, float], list[str]]:
    """Look at an update.

    Args:
        metrics: its numbers.
        history: the earlier updates.
        config: the thresholds.

    Returns:
        A metric `alarm/...` each, 1 or 0, and a sentence for each that is 1.
    """
    updates = [*history, {name: metrics[name] for name in _KEPT if name in metrics}]
    mismatch = _STALE if metrics.get("sampling/stale_share") else _MISMATCH
    texts = {
        "entropy_collapse": _entropy(updates, config.entropy),
        "mismatch_kl": _above(metrics, "sampling/mismatch_k3_kl", config.mismatch_kl, mismatch),
        "clip_fraction": _above(metrics, "actor/pg_clipfrac", config.clip_fraction, _CLIPPED),
        "zero_std": _above(metrics, "batch/frac_reward_zero_std", config.zero_std, _NOTHING_TO_LEARN),
        "truncation": _truncation(updates, config.window),
    }
    found = {f"alarm/{name}": float(bool(text)) for name, text in texts.items()}
    return found, [text for text in texts.values() if text]


def sound_alarms(job: Job, metrics: Mapping[str, float], *, aloud: bool) -> dict[str, float]:
    """The alarms of an update as metrics; each that is 1 is a warning in the log too, if `aloud`."""
    found, texts = find_alarms(metrics, job.history, job.config.policy_update.alarms)
    for text in texts if aloud else []:
        say("WARNING", f"stage-{job.stage}/iter-{job.iteration:02d}/policy: {text}")
    return found


_MISMATCH = "rollout engine and trainer disagree; look at their dtypes, and keep policy_update.rollout_is_threshold"
_STALE = (
    "an update takes the policy this far from the one that wrote the answers (staleness=1); lower learning_rate, or "
    "set staleness=0 to see whether rollout engine and trainer disagree as well"
)
_CLIPPED = "the steps are too large; lower learning_rate or ppo_epochs"
_NOTHING_TO_LEARN = (
    "most groups teach nothing, their problems are too hard or too easy; see data.solve_rates and "
    "policy_update.filter_groups"
)


def _above(metrics: Mapping[str, float], name: str, bound: float, meaning: str) -> str:
    value = metrics.get(name, 0.0)
    return f"{name} is {value:.4g}, above {bound:g}: {meaning}" if value > bound else ""


def _entropy(updates: Sequence[Mapping[str, float]], share: float) -> str:
    # Updates that had nothing to learn from, or in which only a value model learnt, have none.
    first = next((update["actor/entropy"] for update in updates if "actor/entropy" in update), 0.0)
    last = updates[-1].get("actor/entropy", first)
    if last >= share * first:
        return ""
    return (
        f"actor/entropy is {last:.4g} and began at {first:.4g}: the policy hardly explores; raise clip_ratio_high or "
        "entropy_coeff, or lower learning_rate"
    )


def _truncation(updates: Sequence[Mapping[str, float]], window: int) -> str:
    """Answers run into the limit more often while they earn less."""
    if len(updates) < 2 * window:
        return ""
    before, now = updates[-2 * window : -window], updates[-window:]

    def change(name: str) -> float:
        return sum(u.get(name, 0.0) for u in now) / window - sum(u.get(name, 0.0) for u in before) / window

    cut, score = change("response_length/clip_ratio"), change("critic/score/mean")
    if cut <= _TREND or score >= -_TREND:
        return ""
    return (
        f"over {window} updates truncated answers rose by {cut:.1%} while the reward fell by {-score:.3f}: look at "
        "some answers, and at max_response_length, mask_truncated_samples and overlong_buffer"
    )
