"""Triton's interpreter, mended: for numpy 2.4, and for kernels that call functions of their own.

It reads loop bounds from one-element arrays, which numpy 2.4 refuses. And it replaces the whole
language at every call of a function inside a kernel, though the launch has done so already; that
took a fifth of the time.
"""

from inspect import ismodule
from typing import Any

from triton.runtime import interpreter

_patch_tensor = interpreter._patch_lang_tensor
_language = (interpreter.tl, interpreter.tl.core)


def _patch(tensor: Any, scope: Any) -> None:
    _patch_tensor(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    seen = [value for value in self.fn.__globals__.values() if ismodule(value)]
    if any(interpreter.tl.core.is_builtin(one.load) for one in seen if one in _language):
        interpreter._patch_lang(self.fn)
    return self.rewrite()(*args, **kwargs)


interpreter._patch_lang_tensor = _patch
interpreter.InterpretedFunction.__call__ = _call
