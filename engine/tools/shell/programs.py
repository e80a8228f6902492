"""The programs that are known to only read, and with which words they do."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from looplatch.tools.shell.git import git_reads_only
from looplatch.tools.shell.lexer import Word
from looplatch.tools.shell.options import Options, long_names, names

__all__ = ["program_reads_only"]

# Whatever is given to these, they write nothing and start nothing.
_HARMLESS: Final = names(
    "arch b2sum basename cat cd cksum cmp column comm cut df dirname du echo egrep expand expr false fgrep fmt fold "
    "free grep groups head hexdump id join jq ls md5sum nl nproc od paste printenv ps pwd readlink realpath rev seq "
    "sha1sum sha224sum sha256sum sha384sum sha512sum stat strings tac tail tr true tty type uname unexpand uptime wc "
    "which whoami"
)

_LISTED: Final[Mapping[str, Options]] = {
    # -l starts another program.
    "diff": Options(
        flags="abBdeEiHnNpPqrsTtuwyZ0123456789",
        valued="CIUWxX",
        long=long_names(
            "brief unified context recursive side-by-side ignore-case ignore-all-space ignore-blank-lines exclude "
            "ignore-space-change ignore-trailing-space new-file text color width suppress-common-lines minimal "
            "strip-trailing-cr report-identical-files speed-large-files"
        ),
    ),
    # -C writes a file, -z starts programs.
    "file": Options(
        flags="bhikLNnprs0", long=long_names("brief mime mime-type mime-encoding dereference no-dereference keep-going")
    ),
    "env": Options(most=0),
    "hostname": Options(most=0),
    # --pre, --hostname-bin and -z start programs.
    "rg": Options(
        flags="ailcvwxoSFHNUsLqp0IPn",
        valued="egtTABCmdrjM",
        long=long_names(
            "files hidden no-ignore no-ignore-vcs ignore-case smart-case case-sensitive line-number no-line-number "
            "count count-matches glob iglob type type-not files-with-matches files-without-match fixed-strings "
            "word-regexp line-regexp context after-context before-context max-count max-depth no-heading heading "
            "with-filename no-filename json color colors sort sortr only-matching invert-match multiline text follow "
            "stats quiet trim vimgrep column type-list max-columns null replace pcre2 no-messages no-config version"
        ),
    ),
    # -o, --compress-program, -T.
    "sort": Options(
        flags="bcCdfghimMnrRsuVz",
        valued="kt",
        long=long_names(
            "reverse numeric-sort unique key field-separator human-numeric-sort version-sort ignore-case stable check "
            "general-numeric-sort month-sort random-sort dictionary-order ignore-leading-blanks zero-terminated merge"
        ),
    ),
    # -o, -R.
    "tree": Options(
        flags="adfipshDugFCnNQxlJXSrtcUv",
        valued="LPI",
        long=long_names("dirsfirst filesfirst gitignore noreport du prune charset filelimit matchdirs sort"),
    ),
    # The second operand is written.
    "uniq": Options(
        flags="cdDiuz",
        valued="fsw",
        long=long_names("count repeated unique ignore-case skip-fields skip-chars check-chars zero-terminated group"),
        most=1,
    ),
}  # fmt: skip

_DATE: Final = Options(
    flags="uRI", valued="dr", long=long_names("utc universal date reference iso-8601 rfc-3339 rfc-email")
)
_SED: Final = Options(flags="nErsuz", long=long_names("quiet silent regexp-extended"))
# Lines printed by number, or a plain replacement on the way to the output.
_SED_SCRIPT: Final = re.compile(r"(\d+|\$)(,(\d+|\$))?p|s/[^/\\\n]*/[^/\\\n]*/[gpIi0-9]*")

_FIND_TESTS: Final = names(
    "-H -L -P -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -maxdepth -size "
    "-mindepth -mtime -mmin -atime -amin -ctime -cmin -newer -anewer -cnewer -empty -perm -user -group -uid -gid "
    "-nouser -nogroup -print -print0 -printf -ls -not -a -and -o -or -prune -depth -d -xdev -mount -follow -readable "
    "-writable -executable -links -inum -lname -ilname -samefile -quit -true -false -daystart -noleaf -used"
)


def _date_reads_only(words: Sequence[str]) -> bool:
    """An operand that is no format sets the clock."""
    operands = _DATE.operands(words)
    return operands is not None and all(operand.startswith("+") for operand in operands)


def _sed_reads_only(words: Sequence[str]) -> bool:
    operands = _SED.operands(words)
    return operands is not None and bool(operands) and _SED_SCRIPT.fullmatch(operands[0]) is not None


def _find_reads_only(words: Sequence[str]) -> bool:
    """The tests that only look; a value that looks like another test is taken for one."""
    return all(word in _FIND_TESTS or not word.startswith("-") or word.lstrip("-").isdigit() for word in words)


_JUDGED: Final[Mapping[str, Callable[[Sequence[str]], bool]]] = {
    "date": _date_reads_only,
    "find": _find_reads_only,
    "git": git_reads_only,
    "sed": _sed_reads_only,
}


def program_reads_only(words: Sequence[Word]) -> bool:
    """Whether a program with its words is known to only read."""
    if not words or words[0].expands:
        return False
    name, *given = (word.text for word in words)
    if name in _HARMLESS:
        return True
    if any(word.expands for word in words):
        return False  # a file that is named like an option would become one
    if (listed := _LISTED.get(name)) is not None:
        return listed.operands(given) is not None
    judged = _JUDGED.get(name)
    return judged is not None and judged(given)
