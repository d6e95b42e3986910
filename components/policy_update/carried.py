"""What an update takes over from earlier ones beside the policy: the run's initial policy, and the value model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from components.core.progress import say
from components.core.store import Pointer, Store


def reference(policy: Pointer) -> Pointer:
    """The run's initial policy, which every later one names; the initial one is its own."""
    return Pointer(**policy.extra["reference"]) if "reference" in policy.extra else policy


def named_reference(policy: Pointer) -> dict[str, Any]:
    """How the successor of `policy` names the initial policy; only what finds it, so that pointers stay small."""
    pointer = reference(policy)
    extra = {name: pointer.extra[name] for name in ("version", "global_step") if name in pointer.extra}
    return asdict(pointer) | {"extra": extra}


def fetch_critic(store: Store, policy: Pointer, shape: dict[str, object], scratch: Path) -> Path | None:
    """A folder with the value model that belongs to a policy, `hf/` and, if the engine can load it, `zero/`.

    Args:
        store: where it is.
        policy: names it.
        shape: what its optimizer state must have in common with the engine.
        scratch: an empty folder.

    Returns:
        None to start one from the policy: there is none yet, or, with a warning, it is gone.
    """
    if "critic" not in policy.extra:
        return None
    pointer = Pointer(**policy.extra["critic"])
    found = store.complete(store.rel(pointer.uri))
    if found is None or found.sha256 != pointer.sha256:
        say("WARNING", f"{pointer.uri}: the value model has been pruned or replaced; one starts anew from the policy.")
        return None
    folder = store.fetch(pointer)
    if pointer.extra["shape"] == shape:
        return folder
    say(
        "WARNING",
        f"{pointer.uri}: the optimizer state was made for {pointer.extra['shape']}, this update needs {shape}. "
        "The value model goes on with fresh AdamW moments.",
    )
    (scratch / "critic").mkdir()
    (scratch / "critic" / "hf").symlink_to(folder / "hf")
    return scratch / "critic"


def commit_critic(store: Store, built: Path, where: str, *, step: str, key: str, shape: dict[str, object]) -> Pointer:
    """Complete the folder of a trained value model."""
    store.delete(where)
    for part in ("hf", "zero"):
        store.put_dir(built / part, f"{where}/{part}")
    return store.commit(where, kind="critic", step=step, rows=0, key=key, shape=shape)
