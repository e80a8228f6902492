"""looplatch.tools.files: a folder that no path leads out of, for tools that look at files and change them."""

from looplatch.tools.files.folder import Folder, PathRefused
from looplatch.tools.files.lines import LinePattern, PatternRefused
from looplatch.tools.files.listing import Entry, Listing
from looplatch.tools.files.patterns import fits
from looplatch.tools.files.texts import MAX_BYTES, read_lines, read_text

__all__ = [
    "MAX_BYTES",
    "Entry",
    "Folder",
    "LinePattern",
    "Listing",
    "PathRefused",
    "PatternRefused",
    "fits",
    "read_lines",
    "read_text",
]
