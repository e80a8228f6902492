"""What a function's docstring says of it and of its parameters, in the styles in use: Google, NumPy, Sphinx."""

import inspect
import re
from collections.abc import Callable

import attrs

__all__ = ["DocText", "read_docstring"]

_GOOGLE_PARAMS = re.compile(r"(?:Args|Arguments|Parameters|Params):\s*")
_OTHER_SECTION = re.compile(
    r"(?:Returns?|Yields?|Raises?|Examples?|Notes?|Warnings?|Warns?|See Also|References|Attributes|Todo):\s*"
)
_NUMPY_HEAD = re.compile(r"(?:Other )?Parameters|Returns|Yields|Raises|Examples?|Notes|Warnings|See Also|References")
_RULE = re.compile(r"-{3,}\s*")
_GOOGLE_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY_ITEM = re.compile(r"(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?")
_SPHINX_ITEM = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)")
_SPHINX_FIELD = re.compile(r":\w+[^:]*:.*")


@attrs.frozen(kw_only=True)
class DocText:
    """`summary` is the text before the first section; `params` holds the text of each parameter."""

    summary: str = ""
    params: dict[str, str] = attrs.field(factory=dict[str, str])


def read_docstring(doc: str | None) -> DocText:
    """Read a docstring; never raises. What follows none of the styles is all summary."""
    lines = inspect.cleandoc(doc or "").splitlines()
    summary: list[str] = []
    params: dict[str, str] = {}
    position = 0
    in_summary = True
    while position < len(lines):
        line = lines[position]
        following = lines[position + 1] if position + 1 < len(lines) else ""
        if _NUMPY_HEAD.fullmatch(line.strip()) and _RULE.fullmatch(following):
            in_summary = False
            body, position = _until(lines, position + 2, _is_numpy_end)
            if line.strip().endswith("Parameters"):
                params.update(_items(body, _NUMPY_ITEM))
        elif _GOOGLE_PARAMS.fullmatch(line) or _OTHER_SECTION.fullmatch(line):
            in_summary = False
            body, position = _until(lines, position + 1, _is_google_end)
            if _GOOGLE_PARAMS.fullmatch(line):
                params.update(_items(inspect.cleandoc("\n" + "\n".join(body)).splitlines(), _GOOGLE_ITEM))
        elif _SPHINX_FIELD.fullmatch(line):
            in_summary = False
            body, position = _until(lines, position + 1, _is_sphinx_end)
            params.update(_items([line, *body], _SPHINX_ITEM))
        else:
            if in_summary:
                summary.append(line)
            position += 1
    return DocText(summary="\n".join(summary).strip(), params=params)


def _until(lines: list[str], start: int, is_end: Callable[[list[str], int], bool]) -> tuple[list[str], int]:
    """The lines from `start` to the end of the section, and where that is."""
    end = start
    while end < len(lines) and not is_end(lines, end):
        end += 1
    return lines[start:end], end


def _is_google_end(lines: list[str], at: int) -> bool:
    return bool(lines[at]) and not lines[at].startswith((" ", "\t"))


def _is_numpy_end(lines: list[str], at: int) -> bool:
    return at + 1 < len(lines) and bool(_NUMPY_HEAD.fullmatch(lines[at].strip()) and _RULE.fullmatch(lines[at + 1]))


def _is_sphinx_end(lines: list[str], at: int) -> bool:
    return not lines[at].startswith((" ", "\t"))


def _items(lines: list[str], head: re.Pattern[str]) -> dict[str, str]:
    """The texts of a section's items: an item's head stands at the margin, what belongs to it is indented."""
    texts: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        found = head.fullmatch(line) if line and not line[0].isspace() else None
        if found is None:
            current.append(line.strip())
            continue
        first = found[2] if head.groups > 1 else ""
        current = [first.strip()]
        for name in re.split(r"\s*,\s*", found[1]):
            texts[name] = current
    return {name: " ".join(part for part in parts if part) for name, parts in texts.items() if any(parts)}
