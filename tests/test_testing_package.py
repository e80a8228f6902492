"""The testing package loads nothing until it is used, and offers what it says."""

import subprocess
import sys
from pathlib import Path

import pytest

import looplatch.testing

HEAVY = ("hypothesis", "pytest", "anthropic", "httpx2", "h11")


def loaded_after(code: str) -> list[str]:
    """Which heavy packages a fresh interpreter has loaded after `code`."""
    report = f"{code}; import sys; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    return subprocess.run([sys.executable, "-Ic", report], check=True, capture_output=True, text=True).stdout.split()


def test_importing_it_loads_nothing_heavy() -> None:
    assert loaded_after("import looplatch.testing") == []


def test_a_script_and_its_api_load_nothing_heavy_either() -> None:
    use = "from looplatch.testing import FakeClock, ScriptedAPI, reply"
    assert loaded_after(f"{use}; FakeClock(); ScriptedAPI([reply('a')])") == []


def test_strategies_load_hypothesis_alone() -> None:
    assert loaded_after("from looplatch.testing import histories, scripts") == ["hypothesis"]


NO_HYPOTHESIS = "import sys; sys.modules['hypothesis'] = None"


def test_star_imports_do_not_need_hypothesis() -> None:
    use = f"{NO_HYPOTHESIS}\nfrom looplatch.testing import *\nScriptedAPI([reply('a')])"
    subprocess.run([sys.executable, "-Ic", use], check=True)


@pytest.mark.parametrize("name", ["TableWalk", "contexts", "events", "events_of", "histories", "scripts"])
def test_without_hypothesis_the_extra_is_named(name: str) -> None:
    use = f"{NO_HYPOTHESIS}\nfrom looplatch.testing import {name}"
    told = subprocess.run([sys.executable, "-Ic", use], check=False, capture_output=True, text=True).stderr
    assert told.splitlines()[-1].endswith(
        f"UsageError: looplatch.testing.{name}: it needs hypothesis, which is not installed. "
        "Install it: pip install 'looplatch[testing]'"
    )
    assert getattr(looplatch.testing, name).__module__.startswith(("looplatch.testing", "hypothesis"))
    assert name in dir(looplatch.testing)


@pytest.mark.parametrize("name", looplatch.testing.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(looplatch.testing, name).__module__.startswith("looplatch.testing") or name == "Answer"
    assert name in dir(looplatch.testing)


def test_another_name_is_an_attribute_error() -> None:
    missing = "nothing"
    with pytest.raises(AttributeError, match=r"module 'looplatch.testing' has no attribute 'nothing'"):
        getattr(looplatch.testing, missing)


def test_it_shares_no_code_with_what_it_tests() -> None:
    allowed = ("looplatch.testing", "looplatch.states.errors", "looplatch.states.brief")
    for file in (Path(__file__).parent.parent / "engine/testing").glob("*.py"):
        if file.name in (
            "conformance.py",
            "checks.py",
            "covering.py",
            "plugin.py",
            "walks.py",
        ):  # tests of logs, and of tables
            continue
        if file.name in ("recorder.py", "redacting.py"):  # what they write is not compared with what a log keeps
            continue
        for line in file.read_text("utf-8").splitlines():
            words = line.split()
            if words[:1] in (["from"], ["import"]) and words[1].startswith("looplatch"):
                assert words[1].startswith(allowed), f"{file.name}: {line}"
