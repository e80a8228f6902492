"""looplatch.analysis: a log explained in plain words, and two logs compared."""

from looplatch.analysis.comparison import Comparison, Difference, diff
from looplatch.analysis.explanation import Explanation, Sentence, Turn, explain

__all__ = ["Comparison", "Difference", "Explanation", "Sentence", "Turn", "diff", "explain"]
