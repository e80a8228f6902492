"""Ten thousand runs that are abandoned, cancelled or completed: no task, no handle, and no memory may be left.

`make soak` runs it; `python tests/soak/runs.py ROUNDS` a part of it, of ten runs a round. The tests run a tenth of it,
and count objects.
"""

import asyncio
import gc
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from looplatch import Rule
from looplatch.testing import FakeClock, ScriptedAPI
from tests.playing import alone, echo, scripted, tool_named
from tests.test_abandonment import Many, answer, handles, hang

ROUNDS: Final = 1_000
WARM_UP: Final = 100
MOST: Final = 1_000_000  # bytes that a thousand runs may leave behind


def resident() -> int:
    """The memory of this process, in bytes."""
    pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    return int(pages) * 4_096


async def soak(rounds: int, folder: Path) -> str:
    """Run so many rounds; raises AssertionError where anything is left."""
    api, clock = ScriptedAPI(answer), FakeClock()
    tools = [echo(), echo("ask"), echo("write", read_only=False), tool_named("hang", answer=hang)]
    options: dict[str, Any] = {"rules": [Rule("ask", "ask")], "clock": clock, "durability": "none"}
    async with scripted(api, tools=tools, **options) as loop:
        many = Many(loop, folder)

        async def some(count: int) -> None:
            for _ in range(count):
                await many.one_of_each()
                assert alone(), "a task is left"
                api.exchanges.clear()  # the server's memory is not the loop's
                clock.advance(100)  # which lets go of the timers that were taken back

        await some(WARM_UP)
        gc.collect()
        before, open_before = resident(), handles()
        await some(rounds)
        gc.collect()
        assert handles() == open_before, "a handle is left"
        assert api.refusals == [], api.refusals[:3]
        grown = (resident() - before) / (10 * rounds / 1_000)
    assert grown < MOST, f"{grown:,.0f} bytes are left of each 1,000 runs"
    return f"{10 * rounds:,} runs: no task and no handle is left, and {grown:,.0f} bytes of memory of each 1,000 runs"


def main() -> None:
    """Do it, and say how it went."""
    warnings.simplefilter("ignore", ResourceWarning)  # this is what a run says that is left without a word
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        print(asyncio.run(soak(rounds, Path(folder))))


if __name__ == "__main__":
    main()
