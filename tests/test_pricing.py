"""What calls cost: by the caller's own prices, by the kept table, and what a limit in dollars needs of them."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from genai_prices import Usage, calc_price
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from looplatch import Limits, Loop, Price, UsageError
from looplatch.model.spending import Held, cache_miss, held, spending
from looplatch.pricing import cost_usd, pricer
from looplatch.testing import ScriptedAPI, reply, tool_use
from tests.playing import MODEL, echo, play

MILLION = 1_000_000
PRICE = Price(input=3, output=15)


def tokens(**given: int) -> dict[str, int]:
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    return {name: given.get(name.removesuffix("_tokens"), 0) for name in names}


@pytest.fixture
def no_table() -> Iterator[None]:
    """As if looplatch[prices] were not installed."""
    known = sys.modules.get("genai_prices")
    sys.modules["genai_prices"] = None  # type: ignore[assignment]  # how Python marks what cannot be imported
    yield
    del sys.modules["genai_prices"]
    if known is not None:
        sys.modules["genai_prices"] = known


# --- the caller's own prices


@pytest.mark.parametrize(
    ("price", "spent", "micro_usd"),
    [
        (PRICE, tokens(input=1_000), 3_000),
        (PRICE, tokens(output=1_000), 15_000),
        (PRICE, tokens(cache_read=1_000), 300),
        (PRICE, tokens(cache_write=1_000), 3_750),
        (Price(input=3, output=15, cache_read=1, cache_write=2), tokens(cache_read=1_000, cache_write=1_000), 3_000),
        (PRICE, tokens(input=1, output=2, cache_read=30, cache_write=4), 3 + 30 + 9 + 15),
        (Price(input=0, output=0), tokens(input=MILLION, output=MILLION), 0),
    ],
)
def test_a_price_is_for_a_million_tokens_of_a_kind(price: Price, spent: dict[str, int], micro_usd: int) -> None:
    assert price.micro_usd(spent) == micro_usd


@pytest.mark.parametrize("wrong", [-1, 1e9, float("nan")])
def test_a_price_that_is_none_is_refused_by_name(wrong: float) -> None:
    with pytest.raises(UsageError, match=r"Price\.cache_write"):
        Price(input=1, output=1, cache_write=wrong)


def test_the_callers_price_holds_for_every_model() -> None:
    priced = pricer(PRICE, models=["nobody-knows-it"], needed=True)
    assert priced is not None
    assert priced("nobody-knows-it", tokens(input=2_000)) == 6_000


# --- the table


@pytest.mark.parametrize(
    ("spent", "micro_usd"),
    [
        (tokens(input=100_000), 300_000),
        (tokens(output=100_000), 1_500_000),
        (tokens(cache_read=100_000), 30_000),
        (tokens(cache_write=100_000), 375_000),
        (tokens(input=10, output=20, cache_read=1_000, cache_write=100), 30 + 300 + 300 + 375),
    ],
)
def test_the_table_knows_what_a_model_costs(spent: dict[str, int], micro_usd: int) -> None:
    priced = pricer(None, models=[MODEL], needed=False)
    assert priced is not None
    assert priced(MODEL, spent) == micro_usd


COUNTS = st.integers(0, 10**9)


@pytest.mark.parametrize("model", [info.id for info in get_snapshot().find_provider(None, "anthropic", None).models])
@settings(max_examples=10, deadline=None)
@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_each_price_of_the_table_is_the_packages_own(model: str, new: int, out: int, read: int, write: int) -> None:
    """Flat prices, tiers, prices of a date, and those that are not told for every kind."""
    usage = Usage(input_tokens=new + read + write, output_tokens=out, cache_read_tokens=read, cache_write_tokens=write)
    usd = calc_price(usage, model, provider_id="anthropic").total_price
    priced = pricer(None, models=[model], needed=True)
    assert priced is not None
    spent = tokens(input=new, output=out, cache_read=read, cache_write=write)
    assert priced(model, spent) == round(usd * MILLION)


def test_a_model_that_the_table_does_not_know_has_no_price() -> None:
    priced = pricer(None, models=["nobody-knows-it"], needed=False)
    assert priced is not None
    assert priced("nobody-knows-it", tokens(input=MILLION)) is None
    assert cost_usd(priced, "nobody-knows-it", 0) is None
    assert cost_usd(priced, MODEL, 1_500_000) == 1.5


@pytest.mark.parametrize("options", [{"model": "m-1"}, {"model": MODEL, "fallback_model": "m-1"}])
def test_a_limit_in_dollars_needs_the_price_of_each_model(options: dict[str, Any]) -> None:
    """It would never be met otherwise."""
    with pytest.raises(UsageError, match=r"max_cost_usd: the price table does not know m-1\. Give Loop\(price="):
        Loop(client=ScriptedAPI([]).client(), limits=Limits(max_cost_usd=1.0), **options)


def test_a_limit_in_dollars_needs_a_table_where_no_price_is_given(no_table: None) -> None:
    with pytest.raises(UsageError, match=r"Install looplatch\[prices\], or give Loop\(price="):
        pricer(None, models=[MODEL], needed=True)
    assert pricer(None, models=[MODEL], needed=False) is None
    assert pricer(PRICE, models=[MODEL], needed=True) is not None


# --- in a run


def test_the_limit_in_dollars_ends_a_run_that_has_reached_it() -> None:
    """A call of 1,000 tokens of input at 3 dollars a million and 600 of output at 15 is 12,000 millionths."""
    usage = {"input_tokens": 1_000, "output_tokens": 600}
    script = [reply(tool_use(f"t{n}", "read", {"n": n}), usage=usage) for n in range(2)]
    told = play(script, tools=[echo()], price=PRICE, limits=Limits(max_cost_usd=0.024))
    assert told.result.terminal == "budget_spent"
    assert told.result.subtype == "error_max_budget_usd"
    assert told.result.total_cost_usd == 0.024
    told = play([*script, reply("Done.", usage=usage)], tools=[echo()], price=PRICE, limits=Limits(max_cost_usd=0.025))
    assert (told.result.terminal, told.result.total_cost_usd) == ("answered", 0.036)


def test_what_a_call_cost_is_in_its_record() -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 40, "output_tokens": 5}
    told = play([reply("Done.", usage=usage)], price=PRICE)
    [effect] = told.log.effects
    assert effect.end is not None
    assert effect.end["usage"] == {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_read_tokens": 200,
        "cache_write_tokens": 40,
        "cost_micro_usd": 30 + 75 + 60 + 150,
    }


def test_a_run_whose_price_is_not_known_has_no_cost() -> None:
    told = play([reply("Done.")], model="nobody-knows-it")
    assert told.result.total_cost_usd is None


# --- what the API says was spent


def test_a_compaction_within_a_call_is_added_to_what_it_spent() -> None:
    """The API's totals leave it out."""
    usage = {
        "input_tokens": 100,
        "output_tokens": 10,
        "iterations": [
            {"type": "compaction", "input_tokens": 1_000, "output_tokens": 50, "cache_read_input_tokens": 7},
            {"type": "message", "input_tokens": 100, "output_tokens": 10},
        ],
    }
    spent = spending(usage, MODEL)
    assert (spent["input_tokens"], spent["output_tokens"], spent["cache_read_tokens"]) == (1_100, 60, 7)


def test_the_conversation_holds_what_the_last_round_read_and_wrote() -> None:
    rounds = [{"type": "message", "input_tokens": n, "output_tokens": 5} for n in (100, 200)]
    assert held({"input_tokens": 300, "output_tokens": 10, "iterations": rounds}, served=True) == Held(200, 5)
    plain = {"input_tokens": 1, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 300, "output_tokens": 4}
    assert held(plain, served=False) == Held(321, 4)
    assert held(plain, served=True) is None, "the sum of rounds is no size of the conversation"
    assert held({}, served=False) is None


@pytest.mark.parametrize("odd", [None, {}, [], "x", {"cache_miss_reason": None}, {"cache_miss_reason": "x"}])
def test_no_reason_for_a_cache_miss_is_none(odd: object) -> None:
    assert cache_miss(odd) is None


def test_the_reason_for_a_cache_miss_is_named_with_its_tokens() -> None:
    told = {"cache_miss_reason": {"type": "messages_changed", "cache_missed_input_tokens": 4_000}}
    assert cache_miss(told) == {"reason": "messages_changed", "tokens": 4_000}
    assert cache_miss({"cache_miss_reason": {"type": "unavailable"}}) == {"reason": "unavailable", "tokens": None}
