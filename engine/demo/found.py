"""What a request tells the scripted model: which tools it called before, and what they returned."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import attrs


@attrs.frozen(kw_only=True)
class File:
    """A file as glob listed it."""

    path: str
    size: int


@attrs.frozen(kw_only=True)
class Line:
    """A line as grep found it."""

    path: str
    text: str


@attrs.frozen(kw_only=True)
class Found:
    """All results in a history. `texts` holds what read returned, by path; `refused` what it said where it failed."""

    calls: int
    surveyed: bool
    files: tuple[File, ...]
    not_listed: int
    whole_folder_seen: bool
    lines: tuple[Line, ...]
    texts: Mapping[str, str]
    refused: Mapping[str, str]


def found_in(body: Mapping[str, Any]) -> Found:
    """Read the results out of a request's messages. What a tool returned is taken as it is; an error is no listing."""
    files: list[File] = []
    lines: list[Line] = []
    texts: dict[str, str] = {}
    refused: dict[str, str] = {}
    calls, surveyed, not_listed, seen = 0, False, 0, True
    for name, given, result, failed in _results(body):
        calls += 1
        if name == "read":
            (refused if failed else texts)[str(given.get("path"))] = result
            continue
        surveyed = True
        data = None if failed else _object(result)
        if data is None:
            seen = False
        elif name == "glob":
            files += [File(path=str(item["path"]), size=int(item["bytes"])) for item in data["files"]]
            not_listed += int(data["not_listed"])
            seen = seen and bool(data["whole_folder_seen"])
        elif name == "grep":
            lines += [Line(path=str(item["path"]), text=str(item["text"])) for item in data["matches"]]
    return Found(
        calls=calls,
        surveyed=surveyed,
        files=tuple(files),
        not_listed=not_listed,
        whole_folder_seen=seen,
        lines=tuple(lines),
        texts=texts,
        refused=refused,
    )


def _results(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str, bool]]:
    """Each answered call: the tool's name, its input, the text of its result, whether that is an error."""
    calls: dict[str, Mapping[str, Any]] = {}
    for message in body["messages"]:
        content = cast("list[Mapping[str, Any]] | str", message["content"])
        for block in () if isinstance(content, str) else content:
            if block["type"] == "tool_use":
                calls[block["id"]] = block
            elif block["type"] == "tool_result":
                call = calls[block["tool_use_id"]]
                yield call["name"], call["input"], _text(block.get("content")), block.get("is_error") is True


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = cast("list[Mapping[str, Any]]", content or [])
    return "".join(str(block["text"]) for block in blocks if block["type"] == "text")


def _object(result: str) -> dict[str, Any] | None:
    try:
        data: object = json.loads(result)
    except ValueError:  # a result so long that its middle was left out
        return None
    return cast("dict[str, Any]", data) if isinstance(data, dict) else None
