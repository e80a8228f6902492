"""looplatch.telling: what a log tells, in plain words and beside another one."""

from looplatch.telling.diffing import Comparison, Parting, diff
from looplatch.telling.explaining import Explanation, Told, Turn, explain

__all__ = ["Comparison", "Explanation", "Parting", "Told", "Turn", "diff", "explain"]
