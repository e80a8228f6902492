"""The longest way through a graph that has no cycle, or a cycle where it has one."""

from collections.abc import Sequence

import attrs


@attrs.frozen
class Longest:
    """The number of steps of the longest way from node 0, or the nodes of a cycle that can be reached from it."""

    length: int
    cycle: list[int]


def longest_way(forth: Sequence[Sequence[int]]) -> Longest:
    """Look at the graph in which node `n` leads to each of `forth[n]`; every node can be reached somehow."""
    length: list[int | None] = [None] * len(forth)
    place: dict[int, int] = {}  # of the nodes on the path
    best = 0
    for root in range(len(forth)):
        if length[root] is not None:
            continue
        path, left = [root], [iter(forth[root])]
        place[root] = 0
        while path:
            here = path[-1]
            goal = next(left[-1], None)
            if goal is None:
                length[here] = max((1 + (length[one] or 0) for one in forth[here]), default=0)
                best = max(best, length[here] or 0)
                del place[here]
                path.pop()
                left.pop()
            elif goal in place:
                return Longest(0, path[place[goal] :])
            elif length[goal] is None:
                place[goal] = len(path)
                path.append(goal)
                left.append(iter(forth[goal]))
    return Longest(best, [])
