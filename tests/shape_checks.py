"""The checker behind jaxtyping's import hook: at every call of ours the shapes are as annotated.

Plain types are mypy's: tests hand wrong ones in on purpose, to see them refused.
"""

from collections.abc import Callable
from inspect import isclass
from typing import Any, get_args

import jaxtyping
from beartype import beartype
from jaxtyping import AbstractArray, install_import_hook, jaxtyped


def install(modules: list[str]) -> None:
    """Check the shapes in these modules, once they are imported.

    jaxtyping binds the arguments of every function to their names, which takes longer than many
    functions themselves; those that name no shape are left as they are.
    """
    jaxtyping.jaxtyped = _jaxtyped
    hook: Any = install_import_hook(modules, "shape_checks.checked").hook
    hook.should_instrument = frozenset(modules).__contains__  # a package, without its modules


def _jaxtyped(*, typechecker: Callable[..., Any]) -> Callable[..., Any]:
    def decorate(thing: Any) -> Any:
        function = thing.__init__ if isclass(thing) else thing
        hints = getattr(function, "__annotations__", None)
        if hints is not None and not any(map(_names_shape, hints.values())):
            return thing
        return jaxtyped(thing, typechecker=typechecker)

    return decorate


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with those of its annotations that name shapes checked by beartype."""
    hints = getattr(function, "__annotations__", {})
    function.__annotations__ = {name: hint for name, hint in hints.items() if _names_shape(hint)}
    return beartype(function) if function.__annotations__ else function


def _names_shape(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    return any(_names_shape(part) for part in get_args(hint))
