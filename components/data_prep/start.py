"""The first step of a run: configuration, base policy, problems."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from components.core.policy import ensure_base_policy
from components.core.resolve import resolve
from components.core.step import publish
from components.core.store import open_store
from components.core.tracking import Tracking
from components.data_prep import prepare


def run(
    profile: dict[str, Any],
    parameters: dict[str, Any],
    overrides: dict[str, Any],
    config_path: str,
    dataset_path: str,
    policy_path: str,
    metrics: Any,
    report_path: str,
) -> None:
    """Write the resolved configuration and the pointers that all later steps start from."""
    config = resolve(profile, parameters, overrides)
    store = open_store(config.store)
    text = json.dumps(config.model_dump(mode="json"), indent=1) + "\n"
    Path(config_path).parent.mkdir(parents=True, exist_ok=True)
    Path(config_path).write_text(text)
    store.write_bytes(text.encode(), f"runs/{config.run}/config.json")
    dataset = prepare.run(config=config, output=dataset_path)
    ensure_base_policy(config, store).write(policy_path)
    publish(dataset, metrics)
    shutil.copyfile(store.fetch(dataset) / "report.html", report_path)

    tracking = Tracking(config)
    tracking.params(flatten(config.model_dump(mode="json")))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(text)
        tracking.artifact(tracking.parent_id, path)
    tracking.artifact(tracking.parent_id, store.fetch(dataset) / "manifest.json")


def flatten(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as dotted keys, which MLflow shows and compares."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
