"""One measurement in a fresh process: an entrant over a scenario, or a workload of ours alone. Prints one JSON line."""

import asyncio
import cProfile
import gc
import os
import pstats
import resource
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import orjson

from tests.benchmarks.contenders import ENTRANTS, Entrant
from tests.benchmarks.responder import seen
from tests.benchmarks.scenario import Scenario
from tests.benchmarks.workloads import WORKLOADS

_PROFILE_LINES = 40


@attrs.frozen(kw_only=True)
class Order:
    """What a child is to measure. `marks` are the calls at which CPU time and memory are noted."""

    entrant: str | None = None
    workload: str | None = None
    scenario: str = ""
    server: str = ""
    marks: Sequence[int] = ()
    profile: bool = False


def main(order: Order) -> None:
    """Carry out `order` and print what was measured."""
    _allow_many_files()
    if order.workload is not None:
        figures = _profiled(order, lambda: WORKLOADS[order.workload or ""](order.server))
    else:
        entrant = next(entrant for entrant in ENTRANTS if entrant.name == order.entrant)
        figures = asyncio.run(_race(entrant, Scenario.read(order.scenario), order))
    sys.stdout.write(orjson.dumps(figures).decode() + "\n")


class _Tool:
    """The tool of all loops of a child: notes when it is called, and what the process has used by then."""

    def __init__(self, sleep_s: float, marks: Sequence[int]) -> None:
        self.calls = 0
        self.first_ns = 0
        self.noted: dict[str, tuple[float, int]] = {}
        self._sleep_s = sleep_s
        self._marks = frozenset(marks)

    async def work(self, given: dict[str, Any]) -> str:
        self.first_ns = self.first_ns or time.perf_counter_ns()
        self.calls += 1
        if self.calls in self._marks:
            self.noted[str(self.calls)] = (time.process_time(), _resident_kb())
        if self._sleep_s:
            await asyncio.sleep(self._sleep_s)
        return "done: " + str(given["x"])[:4]


async def _race(entrant: Entrant, scenario: Scenario, order: Order) -> dict[str, Any]:
    warm = attrs.evolve(scenario, turns=2, text=3, final=3, input_bytes=24, hold_ms=0, tool_ms=0, loops=1, repeats=1)
    async with entrant.client(f"{order.server}/{warm.path()}") as client:
        await entrant.contender(client, _Tool(0, ()).work)
    seen(order.server)
    tool, client = _Tool(scenario.tool_ms / 1000, order.marks), entrant.client(f"{order.server}/{scenario.path()}")
    gc.collect()
    profile = cProfile.Profile() if order.profile else None
    wall, cpu = time.perf_counter(), time.process_time()
    if profile is not None:
        profile.enable()
    heard = [
        one
        for _ in range(scenario.repeats)
        for one in await asyncio.gather(*(entrant.contender(client, tool.work) for _ in range(scenario.loops)))
    ]
    if profile is not None:
        profile.disable()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    told = seen(order.server)
    await client.close()
    problems = told.problems[:3]
    for what, found, expected in (
        ("requests", told.requests, scenario.requests),
        ("tool calls", tool.calls, scenario.tool_calls),
        ("text deltas", sum(one.deltas for one in heard), scenario.deltas),
        ("characters", sum(one.characters for one in heard), scenario.characters),
    ):
        if found != expected:
            problems.append(f"{found} {what} instead of {expected}")
    if problems:
        raise AssertionError(f"{entrant.name} did not do its work: {'; '.join(problems)}")
    if profile is not None:
        _show(profile)
    return {
        "wall_s": wall,
        "cpu_s": cpu,
        "resident_kb": _resident_kb(),
        "noted": tool.noted,
        "start_ms": (tool.first_ns - told.sent_ns) / 1e6,
    }


def _profiled(order: Order, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    if not order.profile:
        return work()
    profile = cProfile.Profile()
    figures = profile.runcall(work)
    _show(profile)
    return figures


def _show(profile: cProfile.Profile) -> None:
    pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(_PROFILE_LINES)


def _resident_kb() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    except OSError:  # no Linux: the most that was ever resident, which is the same for what only grows
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak // 1024 if sys.platform == "darwin" else peak


def _allow_many_files() -> None:
    """A thousand loops have two files and a connection each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8_192 if hard == resource.RLIM_INFINITY else min(8_192, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
