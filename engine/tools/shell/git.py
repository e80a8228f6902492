"""git: which of its commands only read."""

from collections.abc import Mapping, Sequence
from typing import Final

from looplatch.tools.shell.options import Options, long_names

__all__ = ["git_reads_only"]

_SHOWN: Final = long_names(
    "oneline stat numstat shortstat dirstat summary name-only name-status cached staged graph all decorate no-color "
    "color patch no-patch follow since until after before author committer grep format pretty abbrev abbrev-commit "
    "no-merges merges reverse max-count skip word-diff word-diff-regex color-words date branches tags remotes "
    "first-parent topo-order date-order no-renames find-renames find-copies diff-filter ignore-space-change "
    "ignore-all-space ignore-blank-lines unified minimal histogram patience diff-algorithm raw no-prefix relative "
    "exit-code quiet check full-index binary text cc left-right cherry-pick simplify-by-decoration merge-base no-index "
    "no-ext-diff no-textconv no-notes pickaxe-all pickaxe-regex full-history show-pulls boundary source"
)
_OF_LOG: Final = Options(flags="psubwaiEFPzrtcmMCDR0123456789", valued="nUSGL", long=_SHOWN)
_OF_LISTS: Final = long_names(
    "list all remotes show-current contains no-contains merged no-merged points-at sort format verbose color no-color "
    "column no-column ignore-case"
)

# What is read; the words after it are its options and operands.
_COMMANDS: Final[Mapping[str, Options]] = {
    "log": _OF_LOG,
    "show": _OF_LOG,
    "diff": _OF_LOG,
    "shortlog": Options(flags="snec", long=long_names("summary numbered email all since until author no-merges")),
    "reflog": Options(most=0),
    "status": Options(
        flags="sbvz",
        long=long_names(
            "short branch porcelain long show-stash ignored untracked-files no-renames ahead-behind no-ahead-behind "
            "verbose"
        ),
    ),
    "blame": Options(
        flags="lstfnewcbMC", valued="L", long=long_names("root date line-porcelain porcelain show-email show-name")
    ),
    "grep": Options(
        flags="nilLwEFPGcvhHaIoqzpW0123456789",
        valued="ABCefm",
        long=long_names(
            "cached untracked no-index line-number count files-with-matches files-without-match name-only word-regexp "
            "ignore-case invert-match heading break show-function function-context color no-color and or not all-match "
            "max-depth max-count context after-context before-context perl-regexp extended-regexp fixed-strings column "
            "only-matching quiet recursive no-recursive text"
        ),
    ),
    "ls-files": Options(
        flags="cdmostkuivz",
        valued="xX",
        long=long_names(
            "cached deleted modified others ignored stage killed unmerged directory exclude exclude-standard full-name "
            "error-unmatch eol deduplicate"
        ),
    ),
    "ls-tree": Options(
        flags="rdtlz", long=long_names("name-only name-status long full-name full-tree object-only abbrev")
    ),
    "rev-parse": Options(
        long=long_names(
            "abbrev-ref short show-toplevel git-dir absolute-git-dir is-inside-work-tree is-bare-repository verify "
            "show-prefix show-cdup symbolic-full-name all branches tags remotes"
        )
    ),
    "rev-list": Options(flags="0123456789", valued="n", long=_SHOWN | long_names("count objects parents")),
    "describe": Options(
        long=long_names("tags always dirty long all abbrev match exclude contains exact-match first-parent")
    ),
    "cat-file": Options(flags="petsZ"),
    "for-each-ref": Options(long=long_names("format sort count contains merged no-merged points-at")),
    "show-ref": Options(flags="dsq", long=long_names("head heads branches tags verify hash abbrev dereference quiet")),
    "merge-base": Options(flags="a", long=long_names("all is-ancestor octopus independent fork-point")),
    "check-ignore": Options(flags="vqn", long=long_names("verbose quiet non-matching no-index")),
    "count-objects": Options(flags="vH", long=long_names("verbose human-readable")),
    "version": Options(long=long_names("build-options")),
}  # fmt: skip


def git_reads_only(words: Sequence[str]) -> bool:
    """Whether git, given these words, changes nothing: not the repository, and no other file.

    That a repository's own configuration names programs to show differences with, or to filter files through, no
    command line tells. Its index may be refreshed by `git status` and `git diff`, unless GIT_OPTIONAL_LOCKS is 0.
    """
    rest = list(words[1:] if words[:1] == ["--no-pager"] else words)
    if any("%G" in word for word in rest):
        return False  # a format that runs the program that checks signatures
    match rest:
        case ["--version"]:
            return True
        case ["branch" | "tag" as command, *given]:
            return _lists(command, given)
        case ["remote"] | ["remote", "-v" | "--verbose"] | ["stash", "list"]:
            return True
        case ["remote", "get-url", name]:
            return not name.startswith("-")
        case ["config", *given]:
            return _shows_settings(given)
        case [command, *given] if command in _COMMANDS:
            return _COMMANDS[command].operands(given) is not None
        case _:
            return False


def _lists(command: str, words: list[str]) -> bool:
    """`branch` and `tag` without an operand list; with patterns they do where the first word tells them to.

    Further on, that word might be the value of another option.
    """
    lists = words[:1] == ["--list"] or (command == "tag" and words[:1] == ["-l"])
    flags, valued = ("avri", "") if command == "branch" else ("li", "n")
    return Options(flags=flags, valued=valued, long=_OF_LISTS, most=None if lists else 0).operands(words) is not None


def _shows_settings(words: list[str]) -> bool:
    asked = {"--get", "--get-all", "--get-regexp", "--list", "-l"}.intersection(words)
    where = long_names("get get-all get-regexp list global local system worktree show-origin show-scope name-only")
    return bool(asked) and Options(flags="lz", long=where).operands(words) is not None
