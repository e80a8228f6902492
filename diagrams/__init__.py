"""looplatch.diagrams: the machine as a picture, from the table alone, with runs laid over it; and runs as timelines."""

from looplatch.diagrams.rendering import FORMATS, PICTURES, Format, Picture, coverage, diff, render, way
from looplatch.diagrams.timeline import timeline_svg

__all__ = ["FORMATS", "PICTURES", "Format", "Picture", "coverage", "diff", "render", "timeline_svg", "way"]
