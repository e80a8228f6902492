"""What stands in the last row of the live view: where the run is, and what it has spent."""

from typing import Any, Final

from looplatch.cli.cells import cells
from looplatch.diagrams.elapsed import spent
from looplatch.states.record import Record
from looplatch.states.state import State

_BETWEEN: Final = " | "


class Status:
    """Follows a run by the records of its moves, and the tokens of the answer that is being written."""

    def __init__(self) -> None:
        self.state = str(State.PREPARE)
        self.turn = 1
        self._totals: dict[str, int] = {}
        self._asked = 0
        self._written = 0

    def move(self, record: Record) -> None:
        """Take note of a move: its target, and what it changed."""
        self.state = str(record.target)
        change: dict[str, Any] = record.get("change") or {}
        self.turn = change.get("turn", self.turn)
        spent_now = {name: change[name] for name in change if name.endswith("_tokens") or name == "cost_micro_usd"}
        if spent_now:
            self._totals.update(spent_now)
            self._asked = self._written = 0

    def stream(self, event: dict[str, Any]) -> None:
        """Take note of the tokens that the API reports while it writes."""
        message: dict[str, Any] = event.get("message") or {}
        usage: dict[str, Any] = message.get("usage") or event.get("usage") or {}
        read = [usage.get(f"{kind}input_tokens") for kind in ("", "cache_read_", "cache_creation_")]
        self._asked = max(sum(count for count in read if isinstance(count, int)), self._asked)
        written = usage.get("output_tokens")
        self._written = written if isinstance(written, int) else self._written

    def line(self, elapsed_s: float, width: int) -> str:
        """The row, with as much as `width` columns hold; what matters most comes first."""
        read = sum(self._totals.get(name, 0) for name in ("input_tokens", "cache_read_tokens", "cache_write_tokens"))
        read, written = read + self._asked, self._totals.get("output_tokens", 0) + self._written
        parts = [f"[{self.state}]", f"turn {self.turn}", spent(int(elapsed_s * 1e9))]
        if read or written:
            parts.append(f"{_short(read)} tokens read, {_short(written)} written")
        if cost := self._totals.get("cost_micro_usd", 0):
            parts.append(f"${cost / 1_000_000:.4f}")
        parts.append("Ctrl-C ends the run")
        shown = parts[0]
        for part in parts[1:]:
            if cells(shown + _BETWEEN + part) > width:
                break
            shown += _BETWEEN + part
        return shown


def _short(count: int) -> str:
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1_000:,.0f}k" if count < 10_000_000 else f"{count / 1_000_000:,.0f}M"
