"""looplatch.cli: the command line, `looplatch` or `python -m looplatch`."""

from collections.abc import Sequence

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Perform the command that `arguments` name (those of the process by default) and return its exit code.

    Raises SystemExit where they name none.
    """
    try:
        # Loading all that there is takes a moment, in which Ctrl-C must end the process as quietly as later.
        from looplatch.cli import entry

        return entry.main(arguments)
    except KeyboardInterrupt:
        return _INTERRUPTED


__all__ = ["main"]
