"""What the models can take and write, for when the API is not asked: the published figures, by family."""

import re
from typing import Final

import attrs


@attrs.frozen(kw_only=True)
class ModelSize:
    """window: tokens of prompt and output together; output: the most tokens of one answer. None: not known."""

    window: int | None = None
    output: int | None = None


# The first pattern that is found in the model's name holds; dates, prefixes of clouds and suffixes do not matter.
_SIZES: Final = (
    (re.compile(r"claude-3-(opus|sonnet|haiku)|claude-3-[a-z]+-2024(0[2-3])"), ModelSize(window=200_000, output=4_096)),
    (re.compile(r"claude-3-5-"), ModelSize(window=200_000, output=8_192)),
    (re.compile(r"claude-3-7-"), ModelSize(window=200_000, output=64_000)),
    (re.compile(r"claude-opus-4(-0|-1)?(-2025|@|$)"), ModelSize(window=200_000, output=32_000)),
    (re.compile(r"claude-(sonnet|haiku|opus)-4"), ModelSize(window=200_000, output=64_000)),
)


def model_size(model: str) -> ModelSize:
    """The size of a model by its name; of an unknown one, nothing is known."""
    for pattern, size in _SIZES:
        if pattern.search(model):
            return size
    return ModelSize()
