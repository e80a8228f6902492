"""What a model call costs: from the caller's own prices, or from the price table of a kept package."""

import importlib.util
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final

import attrs

from looplatch.model.spending import Pricer
from looplatch.states.brief import brief
from looplatch.states.context import TOTALS
from looplatch.states.errors import UsageError

_NOTHING: Final = dict.fromkeys(TOTALS, 0)
_KINDS: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


@attrs.frozen(kw_only=True)
class Price:
    """US dollars for a million tokens, by kind. Raises UsageError for a price below 0.

    input: tokens that no cache had. output: tokens of the answer, thinking included. cache_read, cache_write: tokens
    read from and written to the prompt cache; by default a tenth of, and 1.25 times, the price of input.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    def __attrs_post_init__(self) -> None:
        for name, value in attrs.asdict(self, recurse=False).items():
            if value is None and name.startswith("cache_"):
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
                raise UsageError(
                    f"Price.{name}", f"{brief(value)} is not allowed", "Give US dollars for a million tokens"
                )

    def micro_usd(self, tokens: Mapping[str, int]) -> int:
        """The cost of a call, in millionths of a US dollar."""
        read = self.input * 0.1 if self.cache_read is None else self.cache_read
        write = self.input * 1.25 if self.cache_write is None else self.cache_write
        return round(
            tokens["input_tokens"] * self.input
            + tokens["output_tokens"] * self.output
            + tokens["cache_read_tokens"] * read
            + tokens["cache_write_tokens"] * write
        )


def pricer(price: Price | None, *, models: Iterable[str], needed: bool) -> Pricer | None:
    """How the calls of a loop are priced: by `price`, else by the table of genai-prices if that is installed.

    `needed` says that a run has a limit in dollars: then UsageError is raised where the price of one of the `models`
    that it may ask is not known, since the limit would never be met.
    """
    if price is not None:
        return lambda _model, tokens: price.micro_usd(tokens)
    if importlib.util.find_spec("genai_prices") is None:
        if needed:
            raise UsageError(
                "Limits.max_cost_usd",
                "there is no price table to hold the cost against",
                "Install looplatch[prices], or give Loop(price=Price(...))",
            )
        return None
    if needed and (unknown := [model for model in models if _by_table(model, _NOTHING) is None]):
        raise UsageError(
            "Limits.max_cost_usd",
            f"the price table does not know {', '.join(unknown)}",
            "Give Loop(price=Price(...))",
        )
    return _by_table


def cost_usd(pricer: Pricer | None, model: str, micro_usd: int) -> float | None:
    """What a run has cost, in US dollars; None where the price of its model is not known."""
    return None if pricer is None or pricer(model, _NOTHING) is None else micro_usd / 1_000_000


def _by_table(model: str, tokens: Mapping[str, int]) -> int | None:
    """The cost by the table of genai-prices; None for a model that it does not know."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, known = get_snapshot().find_provider_model(model, None, "anthropic", None)
    except LookupError:
        return None
    prices = known.prices
    if isinstance(prices, list):  # they depend on the day
        return _calculated(model, tokens)
    rates = (prices.input_mtok, prices.output_mtok, prices.cache_read_mtok, prices.cache_write_mtok)
    # Flat prices are multiplied here: the package's own way takes hundreds of microseconds, which is a turn's worth.
    cost = Decimal(0)
    for name, rate in zip(_KINDS, rates, strict=True):
        if not isinstance(rate, Decimal):  # it depends on how much there is, or is not told
            return _calculated(model, tokens)
        if count := tokens[name]:
            cost += count * rate
    return round(cost)


def _calculated(model: str, tokens: Mapping[str, int]) -> int:
    from genai_prices import Usage, calc_price

    whole = tokens["input_tokens"] + tokens["cache_read_tokens"] + tokens["cache_write_tokens"]
    usage = Usage(
        input_tokens=whole,
        output_tokens=tokens["output_tokens"],
        cache_read_tokens=tokens["cache_read_tokens"],
        cache_write_tokens=tokens["cache_write_tokens"],
    )
    return round(calc_price(usage, model_ref=model, provider_id="anthropic").total_price * 1_000_000)
