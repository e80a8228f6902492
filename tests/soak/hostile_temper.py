"""How bad everything is in one hostile run, and the words that all of it is told in."""

import random
from typing import Final

from attrs import frozen

KEY: Final = "sk-ant-api03-"


def key(letter: str) -> str:
    """A text that looks like a key of the API."""
    return KEY + letter * 95


class Boom(Exception):
    """What a hook, a judge of failures and a consumer raise here."""


@frozen(kw_only=True)
class Temper:
    """How likely each evil is, from 0 to 1: most runs have none of most of them, so that each gets far."""

    errors: float
    thinks: float
    odd_stops: float
    breaks: float
    has_tools: bool
    hooks_raise: float
    asks: float
    leaves: float
    sends: float

    @classmethod
    def drawn(cls, rnd: random.Random) -> "Temper":
        """One of them."""
        return cls(
            errors=rnd.choice([0, 0.1, 0.3]),
            thinks=rnd.choice([0, 0.5]),
            odd_stops=rnd.choice([0, 0.15, 0.4]),
            breaks=rnd.choice([0, 0.1, 0.3]),
            has_tools=rnd.random() < 0.9,
            hooks_raise=rnd.choice([0, 0, 0.03, 0.15]),
            asks=rnd.choice([0, 0, 0.1]),
            leaves=rnd.choice([0, 0.02, 0.08]),
            sends=rnd.choice([0, 0.05]),
        )
