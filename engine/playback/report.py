"""What playing a recorded run through a loop came to."""

from typing import Any

import attrs

from looplatch.analysis.comparison import shown
from looplatch.cleaning import one_line
from looplatch.states.counted import counted
from looplatch.states.errors import LooplatchError


class CannotReplay(LooplatchError):
    """A log cannot be played through a loop: `problem` says why, `mend` what to do. Nothing was run."""

    def __init__(self, problem: str, mend: str) -> None:
        super().__init__(f"the run cannot be played again: {problem}. {mend}")
        self.problem = problem
        self.mend = mend


class RunDiffers(LooplatchError, AssertionError):
    """The loop does not do what the log says; `difference` is where it first does something else."""

    def __init__(self, difference: "PlaybackDifference") -> None:
        super().__init__(str(difference))
        self.difference = difference


@attrs.frozen(kw_only=True)
class PlaybackDifference:
    """The first place where the loop does not do what the log says.

    seq: the record of the log; None where the log has nothing more. state: the state that the run was in. what: what
    differs, in words. path: the field of it. recorded, came: both values.
    """

    seq: int | None
    state: str
    what: str
    path: str
    recorded: Any
    came: Any

    def __str__(self) -> str:
        where = "after the last record" if self.seq is None else f"record {self.seq}"
        values = f"recorded was {shown(self.recorded)}, and now it is {shown(self.came)}"
        return one_line(f"{where}, in {self.state}: {self.what}: {self.path}: {values}", 800)


@attrs.frozen(kw_only=True)
class Playback:
    """How a recorded run went through the caller's loop.

    moves: how many moves were made again. difference: the first thing that was not as recorded; None where all was.
    skipped: moves that nobody can make again, since they came from outside (an abort, a deadline) or belong to a part
    of the run that another loop made (before a resumption that accepted changes).
    """

    moves: int
    difference: PlaybackDifference | None = None
    skipped: int = 0

    @property
    def ok(self) -> bool:
        """Whether the loop did all that the log says."""
        return self.difference is None

    def check(self) -> None:
        """Raise RunDiffers, which is an AssertionError, where the loop did something else."""
        if self.difference is not None:
            raise RunDiffers(self.difference)

    def __str__(self) -> str:
        skipped = f" ({self.skipped} from outside left out)" if self.skipped else ""
        result = "as recorded" if self.difference is None else str(self.difference)
        return f"{counted(self.moves, 'move')} made again{skipped}: {result}"
