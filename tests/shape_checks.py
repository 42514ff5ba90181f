"""The checker behind jaxtyping's import hook: at every call of ours the shapes are as annotated.

Plain types are mypy's: tests hand wrong ones in on purpose, to see them refused.
"""

from collections.abc import Callable
from typing import Any, get_args

from beartype import beartype
from jaxtyping import AbstractArray


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with those of its annotations that name shapes checked by beartype."""
    hints = getattr(function, "__annotations__", {})
    function.__annotations__ = {name: hint for name, hint in hints.items() if _names_shape(hint)}
    return beartype(function) if function.__annotations__ else function


def _names_shape(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    return any(_names_shape(part) for part in get_args(hint))
