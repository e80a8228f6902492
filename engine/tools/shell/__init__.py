"""looplatch.tools.shell: shell commands, and which of them only read."""

from looplatch.tools.shell.command import reads_only
from looplatch.tools.shell.output import MAX_OUTPUT
from looplatch.tools.shell.tool import shell_tool

__all__ = ["MAX_OUTPUT", "reads_only", "shell_tool"]
