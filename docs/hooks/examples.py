"""A docstring's `Example:` shown as code: the API pages know the section by its plural only."""

import re
from typing import Any

from griffe import Extension, Object

HEADING = re.compile(r"^Example:$", re.M)


class Examples(Extension):
    """Told of every object whose docstring may be shown."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Put the section's name in the plural."""
        if obj.docstring is not None:
            obj.docstring.value = HEADING.sub("Examples:", obj.docstring.value)
