"""Patterns of paths, as a shell has them: `*` and `?` within a name, `**` for any folders. Never slow."""

from fnmatch import fnmatchcase


def fits(path: str, pattern: str) -> bool:
    """Whether `path`, relative and with `/`, fits `pattern`. One without `/` is a pattern of names, in any folder."""
    if "/" not in pattern:
        return pattern == "**" or fnmatchcase(path.rpartition("/")[2], pattern)
    # reached[i]: whether the parts of the path so far fit the first i parts of the pattern
    wanted = [part for part in pattern.split("/") if part not in ("", ".")]
    reached = _past_stars([True] + [False] * len(wanted), wanted)
    for part in path.split("/"):
        follows = [False] * len(reached)
        for index, glob in enumerate(wanted):
            if glob == "**":
                follows[index] = follows[index] or reached[index]
            elif reached[index] and fnmatchcase(part, glob):
                follows[index + 1] = True
        reached = _past_stars(follows, wanted)
    # `a/**` means what is in `a`.
    return reached[-1]


def _past_stars(reached: list[bool], wanted: list[str]) -> list[bool]:
    """`**` may stand for no folder at all."""
    for index, glob in enumerate(wanted):
        if glob == "**" and reached[index]:
            reached[index + 1] = True
    return reached
