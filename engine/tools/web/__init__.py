"""looplatch.tools.web: pages of the web, fetched without giving away what only we can reach."""

from looplatch.tools.web.addresses import AddressRefused
from looplatch.tools.web.tool import web_fetch

__all__ = ["AddressRefused", "web_fetch"]
