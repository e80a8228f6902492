"""Two take up the log of one dead run at the same moment: one goes on, the other is refused, and nothing is lost."""

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from looplatch import Loop, read, verify
from looplatch.audit import LogInUse
from looplatch.recovery.resume.errors import CannotResume
from looplatch.testing import ScriptedAPI
from tests.killing import BRIEF, ROOT, SETTINGS, done, played, tools
from tests.playing import MODEL
from tests.resuming import answers_had, started

OTHER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from looplatch import LooplatchError
from tests.killing import BRIEF, played
print("ready", flush=True)
sys.stdin.readline()
try:
    ended = asyncio.run(played(Path(sys.argv[2]), BRIEF[int(sys.argv[3]):], resume=True))
    print(ended.terminal)
except LooplatchError as error:
    print(type(error).__name__)
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a run of three answers with three calls in them."""
    folder = tmp_path_factory.mktemp("whole")
    asyncio.run(played(folder, BRIEF, resume=False))
    return folder / "run.jsonl"


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def left_by(whole: Path, count: int, folder: Path) -> Path:
    """The log, in a new folder, of a run that died after so many records."""
    shutil.copytree(whole.parent, folder, ignore=shutil.ignore_patterns("done"))
    path = folder / whole.name
    path.write_bytes(b"".join(lines_of(whole)[:count]))
    return path


def check(path: Path, lines: list[bytes]) -> None:
    """The run is over, what was there of it stands, and no write was done twice."""
    report = verify(path)
    assert report.ok, str(report)
    assert report.status == "sealed"
    assert lines_of(path)[: len(lines)] == lines
    for call in ("w1", "w2"):
        assert done(path.parent).count(f"begin {call}") <= 1


def cuts(whole: Path) -> range:
    """After how many records the run can be taken up, its end left out."""
    records = read(whole).records
    first = next(count for count in range(len(records)) if started(records[:count]))
    return range(first, len(records))


def test_of_two_in_one_process_one_goes_on(tmp_path: Path, whole: Path) -> None:
    """Both have read the log before either opens it; the second may come when the first is done, too."""

    async def both(path: Path, *, at_once: bool) -> None:
        script = BRIEF[answers_had(read(path)) :]
        async with ScriptedAPI(script).client() as client:
            runs = [
                Loop(model=MODEL, client=client, tools=tools(path.parent), **SETTINGS).resume(path) for _ in range(2)
            ]
            rounds = [runs] if at_once else [[run] for run in runs]
            ends = [end for one in rounds for end in await asyncio.gather(*one, return_exceptions=True)]
        refused = [end for end in ends if isinstance(end, BaseException)]
        assert [type(one) for one in refused] == [LogInUse]

    for count in cuts(whole):
        for at_once in (True, False):
            path = left_by(whole, count, tmp_path / f"{count}-{at_once}")
            asyncio.run(both(path, at_once=at_once))
            check(path, lines_of(whole)[:count])


def test_of_two_processes_one_goes_on(tmp_path: Path, whole: Path) -> None:
    possible = cuts(whole)
    for count in (possible[0], possible[len(possible) // 2]):
        folder = tmp_path / str(count)
        path = left_by(whole, count, folder)
        command = [sys.executable, "-c", OTHER, str(ROOT), str(folder), str(answers_had(read(path)))]
        pair = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for one in pair:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        for one in pair:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
        told = sorted(one.communicate()[0].strip() for one in pair)
        # The later one may find the run over before it opens the log, or even before it reads it.
        assert told[1] == "answered"
        assert told[0] in (LogInUse.__name__, CannotResume.__name__)
        check(path, lines_of(whole)[:count])
