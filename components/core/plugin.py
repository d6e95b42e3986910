"""A user's own function, named in the configuration."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from components.core.errors import UserError


def load_function(name: str, key: str) -> Callable[..., Any]:
    """Import `package.module:function`.

    Args:
        name: the function.
        key: the configuration key that names it, for the message.

    Raises:
        UserError: there is no such module or function.
    """
    module, _, attribute = name.partition(":")
    try:
        function = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"{key}={name}: {error}; write it as package.module:function") from error
    if not callable(function):
        raise UserError(f"{key}={name}: not a function")
    loaded: Callable[..., Any] = function
    return loaded
