"""The pytest plugin: `scripted_api` and `looplatch_log`, whose runs are verified when their test is over.

It is loaded with every pytest run in the environment, so it imports nothing but pytest until it is used.
"""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from looplatch.audit import AuditLog, Log
    from looplatch.testing.api import Item, ScriptedAPI
    from looplatch.testing.checks import HasLog
    from looplatch.testing.covering import Coverage

_COVERAGE = pytest.StashKey["Coverage | None"]()
_COUNTS = "looplatch_coverage"  # by a worker of pytest-xdist to its controller
DIAGRAM = "looplatch-coverage.svg"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The switches."""
    group = parser.getgroup("looplatch")
    group.addoption(
        "--looplatch-coverage",
        metavar="FILE",
        nargs="?",
        const=DIAGRAM,
        help=f"fail where a row of the table was walked by no run of `looplatch_log`, and draw which were ({DIAGRAM})",
    )
    named = "a state that they leave, EVENT, EVENT[guard], or as they are printed; may be given again"
    for switch, about in (("only", "look at these rows alone"), ("without", "leave out rows that no run can reach")):
        about = f"with --looplatch-coverage, {about}: ROWS is {named}"
        group.addoption(f"--looplatch-coverage-{switch}", metavar="ROWS", action="append", default=[], help=about)
    group.addoption("--looplatch-rewrite", action="store_true", help="write golden logs anew instead of comparing them")


def pytest_configure(config: pytest.Config) -> None:
    """Make ready to count, where that is asked for. Raises pytest.UsageError for what cannot be."""
    given: str | None = config.getoption("--looplatch-coverage")
    config.stash[_COVERAGE] = None
    only: list[str] = config.getoption("--looplatch-coverage-only") or []
    without: list[str] = config.getoption("--looplatch-coverage-without") or []
    if given is None:
        if only or without:
            switch = "only" if only else "without"
            raise pytest.UsageError(
                f"--looplatch-coverage-{switch}: no coverage is counted. Give --looplatch-coverage as well"
            )
        return
    from looplatch.states.errors import UsageError
    from looplatch.testing.covering import Coverage

    try:
        config.stash[_COVERAGE] = Coverage(Path(given), only, without)
    except UsageError as error:
        raise pytest.UsageError(f"--looplatch-coverage: {error}") from error


class LogKeeper:
    """The logs of one test. It is a path itself, that of the first log; `keeper("name")` gives further ones.

    A name with the suffix of a database (`keeper("run.sqlite")`) is kept as it is; a log in segments is one log.
    """

    def __init__(self, folder: Path, *, rewrite: bool) -> None:
        self._folder = folder
        self._rewrite = rewrite
        self._paths = [folder / "run.jsonl"]
        self._watched: list[AuditLog | Log | HasLog] = []

    def __fspath__(self) -> str:
        return os.fspath(self._paths[0])

    def __str__(self) -> str:
        return self.__fspath__()

    def __call__(self, name: str) -> Path:
        """The path of another log."""
        from looplatch.audit.places import SQLITE_SUFFIXES

        path = self._folder / (name if Path(name).suffix in SQLITE_SUFFIXES else f"{name}.jsonl")
        if path not in self._paths:
            self._paths.append(path)
        return path

    def watch(self, kept: "AuditLog | Log | HasLog") -> None:
        """Have a log that is elsewhere verified too: a run that logs to memory, or any log, as it is in the end."""
        self._watched.append(kept)

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
        """Every log that a run has written, those of sub-agents after that of the run that called them."""
        from looplatch.audit import Log, read
        from looplatch.audit.segments import segments_of

        for path in self._paths:
            if any(part.exists() for part in segments_of(path)):
                yield from _family(read(path))
        for kept in self._watched:
            log: Any = getattr(kept, "log", kept)
            yield from _family(log if isinstance(log, Log) else Log.of(log))


def _family(log: "Log") -> "Iterator[Log]":
    yield log
    for child in log.children.values():
        yield from _family(child)


@pytest.fixture
def looplatch_log(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[LogKeeper]:
    """Where the test's run logs to: `loop.run(..., log=looplatch_log)`. What is there in the end must be valid."""
    keeper = LogKeeper(tmp_path, rewrite=request.config.getoption("--looplatch-rewrite") is True)
    yield keeper
    from looplatch.testing.checks import assert_valid

    counted = request.config.stash[_COVERAGE]
    for log in keeper.written():
        assert_valid(log)
        if counted is not None:
            counted.add(log)


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


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker of pytest-xdist has counted; one that crashed has sent nothing."""
    counted: Coverage | None = node.config.stash[_COVERAGE]
    output: dict[str, Any] = getattr(node, "workeroutput", {})
    if counted is not None:
        counted.take(output.get(_COUNTS, ()))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Look at the rows that all logs walked together; a worker of pytest-xdist, which saw only some, sends its own."""
    counted = session.config.stash[_COVERAGE]
    if counted is None:
        return
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_COUNTS] = counted.dump()
        return
    counted.draw()
    if counted.missed and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Name the rows that no log walked."""
    counted = config.stash[_COVERAGE]
    if counted is None:
        return
    terminalreporter.section("looplatch coverage")
    for name in counted.missed:
        terminalreporter.line(f"never walked: {name}")
    rows, logs = len(counted.missed), len(counted.walks)
    terminalreporter.line(f"{rows} rows were never walked by the {logs} logs; drawn in {counted.file}")
