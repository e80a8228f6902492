"""Whether a shell command line only reads: a cautious reader, which takes all that it does not know for a write."""

from looplatch.tools.shell.lexer import simple_commands
from looplatch.tools.shell.programs import program_reads_only

__all__ = ["reads_only"]


def reads_only(command: str) -> bool:
    """Whether a command for a fresh shell is certain to change nothing.

    It is if it consists of programs known to only read, with options known to change nothing, joined by nothing but
    `|`, `&&`, `||` and `;`, and holds no redirection, substitution, variable, group or job. The judgement is on the
    line alone: that `ls` is the program of that name, and no function or other program, is for whoever runs it to see
    to.
    """
    commands = simple_commands(command)
    return commands is not None and bool(commands) and all(program_reads_only(words) for words in commands)
