"""Ten thousand drawn scripts: each run is verified, made again byte for byte, and goes on from a prefix of its log.

`make soak` runs it; `python tests/soak/scripts.py SCRIPTS SEED` so many, drawn from a seed: the same ones each time.
A failure is told as the smallest script that fails. The tests run some of it.
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Final

from hypothesis import given, seed, settings

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tests.proving import DRAWN, Drawn, prove
from tests.test_scripts import drawn

SCRIPTS: Final = 10_000
SHOWN: Final = 1_000


def soak(scripts: int, start: int) -> str:
    """Prove so many; raises AssertionError for the first of which anything does not hold."""
    places: Counter[int] = Counter()

    @seed(start)
    @settings(drawn, max_examples=scripts, database=None)
    @given(DRAWN)
    def each(run: Drawn) -> None:
        places[prove(run)] += 1
        if places.total() % SHOWN == 0:
            print(f"{places.total():,} scripts so far", flush=True)

    each()
    runs = f"{places.total():,} scripts: all are verified, made again, and went on from a prefix"
    return f"{runs} of {min(places)} to {max(places)} records"


def main() -> None:
    """Do it, and say how it went."""
    scripts = int(sys.argv[1]) if len(sys.argv) > 1 else SCRIPTS
    print(soak(scripts, int(sys.argv[2]) if len(sys.argv) > 2 else 0))


if __name__ == "__main__":
    main()
