"""The entry of the command line: parse, perform, and turn what was raised into an exit code."""

import os
import sys
from collections.abc import Sequence
from typing import Final

from looplatch.audit.errors import LogExists, LogInUse
from looplatch.cleaning import cleaned
from looplatch.cli import check, demo, diagram, diff, explain, export, redact, replay, resume, run, verify, view
from looplatch.cli.arguments import Commands, complain, parser_for
from looplatch.cli.exits import Exit
from looplatch.states.errors import LooplatchError, UsageError

_COMMANDS = Commands(
    run=run.perform,
    resume=resume.perform,
    demo=demo.perform,
    verify=verify.perform,
    replay=replay.perform,
    redact=redact.perform,
    explain=explain.perform,
    diff=diff.perform,
    export=export.perform,
    diagram=diagram.perform,
    view=view.perform,
    check=check.perform,
)
_OPTIONS: Final = {"folder": "--dir", "secrets": "--secrets", "seq": "--seq", "turn": "--turn"}
"""The options in which what the library names so was given."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Perform the command that `arguments` name (those of the process by default) and return its exit code.

    Raises SystemExit where they name none.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        complain("standard output is closed, so that nothing could be shown; open it, or send it to /dev/null")
        return Exit.USAGE
    given = parser_for(_COMMANDS).parse_args(arguments)
    try:
        code: Exit = given.perform(given)
        sys.stdout.flush()
        return code
    except UsageError as error:
        named = f"{_OPTIONS[error.what]}: {error.problem}. {error.mend}" if error.what in _OPTIONS else str(error)
        complain(cleaned(named))
        return Exit.USAGE
    except (LogExists, LogInUse) as error:
        complain(cleaned(str(error)))
        return Exit.USAGE
    except LooplatchError as error:
        complain(cleaned(str(error)))
        return Exit.FAILED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Who read the output has left. Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except OSError as error:
        complain(cleaned(str(error)))
        return Exit.FAILED
