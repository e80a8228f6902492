"""A session: every measure in turn, its entrants interleaved, each in a process of its own."""

import argparse
import importlib.util
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from tests.benchmarks.measures import MEASURES, Measure, Raw
from tests.benchmarks.report import ALONE, BASE, Results, as_json, table
from tests.benchmarks.responder import responder

_HERE: Final = str(Path(__file__).resolve().parent)
_CHILD: Final = "--child"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line asks for; a child that fails ends it."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == [_CHILD]:
        from tests.benchmarks.child import Order
        from tests.benchmarks.child import main as carry_out

        given: dict[str, Any] = orjson.loads(arguments[1])
        carry_out(Order(**given))
        return
    asked = _parser().parse_args(arguments)
    chosen = [measure for measure in MEASURES if asked.measures is None or measure.name in asked.measures]
    with responder() as server:
        results = [_measured(measure, server, reps=asked.reps, profile=asked.profile) for measure in chosen]
    if asked.json:
        sys.stdout.write(orjson.dumps(as_json(results), option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        sys.stdout.write(table(results) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "--measures",
        type=_names,
        help=f"some of {', '.join(measure.name for measure in MEASURES)}, with commas between; all by default",
    )
    parser.add_argument("--reps", type=int, default=5, help="how often each is repeated (5); slow ones less often")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--profile", action="store_true", help="print where looplatch's time goes instead of comparing")
    return parser


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - {measure.name for measure in MEASURES}:
        raise argparse.ArgumentTypeError(f"there is no measure {', '.join(sorted(unknown))}")
    return names


def _measured(measure: Measure, server: str, *, reps: int, profile: bool) -> Results:
    """Repeat a measure: in each repetition every entrant once, the SDK loop first and the others in random order."""
    results = Results(measure)
    for rep in range(1 if profile else min(reps, measure.reps)):
        entrants = [ALONE] if measure.workload is not None else list(_entrants(measure))
        if profile:
            entrants = [name for name in entrants if name not in (BASE, "floor", "floor-fast")]
        random.Random(rep).shuffle(entrants)
        entrants.sort(key=lambda name: name != BASE)
        for name in entrants:
            _say(f"{measure.name} {rep + 1}: {name}")
            results.raw.setdefault(name, []).append(_child(measure, name, server, profile=profile))
    order = measure.entrants if measure.workload is None else (ALONE,)
    results.raw = {name: results.raw[name] for name in order if name in results.raw}
    return results


def _entrants(measure: Measure) -> Sequence[str]:
    fast = importlib.util.find_spec("aiohttp") is not None
    return [name for name in measure.entrants if fast or not name.endswith("-fast")]


def _child(measure: Measure, name: str, server: str, *, profile: bool) -> Raw:
    order = {
        "entrant": None if measure.workload is not None else name,
        "workload": measure.workload,
        "scenario": measure.scenario.path(),
        "server": server,
        "marks": measure.marks,
        "profile": profile,
    }
    done = subprocess.run(
        [sys.executable, _HERE, _CHILD, orjson.dumps(order).decode()], stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        raise SystemExit(f"{name} failed in the measure {measure.name}; what it said stands above")
    figures: Raw = orjson.loads(done.stdout)
    return figures


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
