"""The compression levels, in the order in which they are tried."""

from enum import StrEnum


class Level(StrEnum):
    """How a history is brought under the model's window."""

    SNIP = "snip"  # redundant parts of old messages go
    MICRO = "micro"  # the contents of old tool results are cleared
    COLLAPSE = "collapse"  # finished spans give way to their summaries
    COMPACT = "compact"  # all but the latest exchange gives way to one summary
