"""How many tokens a history has: what the API counted last, and what changed since."""

from typing import Final

import attrs

BYTES_PER_TOKEN: Final = 4  # where nothing was counted yet
_LEAST, _MOST = 2.0, 6.0  # bytes of a token that are believed: base64 has few, prose has many
_ENOUGH: Final = 500  # counted tokens from which on they say what a token weighs


@attrs.frozen(kw_only=True)
class Estimate:
    """The tokens of a history, with the system prompt and the tools, which weigh `fixed` bytes.

    The API counted `reported` tokens when the history weighed `weight` bytes; None: it has not counted yet. That tells
    what a token of this run weighs, too, unless `calibrated` is False: then what was counted is not what is kept here.
    """

    reported: int | None = None
    weight: int = 0
    fixed: int = 0
    calibrated: bool = True

    def tokens(self, weight: int) -> int:
        """The tokens of the history now that it weighs `weight` bytes."""
        if self.reported is None:
            return (weight + self.fixed) // BYTES_PER_TOKEN
        changed = self.reported + round((weight - self.weight) / self.bytes_per_token)
        # Whatever a token weighs, of what is left of a history some part of its tokens is left, too.
        whole = max(1, self.weight + self.fixed)
        return max(changed, min(self.reported, self.reported * (weight + self.fixed) // whole) // 2)

    def doubt(self, weight: int) -> int:
        """How many tokens the estimate may be off: half of what was not counted."""
        if self.reported is None:
            return self.tokens(weight) // 2
        return round(abs(weight - self.weight) / self.bytes_per_token / 2)

    @property
    def bytes_per_token(self) -> float:
        """What a token weighs."""
        if self.reported is None or self.reported < _ENOUGH or not self.calibrated:
            return BYTES_PER_TOKEN
        return min(max((self.weight + self.fixed) / self.reported, _LEAST), _MOST)
