"""A shell command line read as words, where it is made of nothing but plain words: else not read at all."""

from enum import Enum
from typing import Final

import attrs

__all__ = ["Word", "simple_commands"]

_MAX_CHARS: Final = 10_000
_BLANKS: Final = " \t"
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:=+%@-")
_PATTERN: Final = frozenset("*?[]")
_IN_DOUBLE_QUOTES: Final = frozenset('$`"\\')  # what a backslash takes its meaning from, there


@attrs.frozen
class Word:
    """A word as the program gets it. `expands`: it holds an unquoted pattern, and stands for the names that fit it."""

    text: str
    expands: bool = False


class _End(Enum):
    """What ends a simple command, so that another may follow."""

    PIPE = "|"
    AND = "&&"
    OR = "||"
    THEN = ";"


def simple_commands(line: str) -> list[list[Word]] | None:
    """The simple commands of a line, which `|`, `&&`, `||` and `;` may join; None where it holds anything else.

    That is: redirections, substitutions, variables, groups, braces, `~`, jobs, comments, line ends and other control
    characters, characters beyond ASCII outside of quotes, and all that is unfinished.
    """
    if len(line) > _MAX_CHARS or not all(char.isprintable() or char == "\t" for char in line):
        return None
    commands: list[list[Word]] = [[]]
    at, last = 0, None
    while at < len(line):
        if line[at] in _BLANKS:
            at += 1
            continue
        end, length = _ended(line, at)
        if end is not None:
            if not commands[-1]:
                return None
            commands.append([])
            at, last = at + length, end
            continue
        word, at = _word(line, at)
        if word is None:
            return None
        commands[-1].append(word)
    if not commands[-1]:
        commands.pop()
        if last is not _End.THEN:
            return None
    return commands


def _ended(line: str, at: int) -> tuple[_End | None, int]:
    for end in (_End.OR, _End.AND, _End.PIPE, _End.THEN):
        if line.startswith(end.value, at):
            return end, len(end.value)
    return None, 0


def _word(line: str, at: int) -> tuple[Word | None, int]:
    """The word that begins at `at`, and where it ends; None where it is not plain."""
    text, expands = "", False
    while at < len(line):
        match line[at]:
            case "'":
                end = line.find("'", at + 1)
                if end < 0:
                    return None, at
                text += line[at + 1 : end]
                at = end + 1
            case '"':
                quoted, at = _double_quoted(line, at + 1)
                if quoted is None:
                    return None, at
                text += quoted
            case "\\":
                if at + 1 == len(line) or not line[at + 1].isascii():
                    return None, at
                text += line[at + 1]
                at += 2
            case char if char in _PLAIN or char in _PATTERN:
                expands = expands or char in _PATTERN
                text += char
                at += 1
            case "~" if text and text[-1] not in ":=":
                text += "~"  # a home only where a path may begin
                at += 1
            case char if char in _BLANKS or _ended(line, at)[0] is not None:
                break
            case _:
                return None, at
    return Word(text, expands), at


def _double_quoted(line: str, at: int) -> tuple[str | None, int]:
    """The text in double quotes from `at` on, and where it ends; None where it is not plain."""
    text = ""
    while at < len(line):
        match line[at]:
            case '"':
                return text, at + 1
            case "$" | "`" | "!":
                return None, at
            case "\\":
                if at + 1 == len(line):
                    return None, at
                taken = line[at + 1]
                if taken == "!":
                    return None, at
                text += taken if taken in _IN_DOUBLE_QUOTES else f"\\{taken}"
                at += 2
            case char:
                text += char
                at += 1
    return None, at
