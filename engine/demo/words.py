"""The words of texts that stand out: found in one place only, and spelt like no other."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

_WORD: Final = re.compile(r"\w[\w'-]{2,39}")


def words_of(text: str) -> Iterable[str]:
    """The words of 3 to 40 characters, in order."""
    return _WORD.findall(text)


def rare_words(texts: Mapping[str, str], most: int) -> dict[str, list[str]]:
    """For each text its words that stand in no other text, once each; at most `most`, the oddest first."""
    own = {name: list(dict.fromkeys(words_of(text))) for name, text in texts.items()}
    held_by = Counter(word.lower() for words in own.values() for word in dict.fromkeys(map(str.lower, words)))
    triples = Counter(triple for word in held_by for triple in _triples(word))  # how many words have it

    def oddity(word: str) -> float:
        found = _triples(word.lower())
        return -sum(math.log(triples[triple]) for triple in found) / len(found)

    return {
        name: sorted((word for word in words if held_by[word.lower()] == 1), key=oddity, reverse=True)[:most]
        for name, words in own.items()
    }


def _triples(word: str) -> set[str]:
    framed = f" {word} "
    return {framed[at : at + 3] for at in range(len(framed) - 2)}
