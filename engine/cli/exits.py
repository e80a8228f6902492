"""What the exit code of each command says."""

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of the command line."""

    GOOD = 0
    FAILED = 1  # a finding, or a run that did not end well
    USAGE = 2  # what was asked for cannot be done; nothing was sent
    SUSPENDED = 3  # the run waits for someone
    INTERRUPTED = 130  # Ctrl-C
