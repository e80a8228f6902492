"""Runs behaviour tests against each mutant of the guards and the decisions, and tells which mutants none of them sees.

`make mutate` runs it; `python tests/mutation NAME` those that have NAME in their name alone. Exit code 1: one survived.
Only tests that say what a run does are asked: none of the guards as such, of the table, of its drawings, or of which
rows are walked. Which tests call which guard is measured first. Each mutant is a process that has all tests loaded, and
begins with the fastest of those that call what was changed.
"""

import ast
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from attrs import define, field

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import MODULES, Mutant, codes, function_named, functions_of, mutants, tree_of

ROOT: Final = Path(__file__).resolve().parent.parent.parent
BEHAVIOUR: Final = (
    "boundaries", "run_ends", "recovery_caps", "limits", "cases", "cases_all", "cases_compression", "cases_resumed",
    "stories", "run", "run_faults", "recovery_strategies", "model_failures", "compressor", "api_compaction", "answer",
    "pausing", "suspension", "resume", "resume_compression", "closing", "hooks", "driver", "execution",
)  # fmt: skip
_SEEN, _UNSEEN, _RAISED = range(3)
SLOW_S: Final = 2.0  # a test that takes longer is left out
HANGS_S: Final = 30  # a test that takes this long has seen a mutant, which goes round for ever


@define
class Watch:
    """Notes whether a test has failed, and how long each took."""

    failed: bool = False
    took: float = 0.0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed
        self.took += report.duration


@define
class Mutation:
    """The plugin: instead of running the tests, runs them for each mutant."""

    wanted: str
    survivors: list[str] = field(factory=list[str])
    killed: int = 0
    equal: int = 0
    calls: dict[str, list[str]] = field(factory=dict[str, list[str]])  # by test
    times: dict[str, float] = field(factory=dict[str, float])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        warm_up()
        items = {item.nodeid: item for item in session.items}
        began = time.monotonic()
        self.measure(list(items.values()))
        calling = len(self.calls)
        print(f"{calling} of {len(items)} tests call a guard ({time.monotonic() - began:.0f} s)", flush=True)
        if forked(partial(sees, [items[name] for name in self.calls], None)):
            raise AssertionError("a test fails without a mutant, when all run in one process")
        for mutant in mutants():
            if self.wanted not in mutant.description:
                continue
            if mutant.description in EQUIVALENT:
                self.equal += 1
                continue
            asked = [name for name, called in self.calls.items() if mutant.names & {*called}]
            asked.sort(key=lambda name: ("boundaries" not in name, self.times[name]))
            if forked(partial(sees, [items[name] for name in asked], mutant)):
                self.killed += 1
            else:
                self.survivors.append(f"{mutant.description} (line {mutant.line}; {len(asked)} tests)")
                print(f"survived: {self.survivors[-1]}", flush=True)
        print(f"{self.killed} mutants killed, {len(self.survivors)} survived, {self.equal} are no change", end=" ")
        print(f"({time.monotonic() - began:.0f} s)", flush=True)
        return True

    def measure(self, items: list[pytest.Item]) -> None:
        """Run every test once as it is, and note what it calls."""
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.close(reader)
            silence()
            seen: set[str] = set()
            instrument(seen)
            with os.fdopen(writer, "w") as out:
                for item in items:
                    seen.clear()
                    watch = run(item)
                    if watch.failed:
                        out.write(json.dumps([item.nodeid, None, 0]) + "\n")
                    else:
                        out.write(json.dumps([item.nodeid, sorted(seen), watch.took]) + "\n")
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as told:
            for line in told:
                name, called, took = json.loads(line)
                if called is None:
                    print(f"fails as it is, and is left out: {name}", flush=True)
                elif called and took < SLOW_S:
                    self.calls[name], self.times[name] = called, took
        os.wait()


def warm_up() -> None:
    """Load what a first run loads, once for all."""
    from looplatch.testing import reply
    from tests.playing import play

    play([reply("Done.")])


def instrument(seen: set[str]) -> None:
    """Have each function note that it is called."""
    for module in MODULES:
        tree = tree_of(module)
        for name, node in functions_of(tree):
            node.body.insert(0, ast.parse(f"__called__({name!r})").body[0])
        made: dict[str, Any] = {"__name__": module.__name__}
        exec(compile(ast.fix_missing_locations(tree), str(module.__file__), "exec"), made)
        setattr(module, "__called__", seen.add)  # noqa: B010 - no name of the module's own
        for name, code in codes(made).items():
            function_named(module, name).__code__ = code


def run(item: pytest.Item) -> Watch:
    """Run a test, alone."""
    watch = Watch()
    manager = item.config.pluginmanager
    manager.register(watch)
    try:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    finally:
        manager.unregister(watch)
    return watch


def sees(items: list[pytest.Item], mutant: Mutant | None) -> bool:
    """Whether one of the tests fails with the mutant in the guards' place."""
    if mutant is not None:
        mutant.install()
    for item in items:
        signal.alarm(HANGS_S)
        if run(item).failed:
            return True
    return False


def forked(act: Callable[[], bool]) -> bool:
    """What `act` returns in a process of its own; True where it hangs there. Raises RuntimeError where it raises."""
    child = os.fork()
    if child == 0:
        silence()
        code = _RAISED
        try:
            code = _SEEN if act() else _UNSEEN
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (_SEEN, _UNSEEN, -signal.SIGALRM):
        raise RuntimeError(f"the process of a mutant has ended with {code}")
    return code != _UNSEEN


def silence() -> None:
    """What tests print is of no interest."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def files() -> Iterator[str]:
    """The tests that are asked."""
    for name in BEHAVIOUR:
        yield str(ROOT / "tests" / f"test_{name}.py")


def main() -> int:
    """Do it, and say how it went."""
    mutation = Mutation(sys.argv[1] if len(sys.argv) > 1 else "")
    with TemporaryDirectory() as folder:
        switches = ["-s", "-W", "ignore::pytest.PytestAssertRewriteWarning", f"--basetemp={folder}/tests"]
        switches += ["-p", "no:cacheprovider", "-p", "no:terminal", f"--rootdir={ROOT}", "-c", f"{ROOT}/pyproject.toml"]
        code = pytest.main([*switches, *files()], [mutation])
    if not mutation.calls:
        print(f"the tests could not be collected ({code!r})")
        return 2
    left = EQUIVALENT.keys() - {mutant.description for mutant in mutants()}
    for name in sorted(left):
        print(f"listed as no change, and is no mutant: {name}")
    return 1 if mutation.survivors or left else 0


if __name__ == "__main__":
    sys.exit(main())
