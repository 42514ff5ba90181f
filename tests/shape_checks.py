"""The type checker behind jaxtyping's import hook: every call of ours is checked in the tests."""

from collections.abc import Callable
from typing import Any, Self

from beartype import BeartypeConf, beartype

CONF = BeartypeConf(is_pep484_tower=True)  # an int will do for a float


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Checked by beartype, but for `Self`, which it only knows in a class that it decorates."""
    hints = getattr(function, "__annotations__", {})
    function.__annotations__ = {name: hint for name, hint in hints.items() if hint is not Self}
    return beartype(function, conf=CONF)
