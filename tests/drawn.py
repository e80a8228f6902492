"""Events drawn by Hypothesis, as the testing kit draws them."""

from looplatch.testing import events
from looplatch.testing import events_of as of

__all__ = ["events", "of"]
