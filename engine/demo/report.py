"""The scripted model's final answer: made of what the tools returned, and of nothing else."""

from collections import Counter
from pathlib import PurePosixPath
from typing import Final

from looplatch.demo.found import Found
from looplatch.demo.words import rare_words
from looplatch.states.counted import counted

_QUOTED_WHOLE: Final = 2_000  # characters; of a longer file, its ends and its rare words
_QUOTED: Final = 8_000  # characters that are quoted whole, of all files together
_WIDEST: Final = 300
_RARE: Final = 40
_OTHERS: Final = 40


def report(found: Found) -> str:
    """Say what is in the folder."""
    parts = [_overview(found)]
    rare = rare_words({**found.texts, **_unread(found)}, _RARE)
    left = _QUOTED
    for path, text in found.texts.items():
        whole = len(text) <= min(_QUOTED_WHOLE, left)
        left -= len(text) if whole else 0
        parts.append(_file(path, text, rare[path], whole=whole))
    if found.refused:
        parts.append("\n".join(["Not read:", *(f"  {_first(text)}" for text in found.refused.values())]))
    if others := _unread(found):
        shown = list(others.items())[:_OTHERS]
        more = [f"  and {len(others) - _OTHERS:,} more files with text"] if len(others) > _OTHERS else []
        lines = [f"  {_name(path)}: {_one_line(text)}" for path, text in shown]
        parts.append("\n".join(["Other files begin:", *lines, *more]))
    return "\n\n".join(parts) + "\n"


def _overview(found: Found) -> str:
    if not found.files:
        return "The folder holds no files." if found.whole_folder_seen else "The folder could not be surveyed."
    count = len(found.files) + found.not_listed
    at_least = "" if found.whole_folder_seen else "at least "
    size = sum(file.size for file in found.files)
    kinds = Counter(PurePosixPath(file.path).suffix or "no suffix" for file in found.files).most_common(6)
    by_kind = f"{', '.join(f'{number:,} {kind}' for kind, number in kinds)}; {size:,} bytes together"
    listed = (
        f" Of these the {len(found.files):,} that were changed last: {by_kind}." if found.not_listed else f" {by_kind}."
    )
    unread = len(_unread(found))
    glimpsed = f", and saw the first lines of {unread:,} more" if unread else ""
    return (
        f"The folder holds {at_least}{counted(count, 'file')}.{listed} I read {len(found.texts):,} of them{glimpsed}."
    )


def _file(path: str, text: str, rare: list[str], *, whole: bool) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    head = f"{_name(path)} ({len(text):,} characters)"
    if whole:
        return "\n".join([head, *(f"  | {line}" for line in lines)])
    shown = [*lines[:3], *(["..."] if len(lines) > 5 else []), *lines[3:][-2:]]
    words = [f"  only here: {', '.join(rare)}"] if rare else []
    return "\n".join([head, *(f"  | {line[:_WIDEST]}" for line in shown), *words])


def _unread(found: Found) -> dict[str, str]:
    """The lines that grep found, by path, of files that were not read."""
    texts: dict[str, list[str]] = {}
    for line in found.lines:
        if line.path not in found.texts:
            texts.setdefault(line.path, []).append(line.text)
    return {path: "\n".join(lines) for path, lines in texts.items()}


def _one_line(text: str) -> str:
    return " / ".join(line.strip() for line in text.splitlines())


def _name(path: str) -> str:
    return path if path.isprintable() else repr(path)


def _first(text: str) -> str:
    return text.partition("\n")[0]
