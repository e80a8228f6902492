"""What a loop must have in common with the run that it resumes, and a change of it."""

from typing import Any, Final

import attrs

COMPARED: Final = ("model", "system", "tools", "params", "limits", "table", "signed_by")
"""What a loop must have in common with the run that it resumes, by the names of the genesis."""


@attrs.frozen(kw_only=True)
class SettingChange:
    """Something that is not as it was when the run began; both values as the log holds them.

    agents: the names of the sub-agents, from the outermost one, in which it is found; none: it is the loop itself.
    """

    name: str
    was: Any
    now: Any
    agents: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "".join(f"in the sub-agent {agent}: " for agent in self.agents) + self._text()

    def _text(self) -> str:
        if self.name != "limits":
            return f"{self.name} (was {self.was}, is {self.now})"
        names = [name for name in self.now if self.was.get(name) != self.now[name]]
        return ", ".join(f"limits.{name} (was {self.was.get(name)}, is {self.now[name]})" for name in names)
