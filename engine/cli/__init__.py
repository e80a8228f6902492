"""looplatch.cli: the command line, `looplatch` or `python -m looplatch`."""

from looplatch.cli.entry import main

__all__ = ["main"]
