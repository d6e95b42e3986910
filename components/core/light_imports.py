"""Imports that a step can do without, and that cost it seconds at every start."""

from __future__ import annotations


def spare_transformers(*, accelerate: bool) -> None:
    """Let transformers pass over optional packages; to be called before its models are imported.

    scikit-learn serves only its assisted generation, and takes a fifth of the import.

    Args:
        accelerate: whether accelerate is needed: DeepSpeed's integration and device maps are built on it.
    """
    import transformers.utils

    transformers.utils.is_sklearn_available = lambda: False
    if not accelerate:
        transformers.utils.is_accelerate_available = lambda *_: False
