"""looplatch.serving: a small server on this machine alone, which shows a log while it is written."""

from looplatch.serving.server import serve
from looplatch.serving.site import Site

__all__ = ["Site", "serve"]
