"""looplatch.diagrams.viewer: a log as one page of HTML that needs no network, and asks none."""

from looplatch.diagrams.viewer.page import live_page, page

__all__ = ["live_page", "page"]
