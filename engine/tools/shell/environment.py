"""What a program that a model asked for gets to know of our own environment."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["environment", "quiet_environment"]

# Files that a shell would run before the command, and functions that would stand in the place of programs.
_RUN_FIRST: Final = frozenset({"BASH_ENV", "ENV", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS"})
# What makes programs that only read run others.
_HELPERS: Final = frozenset({"LESSOPEN", "LESSCLOSE", "RIPGREP_CONFIG_PATH", "GREP_OPTIONS", "TAR_OPTIONS"})
_GIT: Final = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "log.showSignature": "false",
}


def environment(given: Mapping[str, str] | None = None) -> dict[str, str]:
    """`given`, or our own environment without the API's keys; without what a shell would run before the command."""
    known = given if given is not None else _without_keys(os.environ)
    kept = {
        name: value for name, value in known.items() if name not in _RUN_FIRST and not name.startswith("BASH_FUNC_")
    }
    return {**kept, "PS1": "", "PS2": "", "TERM": "dumb"}


def quiet_environment(known: Mapping[str, str], folder: Path) -> dict[str, str]:
    """`known` for a command that only reads: none of its programs comes out of `folder`, and git runs no other one."""
    kept = {
        name: value for name, value in known.items() if name not in _HELPERS and not name.startswith(("GIT_", "LD_"))
    }
    kept["PATH"] = os.pathsep.join(
        place for place in kept.get("PATH", os.defpath).split(os.pathsep) if _is_outside(place, folder)
    )
    git = {"GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "cat", "GIT_CONFIG_COUNT": str(len(_GIT))}
    for number, (name, value) in enumerate(_GIT.items()):
        git |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return kept | git


def _without_keys(known: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in known.items() if not name.startswith("ANTHROPIC_")}


def _is_outside(place: str, folder: Path) -> bool:
    return os.path.isabs(place) and not Path(os.path.realpath(place)).is_relative_to(folder)
