"""What only the API can read in a content block: it is no text, and would be worth nothing if it were changed."""

from collections.abc import Mapping
from typing import Any, Final, Literal

Place = Literal["content", "result", "source", "citations"] | None
"""Where an object stands: among the blocks of a message, or what adds to one; among those of a tool's result; as the
source of a picture or a document; among citations; None: where anything may stand."""

# By where an object stands, and by its type.
_OPAQUE: Final[Mapping[tuple[Place, str], frozenset[str]]] = {
    ("content", "thinking"): frozenset({"signature"}),
    ("content", "redacted_thinking"): frozenset({"data"}),
    ("content", "compaction"): frozenset({"signature", "encrypted_content"}),
    ("content", "web_search_result"): frozenset({"encrypted_content"}),
    ("content", "advisor_redacted_result"): frozenset({"encrypted_content"}),
    ("content", "encrypted_code_execution_result"): frozenset({"encrypted_stdout"}),
    ("content", "signature_delta"): frozenset({"signature"}),
    ("content", "compaction_delta"): frozenset({"encrypted_content"}),
    ("source", "base64"): frozenset({"data"}),
    ("citations", "web_search_result_location"): frozenset({"encrypted_index"}),
}
_INNER: Final[Mapping[str, Place]] = {
    "content": "content",
    "source": "source",
    "citations": "citations",
    "citation": "citations",
}


def inner_place(place: Place, outer: Mapping[str, Any], field: str) -> Place:
    """Where what stands in a field of `outer` is, which itself stands at `place`."""
    if place is None:
        return None
    inner = _INNER.get(field)
    if inner == "content" and (place == "result" or outer.get("type") == "tool_result"):
        return "result"
    return inner


def is_opaque(place: Place, outer: Mapping[str, Any], field: str) -> bool:
    """Whether the text in a field of `outer`, which stands at `place`, is such."""
    kind = outer.get("type")
    return place is not None and isinstance(kind, str) and field in _OPAQUE.get((place, kind), ())
