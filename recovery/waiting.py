"""The calls that wait for someone's word, by the ids that they are shown with: a run's own, and those of its children.

An id is shown as it is unless two calls have it; then a child's is shown behind that of the call that it runs for.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import attrs


@attrs.frozen
class Waiting:
    """A call that waits: its id in its own run, and the call that this run answers; None: it is the parent's own."""

    call: str
    under: str | None = None


def waiting(own: Iterable[str], children: Mapping[str, Iterable[str]]) -> dict[str, Waiting]:
    """All that wait. own: calls of the run itself. children: calls of its children, by the calls that those answer."""
    listed = [Waiting(call) for call in own if call not in children]
    listed += [Waiting(call, under) for under, calls in children.items() for call in calls]
    times = Counter(one.call for one in listed)
    return {_shown(one, times[one.call]): one for one in listed}


def _shown(one: Waiting, times: int) -> str:
    return one.call if times == 1 or one.under is None else f"{one.under}/{one.call}"
