"""Why the run of a log cannot go on."""

from collections.abc import Sequence

from looplatch.recovery.resume.settings import SettingChange
from looplatch.states.errors import UsageError


class CannotResume(UsageError):
    """The run of a log cannot go on; nothing was sent and nothing was written."""

    def __init__(self, problem: str, mend: str) -> None:
        super().__init__("log", problem, mend)


class LoopChanged(CannotResume):
    """The loop is not the one that the run began with; `changes` says in what."""

    def __init__(self, changes: Sequence[SettingChange]) -> None:
        super().__init__(
            f"the loop has changed since the run began: {'; '.join(map(str, changes))}",
            "Resume it with the loop that it had, or with accept_changes=True",
        )
        self.changes = tuple(changes)


class ToolMissing(CannotResume):
    """Calls of the run have no result yet, and the loop lacks their tools; `tools` names these."""

    def __init__(self, tools: Sequence[str]) -> None:
        super().__init__(
            f"calls that have no result yet need tools that the loop does not have: {', '.join(tools)}",
            "Resume it in the program that has them, with loop.resume; or deny those that wait for approval",
        )
        self.tools = tuple(tools)
