"""Options of programs: which of them only read, and what is left when they are taken off."""

from collections.abc import Sequence
from typing import Final

import attrs

__all__ = ["Options", "long_names", "names"]

_DIGITS: Final = "0123456789"


def names(spaced: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(spaced.split())


def long_names(spaced: str) -> frozenset[str]:
    """The words of a text, as long options."""
    return frozenset(f"--{name}" for name in spaced.split())


@attrs.frozen(kw_only=True)
class Options:
    """The options of one program that have no effect but on what it prints.

    `flags` are the letters of short options without a value, `valued` of those with one; `long` the whole names of long
    options, with a value or without: no program's own abbreviations. `most` is how many operands it may get; None: any
    number.
    """

    flags: str = ""
    valued: str = ""
    long: frozenset[str] = frozenset()
    most: int | None = None

    def operands(self, words: Sequence[str]) -> list[str] | None:
        """What is left of the words without the options; None where one of these is not known, or too much is left."""
        left: list[str] = []
        waiting = list(reversed(words))
        while waiting:
            word = waiting.pop()
            if word == "--":
                left += reversed(waiting)
                break
            if word.startswith("--"):
                if word.partition("=")[0] not in self.long:
                    return None
            elif word.startswith("-") and word != "-":
                if not self._known(word[1:], waiting):
                    return None
            else:
                left.append(word)
        return left if self.most is None or len(left) <= self.most else None

    def _known(self, letters: str, waiting: list[str]) -> bool:
        """Whether a word of short options is known. Takes the value of the last one off `waiting`."""
        for position, letter in enumerate(letters):
            if letter in self.valued:
                if position < len(letters) - 1:
                    return True
                # Should the program not take it as a value after all, it still is no option.
                return bool(waiting) and _is_value(waiting.pop())
            if letter not in self.flags:
                return False
        return True


def _is_value(word: str) -> bool:
    return not word.startswith("-") or word[1:].isdigit()
