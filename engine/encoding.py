"""JSON, strictly and fast: the one place where looplatch turns values into JSON and back.

`orjson` does the work. What it does differently from the JSON that the Messages API speaks is mended here: it writes
NaN as null, refuses lone surrogates both ways, and reads integers beyond 64 bits as floats.
"""

import contextlib
import enum
import json
import math
import re
import uuid
from collections.abc import Sequence
from typing import Any, Final, NoReturn, TypeVar, cast

import orjson

from looplatch.states.brief import brief
from looplatch.states.errors import LooplatchError

# Dataclasses and datetimes are no JSON: orjson would write them, the standard library would not.
_OPTIONS: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME

# orjson reads an integer exactly up to 64 bits, which have at least 19 digits. Every run of 19 digits shows in each
# sixth character as a run of three, so the cheap look at a sixth of the text answers for nearly every text.
_half_a_pair: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]"
).search

T = TypeVar("T")
_OBJECT: Final[type[Any]] = dict
_HOLDERS: Final[tuple[type[Any], ...]] = (dict, list)

_SAMPLE: Final = 6
_LONG_RUN: Final = 19
_SHORT: Final = 512  # bytes
_ROOMY: Final = 65_536  # bytes; in a longer text the spare room does not count
_DIGITS: Final = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))  # every digit as a 0
_hint_in_text: Final = re.compile(r"[0-9]{3}").search
_long_run_in_text: Final = re.compile(r"[0-9]{19}").search


class EncodeError(LooplatchError, ValueError):
    """A value is no JSON; `path` says where in it ("$" is the value itself), `problem` what is wrong there."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"cannot be written as JSON: at {path}: {problem}")
        self.path = path
        self.problem = problem


class DecodeError(LooplatchError, ValueError):
    """A text is no JSON; `problem` says why, with the place."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"not valid JSON: {problem}")
        self.problem = problem


def encode(value: object) -> bytes:
    """Return `value` as compact JSON in UTF-8.

    Taken are dict (with str keys), list, tuple, str, int of any size, finite float, bool and None. Lone surrogates in
    strings are mended (`mend_surrogates`). Raises EncodeError, which is a ValueError, for NaN and the infinities, and
    for anything else.
    """
    try:
        data = orjson.dumps(value, option=_OPTIONS)
    except TypeError:
        return _encode_slowly(value)
    if data.find(b"null") >= 0:  # orjson writes NaN and the infinities as null (`in` would first try it as a number)
        _refuse_non_finite(value)
    # orjson hands its whole buffer out, of 4 KiB and more: what is kept of it is a copy that takes what it needs.
    return b"".join((data, b"")) if len(data) < _ROOMY else data


def decode(data: bytes | str) -> Any:
    """Return the value that the JSON text `data` stands for.

    Strict: no NaN, no Infinity, no number beyond the range of a float, no trailing text or comma, no control characters
    in strings. Integers are exact whatever their size; an escaped lone surrogate is kept as it is. Raises DecodeError,
    which is a ValueError.
    """
    if isinstance(data, bytes):
        # In a short text, as an event of a stream is, it is cheapest to count the digits.
        exact = len(data) < _SHORT and len(data) - len(data.translate(None, b"0123456789")) < _LONG_RUN
        exact = exact or not _has_run(data[::_SAMPLE], _LONG_RUN // _SAMPLE) or not _has_run(data, _LONG_RUN)
    else:
        exact = _hint_in_text(data[::_SAMPLE]) is None or _long_run_in_text(data) is None
    if exact:
        try:
            return orjson.loads(data)
        except ValueError:
            pass  # no JSON, or JSON that orjson does not read: the standard library decides
    return _decode_slowly(data)


def decode_some(texts: Sequence[bytes]) -> list[Any]:
    """Return the values that JSON texts stand for, in order, as far as they are JSON: see `decode`. Raises nothing."""
    whole = b"\n".join(texts)
    if not _has_run(whole, _LONG_RUN):
        try:
            return [orjson.loads(text) for text in texts]
        except ValueError:
            pass
    values: list[Any] = []
    with contextlib.suppress(DecodeError):
        values.extend(decode(text) for text in texts)
    return values


def _has_run(data: bytes, length: int) -> bool:
    """Whether so many digits stand in a row. Ten times as fast as a regular expression."""
    return data.translate(_DIGITS).find(b"0" * length) >= 0


def escapes_half_a_pair(text: str) -> bool:
    """Whether a JSON text has an escaped surrogate without its other half, which no JSON of ours can hold."""
    return "\\u" in text and _half_a_pair(text) is not None


def mend_surrogates(text: str) -> str:
    """Return `text` without surrogates: two that make a pair become their character, lone ones become U+FFFD.

    A pair is torn when its halves come in two pieces of a stream; put the pieces together first, then mend.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def mend(value: Any) -> Any:
    """Return `value` itself if `encode` takes it as it is, else a copy whose strings have no lone surrogates.

    Raises EncodeError as `encode` does.
    """
    try:
        orjson.dumps(value, option=_OPTIONS)
    except TypeError:
        return _checked_whole(value)
    return value


def copied(value: T) -> T:
    """Return a copy of a decoded JSON value that shares no dict and no list with it, however deep they are nested."""
    if not isinstance(value, _HOLDERS):
        return value
    whole: Any = cast("Any", value).copy()
    left: list[Any] = [whole]
    for outer in left:
        for place, inner in outer.items() if isinstance(outer, _OBJECT) else enumerate(outer):
            if isinstance(inner, _HOLDERS):
                outer[place] = own = cast("Any", inner).copy()  # what is gone through keeps its size
                left.append(own)
    return cast("T", whole)


def _encode_slowly(value: object) -> bytes:
    checked = _checked_whole(value)
    try:
        return orjson.dumps(checked, option=_OPTIONS)
    except TypeError:  # an integer beyond 64 bits, or deep nesting
        pass
    try:
        return json.dumps(checked, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except RecursionError:
        raise EncodeError("$", _TOO_DEEP) from None
    except ValueError as error:  # more digits than Python writes (sys.set_int_max_str_digits)
        raise EncodeError("$", str(error)) from None


def _refuse_non_finite(value: object) -> None:
    try:
        json.dumps(value, allow_nan=False)  # runs in C, so it is cheaper than a walk
    except (TypeError, ValueError, RecursionError):
        _checked_whole(value)  # names the place


_TOO_DEEP: Final = "nested too deeply, or a part contains itself"


def _checked_whole(value: object) -> Any:
    try:
        return _checked(value, "$")
    except RecursionError:
        raise EncodeError("$", _TOO_DEEP) from None


def _checked(value: object, path: str) -> Any:
    """Return a copy of `value` of plain JSON types, its strings mended; raise EncodeError with the place."""
    if isinstance(value, enum.Enum):  # orjson writes these two by itself
        return _checked(value.value, path)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, str):
        return mend_surrogates(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise EncodeError(path, f"{value} is no JSON number; use null or a string")
        return value
    if isinstance(value, dict):
        return {
            _checked_key(key, path): _checked(item, f"{path}.{key}")
            for key, item in cast("dict[object, object]", value).items()
        }
    if isinstance(value, list) or type(value) is tuple:
        items = cast("list[object]", value)
        return [_checked(item, f"{path}[{place}]") for place, item in enumerate(items)]
    raise EncodeError(path, f"{type(value).__name__} has no JSON form; convert it first")


def _checked_key(key: object, path: str) -> str:
    if isinstance(key, str):
        return mend_surrogates(str.__str__(key))
    raise EncodeError(path, f"the key {brief(key)} is no string")


def _decode_slowly(data: bytes | str) -> Any:
    try:
        # Bytes are UTF-8 here: the standard library would guess UTF-16 and UTF-32 as well.
        text = data.decode() if isinstance(data, bytes) else data
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise DecodeError("nested too deeply") from None
    except ValueError as error:
        raise DecodeError(str(error)) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:40]} is out of range")
    return number
