"""A content block that is in the payload store."""

from typing import Any

import attrs


@attrs.frozen
class Kept:
    """A content block, encoded once, and what a record says of it."""

    encoded: bytes = attrs.field(repr=False)
    skeleton: dict[str, Any]
