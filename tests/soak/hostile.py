"""Hostile runs, each drawn from a seed: a model, tools, hooks and a consumer that do anything, and crashes in between.

Each run is verified, keeps what was written before a crash, is refused by no API, leaves no task, and can be replayed
and explained; `hostile_life.py` has the whole of it. A hang is seen without a clock: the event loop knows when nothing
can happen any more. `make soak` runs it; `python tests/soak/hostile.py RUNS SEED` so many, with the seeds from SEED on.
A failure is told with its seed; `python tests/soak/hostile.py 1 SEED` shows the story and the log of that one.
The tests run some of it.
"""

import logging
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import looplatch
from looplatch.testing import run
from tests.soak.hostile_life import Life

RUNS: Final = 2_000
SHOWN: Final = 500
WIDTH: Final = 300  # characters of a line of the log


class Broken(AssertionError):
    """Something does not hold of the life of a seed."""

    def __init__(self, seed: int, life: Life) -> None:
        super().__init__(f"seed {seed}: python tests/soak/hostile.py 1 {seed} shows it alone")
        self.life = life


def live(seed: int, folder: Path) -> Life:
    """Live the life of a seed to its end, in an event loop of its own time; raises Broken, with its cause.

    With an even seed the tasks that are ready go on first come, first served, with an odd one in an order of its own.
    """
    life = Life(seed, folder)
    try:
        run(life.lived(), seed=seed if seed % 2 else None)
    except Exception as wrong:  # of whatever kind: a hang is told by the event loop
        raise Broken(seed, life) from wrong
    return life


def shown(life: Life) -> str:
    """The story of a life, and the log that it left."""
    told = [f"The run {what}" for what in life.story]
    if life.log is not None:
        told += [line.decode(errors="replace")[:WIDTH].rstrip() for line in life.log.lines]
        told.append(str(looplatch.explain(life.log)))
    return "\n".join(told)


def soak(runs: int, start: int) -> str:
    """Live so many, whatever becomes of them, and say how it went; raises AssertionError where one is broken."""
    ends: Counter[str] = Counter()
    records, broken = 0, 0
    for number in range(1, runs + 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                life = live(start + number - 1, Path(folder))
            except Broken as found:
                life, broken = found.life, broken + 1
                traceback.print_exception(found)
            if runs == 1:
                print(shown(life))
        ends.update(life.ends)
        records += 0 if life.log is None else len(life.log)
        if number % SHOWN == 0:
            print(f"{number:,} hostile runs so far, {broken} broken", flush=True)
    assert broken == 0, f"{broken} of {runs:,} hostile runs are broken"
    told = ", ".join(f"{count:,} {end}" for end, count in ends.most_common())
    return f"{runs:,} hostile runs of {records:,} records hold; they ended as: {told}"


def main() -> None:
    """Do it, and say how it went."""
    logging.disable()  # of what runs warn of, such as odd answers
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    print(soak(runs, int(sys.argv[2]) if len(sys.argv) > 2 else 0))


if __name__ == "__main__":
    main()
