"""The names that DESIGN promises are where a user looks for them, and each package says what it offers."""

import importlib
import importlib.metadata
import inspect
import subprocess
import sys

import pytest

import looplatch
from looplatch.states.table import TABLE

PACKAGES = (
    "looplatch",
    "looplatch.states",
    "looplatch.diagrams",
    "looplatch.testing",
    "looplatch.tools",
    "looplatch.audit",
)
VOCABULARY = {  # the classes of messages and blocks do not count towards the limit
    *("AssistantMessage", "ResultMessage", "StreamEvent", "SystemMessage", "ToolMessage", "TransitionMessage"),
    *("UserMessage", "TextBlock", "ThinkingBlock", "ToolResultBlock", "ToolUseBlock"),
}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_that_a_package_offers_is_there(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__all__ == sorted(module.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name in dir(module)


def test_the_root_offers_at_most_thirty_names_besides_its_vocabulary() -> None:
    assert set(looplatch.__all__) > VOCABULARY
    assert len(set(looplatch.__all__) - VOCABULARY) <= 30


def test_tools_that_are_ready_to_use_are_loaded_when_they_are_named() -> None:
    code = "import sys, looplatch.tools; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-Ic", code], capture_output=True, text=True, check=True).stdout.split()
    assert "looplatch.tools" in loaded
    for heavy in ("anthropic", "mcp", "httpx", "httpx2", "looplatch.tools.agent", "looplatch.tools.web"):
        assert heavy not in loaded


MODULES = (
    *("analysis", "audit", "blocks", "diagrams", "export", "hooks", "messages", "playback", "recovery", "states"),
    *("testing", "tools", "export.live"),
)


def fresh(code: str) -> str:
    """What a fresh interpreter prints for `code`."""
    return subprocess.run([sys.executable, "-Ic", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("module", MODULES)
def test_public_modules_are_there_without_being_imported(module: str) -> None:
    home, _, name = f"looplatch.{module}".rpartition(".")
    code = f"import looplatch; named = {name!r} in dir({home}); print(looplatch.{module}.__name__, named)"
    assert fresh(code) == f"looplatch.{module} True"


def test_public_modules_load_nothing_that_only_some_of_their_names_need() -> None:
    used = "; ".join(f"looplatch.{module}" for module in MODULES)
    heavy = ("anthropic", "hypothesis", "pytest", "mcp", "httpx", "httpx2", "opentelemetry", "transitions")
    code = f"import sys, looplatch; {used}; print(*(name for name in {heavy!r} if name in sys.modules))"
    assert fresh(code) == ""


@pytest.mark.parametrize("module", ["looplatch", "looplatch.export", "looplatch.tools"])
def test_another_name_is_an_attribute_error(module: str) -> None:
    with pytest.raises(AttributeError, match=rf"module '{module}' has no attribute 'nothing'"):
        _ = importlib.import_module(module).nothing


def test_a_table_can_be_taken_apart_with_the_names_of_its_package() -> None:
    from looplatch.states import TABLE, WORKING, Continue, State, check_table

    check_table(TABLE)
    entering = {row.reason for row in TABLE.rows if row.target is State.PREPARE and row.reason is not None}
    assert entering == set(Continue)
    assert [state.value for state in WORKING] == ["prepare", "stream", "decide", "orchestrate", "recover"]


def test_the_version_is_that_of_the_package() -> None:
    assert looplatch.__version__ == importlib.metadata.version("looplatch")
    assert "__version__" in dir(looplatch)


@pytest.mark.parametrize("name", ["verify", "replay", "explain"])
def test_help_tells_of_a_table_in_a_few_words(name: str) -> None:
    signature = str(inspect.signature(getattr(looplatch, name)))
    assert len(signature) < 1_000
    assert repr(TABLE) == f"Table({len(TABLE)} rows, {TABLE.fingerprint[:8]}…)"
