"""What the run's page shows: charts, and base and final answers side by side."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

from components.core import charts
from components.core.config import Config
from components.core.page import render
from components.core.pairwise import Evaluated
from components.core.seeds import derive_seed
from components.core.store import Pointer, Store
from components.report.collect import Curves

BROWSER_PROBLEMS = 120
"""Problems in the page's browser: more would make it slow to open."""

_FIRST_CURVES = (
    "critic/score/mean",
    "reward/well_formed",
    "batch/frac_reward_zero_std",
    "response_length/mean",
    "response_length/clip_ratio",
    "actor/entropy",
    "actor/ppo_kl",
    "actor/pg_clipfrac",
    "actor/grad_norm",
)
"""The curves that are open when the page is; the others are behind a click. Names are verl's."""

_MANIFEST_BYTES = 200_000
"""A larger manifest is linked, not shown."""


def render_page(
    config: Config,
    store: Store,
    dataset: Pointer,
    summary: dict[str, Any],
    evaluations: list[Evaluated],
    curves: Curves,
    stages: list[tuple[float, str]],
) -> str:
    """The whole page as one string; `summary` is what `summarize_run` gave."""
    first, rest = _curve_charts(curves, stages)
    times = summary["time"]["by_kind"]
    bars = [
        (row["kind"], [("start-up", row["startup_s"], "startup"), ("work", row["total_s"] - row["startup_s"], "work")])
        for row in times
    ]
    rows = summary["policies"]
    spans = [(row["label"], row["pass@1"]["value"], row["pass@1"]["low"], row["pass@1"]["high"]) for row in rows]
    mix = [(row["label"], [(v["value"], v["share"], v["value"]) for v in row["by_verdict"]]) for row in rows]
    present = {v["value"] for row in rows for v in row["by_verdict"]}
    return render(
        Path(__file__).with_name("report.html.j2"),
        title=f"{config.run}: report",
        config=config,
        summary=summary,
        policies_chart=charts.intervals(spans, "pass@1 of each policy with its interval"),
        verdict_chart=charts.stacked(mix, "%", "share of each verdict by policy"),
        present=present,
        movement=_movement(evaluations[0], evaluations[-1]),
        curves=first,
        more_curves=rest,
        times_chart=charts.stacked(bars, "s", "seconds by kind of step") if bars else None,
        problems=_side_by_side(config, evaluations[0], evaluations[-1]),
        both=evaluations[0].label,
        final=evaluations[-1].label,
        configuration=config.model_dump_json(indent=1),
        dataset=dataset,
        manifest=_manifest(store, dataset),
    )


def _manifest(store: Store, dataset: Pointer) -> str | None:
    data = store.read_bytes(f"{store.rel(dataset.uri)}/manifest.json")
    if data is None or len(data) > _MANIFEST_BYTES:
        return None
    return json.dumps(json.loads(data), indent=1, ensure_ascii=False)


def _curve_charts(curves: Curves, stages: list[tuple[float, str]]) -> tuple[list[Any], list[Any]]:
    """(name, chart) of the curves that most readers want, and of the others."""
    wanted = [name for name in _FIRST_CURVES if name in curves] or sorted(curves)[: len(_FIRST_CURVES)]
    others = sorted(curves.keys() - set(wanted))
    first, rest = ([(name, charts.curve(curves[name], stages, name)) for name in names] for names in (wanted, others))
    return first, rest


def _movement(base: Evaluated, final: Evaluated) -> dict[str, Any] | None:
    """The grid of correct answers before and after, over problems that have all samples graded in both."""
    if base is final:
        return None
    size = max(len(samples) for samples in base.samples.values())

    def correct(one: Evaluated, problem: str) -> int | None:
        values = [sample["correct"] for sample in one.samples.get(problem, [])]
        return None if len(values) != size or None in values else sum(values)

    pairs = [(correct(base, problem), correct(final, problem)) for problem in base.samples]
    counts = Counter((a, b) for a, b in pairs if a is not None and b is not None)
    cells = [(a, b, count) for (a, b), count in counts.items()]
    return {
        "chart": charts.movement(cells, size, "problems by correct answers before and after"),
        "problems": sum(counts.values()),
        "left_out": len(pairs) - sum(counts.values()),
        "better": sum(count for a, b, count in cells if b > a),
        "worse": sum(count for a, b, count in cells if b < a),
    }


def _rate(samples: list[dict[str, Any]]) -> float:
    graded = [sample["correct"] for sample in samples if sample["correct"] is not None]
    return sum(graded) / len(graded) if graded else 0.0


def _side_by_side(config: Config, base: Evaluated, final: Evaluated) -> list[dict[str, Any]]:
    """A seeded choice of problems with each policy's first sample: never the best of several."""
    shared = [name for name in base.samples if name in final.samples]
    chooser = random.Random(derive_seed(config.seed, "report page"))
    chosen = set(chooser.sample(shared, min(BROWSER_PROBLEMS, len(shared))))
    rows = []
    for name in shared:
        if name not in chosen:
            continue
        before, after = _rate(base.samples[name]), _rate(final.samples[name])
        rows.append(
            {
                **base.questions[name],
                "before": base.samples[name][0],
                "after": final.samples[name][0],
                "rate_before": before,
                "rate_after": after,
                "move": "better" if after > before else "worse" if after < before else "same",
            }
        )
    return rows
