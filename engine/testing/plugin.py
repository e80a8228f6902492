"""The pytest plugin: `scripted_api` and `looplatch_log`, whose runs are verified when their test is over.

It is loaded with every pytest run in the environment, so it imports nothing but pytest until it is used.
"""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from looplatch.audit import Log
    from looplatch.testing.api import Item, ScriptedAPI

_LOGS = pytest.StashKey["list[Log]"]()
DIAGRAM = "looplatch-coverage.svg"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The two switches."""
    group = parser.getgroup("looplatch")
    group.addoption(
        "--looplatch-coverage",
        metavar="FILE",
        nargs="?",
        const=DIAGRAM,
        help=f"fail where a row of the table was walked by no run of `looplatch_log`, and draw which were ({DIAGRAM})",
    )
    group.addoption("--looplatch-rewrite", action="store_true", help="write golden logs anew instead of comparing them")


class LogKeeper:
    """The logs of one test. It is a path itself, that of the first log; `keeper("name")` gives further ones."""

    def __init__(self, folder: Path, *, rewrite: bool) -> None:
        self._folder = folder
        self._rewrite = rewrite
        self._paths = [folder / "run.jsonl"]

    def __fspath__(self) -> str:
        return os.fspath(self._paths[0])

    def __call__(self, name: str) -> Path:
        """The path of another log."""
        path = self._folder / f"{name}.jsonl"
        if path not in self._paths:
            self._paths.append(path)
        return path

    def read(self) -> "Log":
        """The first log, as it is now."""
        from looplatch.audit import read

        return read(self._paths[0])

    def assert_matches(self, golden: str | os.PathLike[str]) -> None:
        """Raise AssertionError unless the first log tells the same as the file `golden`.

        With --looplatch-rewrite the file is written instead.
        """
        from looplatch.testing.checks import assert_matches

        assert_matches(self._paths[0], golden, rewrite=self._rewrite)

    def written(self) -> "Iterator[Log]":
        """Every log that a run has written."""
        from looplatch.audit import read

        return (read(path) for path in self._paths if path.exists())


@pytest.fixture
def looplatch_log(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[LogKeeper]:
    """Where the test's run logs to: `loop.run(..., log=looplatch_log)`. What is there in the end must be valid."""
    keeper = LogKeeper(tmp_path, rewrite=request.config.getoption("--looplatch-rewrite") is True)
    yield keeper
    from looplatch.testing.checks import assert_valid

    for log in keeper.written():
        _logs(request.config).append(log)
        assert_valid(log)


@pytest.fixture
def scripted_api() -> "Generator[Callable[..., ScriptedAPI]]":
    """Makes scripted APIs: `scripted_api([reply("Hi.")])`. Each must have been asked for all of its script."""
    made: list[ScriptedAPI] = []

    def make(script: "Sequence[Item]", **options: Any) -> "ScriptedAPI":
        from looplatch.testing.api import ScriptedAPI

        made.append(ScriptedAPI(script, **options))
        return made[-1]

    yield make
    for api in made:
        api.check_played()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Look at the rows that all logs walked together."""
    given: str | None = session.config.getoption("--looplatch-coverage")
    if given is None:
        return
    from looplatch.diagrams import coverage

    logs = _logs(session.config)
    wanted: Any = {"txt": "text", "mmd": "mermaid"}.get(suffix := Path(given).suffix[1:], suffix)
    drawn = cast("str | bytes", coverage(logs, format=wanted))
    Path(given).write_bytes(drawn.encode() if isinstance(drawn, str) else drawn)
    if _unwalked(logs) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Name the rows that no log walked."""
    given: str | None = config.getoption("--looplatch-coverage")
    if given is None:
        return
    logs = _logs(config)
    left = _unwalked(logs)
    terminalreporter.section("looplatch coverage")
    for name in left:
        terminalreporter.line(f"never walked: {name}")
    terminalreporter.line(f"{len(left)} rows were never walked by the {len(logs)} logs; drawn in {given}")


def _logs(config: pytest.Config) -> "list[Log]":
    """The logs of the tests so far."""
    logs: list[Log] = []
    return config.stash.setdefault(_LOGS, logs)


def _unwalked(logs: "Sequence[Log]") -> list[str]:
    """The rows of the table that no log walked, by name."""
    from looplatch.states.table import TABLE

    walked = {
        (move.source, move.event, name)
        for log in logs
        for move in log.transitions
        for name, held in move["guards"]
        if held
    }
    return [
        row.name
        for row in TABLE
        if not any((str(source), row.event.__name__, row.guard.name) in walked for source in row.sources)
    ]
