"""What is measured of looplatch alone: the audit log, its verifier, the import. No other contender has them."""

import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from looplatch.audit import JsonlLog
from looplatch.audit.protocol import Durability
from looplatch.states.record import Kind
from looplatch.states.verify.log import verify_lines
from tests.benchmarks import compression
from tests.benchmarks.contenders import ENTRANTS, LOGS, looplatch_of
from tests.benchmarks.scenario import Scenario

_RECORDS: Final = 30_000
_LOST: Final = 5  # records of the last turn that a process died without
_FIELDS: Final[tuple[tuple[Kind, dict[str, Any]], ...]] = (
    (
        Kind.TRANSITION,
        {
            "source": "orchestrate",
            "event": "ToolsAnswered",
            "fields": {"results": 1, "errors": 0, "stop_asked": False},
            "target": "prepare",
            "reason": "next_turn",
            "strategy": None,
            "terminal": None,
            "guards": [["trouble_pending", False], ["stop_asked", False], ["turns_left", True], ["turns_spent", False]],
            "change": {"turn": 17, "reason": "next_turn"},
        },
    ),
    (
        Kind.MESSAGE,
        {
            "op": "join",
            "index": 33,
            "role": "user",
            "form": "blocks",
            "blocks": [
                {
                    "type": "tool_result",
                    "commitment": "7b" * 32,
                    "bytes": 96,
                    "tool_use_id": "toolu_01A09q90qw90lq917835lq9",
                    "is_error": False,
                }
            ],
        },
    ),
)


def append(server: str) -> dict[str, Any]:
    """Appending records of two common kinds, without fsync and with group commit."""
    return {"none_us": _appended("none"), "group_us": _appended("group")}


def _appended(durability: Durability) -> float:
    with tempfile.TemporaryDirectory(prefix="looplatch-bench-") as folder:
        log = JsonlLog(Path(folder) / "run.jsonl", "bench", durability=durability)
        begun = time.process_time()
        for number in range(_RECORDS):
            kind, fields = _FIELDS[number % len(_FIELDS)]
            log.append(kind, fields)
        spent = time.process_time() - begun
        log.close()
    return spent * 1e6 / _RECORDS


def verify(server: str) -> dict[str, Any]:
    """Verifying the log of a run of 1,000 turns, and what the verifier's memory grew by beyond that for 100 turns."""
    short, long = _logged(server, 100), _logged(server, 1_000)
    _verified(short)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    best = max(_verified(long) for _ in range(5))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"records_a_second": best, "grown_kb": grown // 1024 if sys.platform == "darwin" else grown}


def _logged(server: str, turns: int) -> Path:
    """Run so many turns; returns the log of the run."""
    entrant = next(entrant for entrant in ENTRANTS if entrant.name == "looplatch")
    before = set(Path(LOGS.name).glob("*.jsonl"))

    async def work(given: dict[str, Any]) -> str:
        return "done"

    async def run() -> None:
        client = entrant.client(f"{server}/{Scenario(turns=turns).path()}")
        await entrant.contender(client, work)
        await client.close()

    asyncio.run(run())
    (log,) = set(Path(LOGS.name).glob("*.jsonl")) - before
    return log


def _verified(path: Path) -> float:
    """Verify the records of a log without its payloads, whose reading is the disk's; returns records a second."""
    begun = time.process_time()
    with path.open("rb") as file:
        report = verify_lines(file)
    spent = time.process_time() - begun
    if not report.ok:
        raise AssertionError(str(report))
    return report.count / spent


def resume(server: str) -> dict[str, Any]:
    """Taking up a run of 1,000 turns whose process died before its last records, up to where it goes on."""
    whole = _logged(server, 1_000)
    lines = whole.read_bytes().splitlines(keepends=True)
    return {"resume_s": min(_resumed(whole, b"".join(lines[:-_LOST]), number) for number in range(3))}


def _resumed(whole: Path, left: bytes, number: int) -> float:
    path = whole.with_name(f"cut-{number}.jsonl")
    path.write_bytes(left)
    path.with_suffix(".payloads").write_bytes(whole.with_suffix(".payloads").read_bytes())

    async def work(given: dict[str, Any]) -> str:
        return "done"

    async def go_on() -> float:
        async with ENTRANTS[0].client("http://127.0.0.1:9") as client:  # nothing is sent
            loop = looplatch_of(client, work)
            begun = time.process_time()
            async with loop.resume(path):
                return time.process_time() - begun

    return asyncio.run(go_on())


_IMPORT: Final = """
import sys, time
def resident():
    try:
        return int(open("/proc/self/statm").read().split()[1]) * 4
    except OSError:
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)
bare = set(sys.modules)
wall, cpu = time.perf_counter(), time.process_time()
import looplatch
wall, cpu, kb = time.perf_counter() - wall, time.process_time() - cpu, resident()
loaded = sorted({name.partition(".")[0] for name in set(sys.modules) - bare} - set(sys.stdlib_module_names))
used = time.process_time()
looplatch.Loop
used = time.process_time() - used
import json
print(json.dumps({"wall_ms": wall * 1e3, "cpu_ms": cpu * 1e3, "resident_mb": kb / 1024, "loaded": loaded,
                  "first_use_cpu_ms": used * 1e3, "first_use_mb": resident() / 1024}))
"""


def import_time(server: str) -> dict[str, Any]:
    """`import looplatch` in a fresh interpreter, the best of five: the others tell of the machine."""
    command = [sys.executable, "-I", "-c", _IMPORT]
    found = [orjson.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(5)]
    figures: dict[str, Any] = min(found, key=lambda one: float(one["wall_ms"]))
    heavy = {"anthropic", "hypothesis", "pytest", "structlog", "pydantic", "httpx2"} & set(figures["loaded"])
    return {**figures, "heavy_modules": len(heavy)}


WORKLOADS: Final[Mapping[str, Callable[[str], dict[str, Any]]]] = {
    "append": append,
    "verify": verify,
    "resume": resume,
    "import": import_time,
    "levels": compression.levels,
    "prepare": compression.prepare,
}
