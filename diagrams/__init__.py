"""looplatch.diagrams: the machine as a picture, from the table alone, with a run laid over it where one is given."""

from looplatch.diagrams.rendering import FORMATS, Format, render

__all__ = ["FORMATS", "Format", "render"]
