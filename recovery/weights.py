"""What messages weigh, in tokens, for planning: no tokenizer is asked."""

import json
import re
from collections.abc import Iterable
from typing import Any, Final

import orjson

BYTES_PER_TOKEN: Final = 4
MEDIA_TOKENS: Final = 1_600  # of a picture or a document: its base64 text says nothing of that

Message = dict[str, Any]
_MARK: Final = b'"base64"'
_BASE64: Final = re.compile(rb'"data":"[A-Za-z0-9+/=]{512,}"')


def weigh(message: Message) -> int:
    """The tokens of a message, estimated: its JSON text at four bytes a token, each picture or document at 1,600."""
    try:
        text = orjson.dumps(message)
    except TypeError:
        text = encoded(message)
    return weigh_json(text) if text.find(_MARK) >= 0 else len(text) // BYTES_PER_TOKEN  # `in`: see `encoding.encode`


def weigh_all(messages: Iterable[Message]) -> int:
    """The tokens of all messages together."""
    return sum(map(weigh, messages))


def weigh_json(text: bytes) -> int:
    """The tokens of encoded JSON, estimated as `weigh` does."""
    weight = len(text)
    if text.find(_MARK) >= 0:
        for data in _BASE64.finditer(text):
            weight += MEDIA_TOKENS * BYTES_PER_TOKEN - len(data.group())
    return weight // BYTES_PER_TOKEN


def weigh_text(text: str) -> int:
    """The tokens of a text, estimated by its bytes in UTF-8."""
    return size_of(text) // BYTES_PER_TOKEN


def size_of(text: str) -> int:
    """The bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def encoded(value: object) -> bytes:
    """The JSON of a value, keys in order: the same for equal values. To weigh and compare, not to be sent."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a lone surrogate, or a number beyond 64 bits
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
