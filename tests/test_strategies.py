"""Each strategy has a module that names it, and whose guards are those of the rows that carry it."""

import importlib
import pkgutil
from types import ModuleType

import pytest

from looplatch.recovery import strategies as package
from looplatch.recovery.failure import Failure
from looplatch.recovery.strategies import max_output_tokens_escalate, request_retry
from looplatch.recovery.strategies.max_output_tokens_escalate import asked_too_much, escalated_limit
from looplatch.recovery.strategies.stop_hook_blocking import hook_prompt
from looplatch.recovery.strategies.token_budget_continuation import budget_prompt
from looplatch.states.reasons import Continue, Strategy
from looplatch.states.table import TABLE

MODULES = {
    module.name: importlib.import_module(f"{package.__name__}.{module.name}")
    for module in pkgutil.iter_modules(package.__path__)
}
OF_STRATEGIES = {name: module for name, module in MODULES.items() if name != "request_retry"}


def test_there_is_one_module_a_strategy_and_one_for_the_retry_of_a_request() -> None:
    assert set(OF_STRATEGIES) == {str(strategy) for strategy in Strategy}
    assert set(MODULES) - set(OF_STRATEGIES) == {"request_retry"}


@pytest.mark.parametrize(("name", "module"), OF_STRATEGIES.items())
def test_a_module_names_its_strategy(name: str, module: ModuleType) -> None:
    assert str(module.STRATEGY) == name
    assert (module.__doc__ or "").startswith(f"{name}: ")
    assert "Guard:" in (module.__doc__ or "")
    assert "Action:" in (module.__doc__ or "")


@pytest.mark.parametrize(("name", "module"), OF_STRATEGIES.items())
def test_its_guards_are_those_of_the_rows_that_carry_it(name: str, module: ModuleType) -> None:
    """A guard that leads to such a row, without carrying the strategy itself, is named before it."""
    carrying = [row.guard for row in TABLE if row.strategy is not None and str(row.strategy) == name]
    guards = list(module.GUARDS)
    assert guards[-len(carrying) :] == carrying
    leading = {row.guard.name for row in TABLE if row.strategy is None}
    assert {guard.name for guard in guards[: -len(carrying)]} <= leading
    assert all(guard.name in (module.__doc__ or "") for guard in guards)


def test_the_retry_of_a_request_is_no_strategy_since_the_loop_does_not_go_round() -> None:
    [guard] = request_retry.GUARDS
    [row] = [row for row in TABLE if row.guard is guard]
    assert (row.strategy, row.reason, row.target) == (None, None, None)


def test_six_reasons_and_six_strategies_of_which_five_have_one_name() -> None:
    reasons, names = {str(one) for one in Continue}, {str(one) for one in Strategy}
    assert len(reasons) == len(names) == 6
    assert reasons - names == {"next_turn"}
    assert names - reasons == {"max_output_tokens_escalate"}
    by_strategy = {str(row.strategy): str(row.reason) for row in TABLE if row.strategy is not None}
    assert by_strategy == {name: name for name in names & reasons} | {
        "max_output_tokens_escalate": "max_output_tokens_recovery"
    }


# --- escalation


@pytest.mark.parametrize(
    ("asked", "output", "room", "limit"),
    [
        (8_000, None, None, 64_000),
        (8_000, 64_000, 190_000, 64_000),
        (8_000, 32_000, None, 32_000),
        (8_000, 128_000, 30_000, 30_000),
        (8_000, 8_000, None, 0),
        (8_000, None, 8_000, 0),
        (8_000, None, -5, 0),
        (64_000, 128_000, None, 0),
    ],
)
def test_a_higher_limit_is_bounded_by_the_model_and_by_the_window(
    asked: int, output: int | None, room: int | None, limit: int
) -> None:
    assert escalated_limit(asked, output, room) == limit


def refused(message: str) -> Failure:
    return Failure(type="invalid_request_error", status=400, message=message)


@pytest.mark.parametrize(
    ("message", "max_tokens", "too_much"),
    [
        ("input length and `max_tokens` exceed context limit: 5000 + 64000 > 20000", 64_000, True),
        ("input length and `max_tokens` exceed context limit: 12000 + 64000 > 20000", 64_000, True),
        ("input length and `max_tokens` exceed context limit: 12001 + 64000 > 20000", 64_000, False),
        ("input length and `max_tokens` exceed context limit: 5000 + 8000 > 10000", 8_000, False),
        ("prompt is too long: 5000 tokens > 20000 maximum", 64_000, True),
        ("prompt is too long", 64_000, False),
    ],
)
def test_only_an_escalated_limit_can_have_been_too_much(message: str, max_tokens: int, too_much: bool) -> None:
    """An ordinary answer has 8,000 here: where that fits beside the prompt, nothing has to be made shorter."""
    assert asked_too_much(refused(message), max_tokens, 8_000) is too_much


def test_the_limit_of_an_escalation_is_what_the_design_says() -> None:
    assert max_output_tokens_escalate.ESCALATED_TOKENS == 64_000


# --- what the model is told


def test_a_hook_without_words_still_says_something() -> None:
    assert hook_prompt("Run the tests.") == "Run the tests."
    assert hook_prompt(" \n").strip()


def test_the_budget_is_told_in_tokens() -> None:
    assert "1,234 of the 50,000 tokens" in budget_prompt(1_234, 50_000)
