"""looplatch.diagrams: the machine as a picture, from the table alone, with runs laid over it where they are given."""

from looplatch.diagrams.rendering import FORMATS, Format, coverage, diff, render

__all__ = ["FORMATS", "Format", "coverage", "diff", "render"]
