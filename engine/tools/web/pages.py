"""What was fetched, as a model can read it."""

import base64
import re
from typing import Final

from looplatch.tools.cut_ends import without_half_at_end
from looplatch.tools.tool import ToolResult
from looplatch.tools.web.fetching import Fetched

__all__ = ["shown"]

_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXTS: Final = re.compile(r"text/.+|application/(json|xml|javascript|yaml|x-yaml|toml|.+\+(json|xml))|")
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MAX_IMAGE: Final = 5 * 1024 * 1024 // 4 * 3
_CHARSET: Final = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([a-zA-Z0-9_-]{1,40})", re.IGNORECASE)
_LOOKED_AT: Final = 2_048
_CUT: Final = "\n[... the page is longer than this ...]"


def shown(page: Fetched) -> object:
    """The result of a fetch: HTML as Markdown, texts as they are, images and PDFs as blocks; the rest by its type."""
    if page.media_type in _IMAGES and page.complete and len(page.data) <= _MAX_IMAGE:
        content: object = [_block("image", page)]
    elif page.media_type == "application/pdf" and page.complete:
        content = [_block("document", page)]
    elif page.media_type in _HTML:
        content = _with_address(page, _markdown(_text(page, _marked(page)), page.url))
    elif _TEXTS.fullmatch(page.media_type) and (page.media_type or b"\0" not in page.data):
        content = _with_address(page, _text(page, page.charset))
    else:
        size = f"{len(page.data):,} bytes" if page.complete else f"more than {len(page.data):,} bytes"
        return ToolResult(f"{page.url} is {size} of {page.media_type or 'an unknown type'}, not text", is_error=True)
    return ToolResult(content, is_error=page.status >= 400)


def _with_address(page: Fetched, text: str) -> str:
    status = f" (HTTP status {page.status})" if page.status >= 400 else ""
    return f"{page.url}{status}\n\n{text}{'' if page.complete else _CUT}"


def _block(kind: str, page: Fetched) -> dict[str, object]:
    data = base64.b64encode(page.data).decode()
    return {"type": kind, "source": {"type": "base64", "media_type": page.media_type, "data": data}}


def _marked(page: Fetched) -> str | None:
    """The encoding of an HTML page: as its header says, else as it says itself."""
    found = _CHARSET.search(page.data[:_LOOKED_AT])
    return page.charset or (found[1].decode() if found is not None else None)


def _text(page: Fetched, charset: str | None) -> str:
    try:
        text = page.data.decode(charset or "utf-8", errors="replace")
    except (LookupError, ValueError):
        text = page.data.decode("utf-8", errors="replace")
    return text if page.complete else without_half_at_end(text)


def _markdown(html: str, url: str) -> str:
    import html_to_markdown

    options = html_to_markdown.ConversionOptions(
        base_url=url, inline_data_media=html_to_markdown.InlineDataMedia.ALT_TEXT_ONLY
    )
    try:
        return html_to_markdown.convert(html, options).content or ""
    except Exception:  # a page that it cannot make sense of is still text
        return html
