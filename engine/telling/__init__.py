"""looplatch.telling: what a log tells, in plain words and beside another one."""

from looplatch.telling.diffing import Comparison, Difference, diff
from looplatch.telling.explaining import Explanation, Told, Turn, explain

__all__ = ["Comparison", "Difference", "Explanation", "Told", "Turn", "diff", "explain"]
