"""The conversation rebuilt from a log, with and without its payloads, and the payload file it comes from."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.audit import AuditLog, JsonlLog, Log, LogDamaged, MemoryLog, read
from looplatch.audit.payloads import FilePayloads, MemoryPayloads, payload_line
from looplatch.encoding import encode
from looplatch.states.errors import UsageError
from looplatch.states.record import Kind, commitment

Block = dict[str, Any]

TEXT: Block = {"type": "text", "text": "I look."}
CALL: Block = {"type": "tool_use", "id": "t1", "name": "grep", "input": {"pattern": "ä", "n": 1}}
RESULT: Block = {"type": "tool_result", "tool_use_id": "t1", "content": "found", "is_error": True}


def skeleton(log: AuditLog, block: Block | str) -> Block:
    kept = log.keep(encode(block))
    described: Block = {"type": "text" if isinstance(block, str) else block["type"]}
    described |= {"commitment": kept.hex, "bytes": kept.size}
    if isinstance(block, dict):
        described |= {name: block[name] for name in ("id", "name", "tool_use_id", "is_error") if name in block}
    return described


def say(log: AuditLog, op: str, index: int, role: str, *blocks: Block | str) -> list[Block]:
    form = "text" if isinstance(blocks[0], str) else "blocks"
    skeletons = [skeleton(log, block) for block in blocks]
    log.append(Kind.MESSAGE, {"op": op, "index": index, "role": role, "form": form, "blocks": skeletons})
    return skeletons


def conversation(log: AuditLog) -> list[Block]:
    log.append(Kind.GENESIS, {})
    made = say(log, "join", 0, "user", "look for ä")
    made += say(log, "join", 1, "assistant", TEXT, CALL)
    return made + say(log, "join", 2, "user", RESULT)


def test_messages_are_rebuilt_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    log = JsonlLog(path, "r", durability="none")
    conversation(log)
    log.close()
    expected = [
        {"role": "user", "content": "look for ä"},
        {"role": "assistant", "content": [TEXT, CALL]},
        {"role": "user", "content": [RESULT]},
    ]
    assert Log.of(log).messages == expected
    assert read(path).messages == expected


def test_messages_are_a_new_copy_each_time() -> None:
    log = MemoryLog("r")
    conversation(log)
    view = Log.of(log)
    view.messages[1]["content"].clear()
    assert view.messages[1]["content"] == [TEXT, CALL]


def test_blocks_that_join_the_last_message_follow_its_own() -> None:
    log = MemoryLog("r")
    say(log, "join", 0, "user", "first")
    say(log, "extend", 0, "user", {"type": "text", "text": "second"})
    say(log, "extend", 0, "user", {"type": "text", "text": "third"})
    texts = [{"type": "text", "text": text} for text in ("first", "second", "third")]
    assert Log.of(log).messages == [{"role": "user", "content": texts}]


def test_a_message_that_leaves_makes_room_for_another() -> None:
    log = MemoryLog("r")
    for index, text in enumerate(["a", "b", "c"]):
        say(log, "join", index, "user", text)
    log.append(Kind.MESSAGE, {"op": "leave", "index": 1, "role": "user", "form": "text", "blocks": []})
    say(log, "join", 1, "user", "B")
    assert [message["content"] for message in Log.of(log).messages] == ["a", "B", "c"]


def test_without_payloads_the_history_keeps_its_shape() -> None:
    """Calls and results still name each other, so that the API would take it."""
    log = MemoryLog("r", payloads="digest")
    said, text, call, result = conversation(log)

    def gone(block: Block) -> str:
        return f"[{block['type']} of {block['bytes']} bytes, no longer kept; commitment {block['commitment']}]"

    assert Log.of(log).messages == [
        {"role": "user", "content": gone(said)},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": gone(text)},
                {"type": "tool_use", "id": "t1", "name": "grep", "input": {"not_kept": gone(call)}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": gone(result), "is_error": True}],
        },
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"op": "join", "index": 5, "role": "user", "form": "blocks", "blocks": []},
        {"op": "join", "index": -1, "role": "user", "form": "blocks", "blocks": []},
        {"op": "extend", "index": 0, "role": "user", "form": "blocks", "blocks": []},
        {"op": "leave", "index": 0},
        {"op": "leave", "index": -1},
        {"op": "jump", "index": 0},
        {"op": "join", "index": 0, "role": "user", "form": "text", "blocks": []},
        {"op": "join", "index": 0},
        {},
    ],
)
def test_a_record_that_fits_no_history_is_damage(fields: Block) -> None:
    log = MemoryLog("r")
    log.append(Kind.GENESIS, {})
    log.append(Kind.MESSAGE, fields)
    with pytest.raises(LogDamaged, match="the message record does not fit the history before it") as caught:
        _ = Log.of(log).messages
    assert caught.value.line == 2


@pytest.mark.parametrize("index", [-1, 1])
def test_only_a_message_of_the_history_can_leave_it(index: int) -> None:
    log = MemoryLog("r")
    say(log, "join", 0, "user", "stays")
    log.append(Kind.MESSAGE, {"op": "leave", "index": index})
    with pytest.raises(LogDamaged, match="does not fit the history"):
        _ = Log.of(log).messages


def test_a_payload_that_was_exchanged_is_not_shown_as_the_truth(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    log = JsonlLog(path, "r", durability="none")
    say(log, "join", 0, "user", TEXT)
    log.close()
    payloads = tmp_path / "run.payloads"
    payloads.write_bytes(payloads.read_bytes().replace(b"I look.", b"I lied."))
    with pytest.raises(LogDamaged, match="is another one"):
        _ = read(path).messages


json_lines = st.binary(min_size=1).filter(lambda data: b"\n" not in data)


@given(st.lists(json_lines, max_size=8), st.binary(max_size=20).filter(lambda rest: b"\n" not in rest))
def test_payloads_are_read_back_byte_for_byte_beside_a_torn_tail(
    tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes], torn: bytes
) -> None:
    path = tmp_path_factory.mktemp("store") / "run.payloads"
    salts = [bytes([place]) * 16 for place in range(len(payloads))]
    kept = [(commitment(salt, payload), salt, payload) for salt, payload in zip(salts, payloads, strict=True)]
    path.write_bytes(b"".join(payload_line(*one) for one in kept) + torn)
    store = FilePayloads(path)
    assert [store.find(name) for name, _, _ in kept] == [(salt, payload) for _, salt, payload in kept]


@pytest.mark.parametrize("payload", [b"1", b'{"type":"text","text":"secret"}'])
def test_a_payload_can_be_blanked_where_it_stands(tmp_path: Path, payload: bytes) -> None:
    """Nothing else moves: the others are still found, and every line is still JSON."""
    path = tmp_path / "run.payloads"
    names = [commitment(b"s" * 16, part) for part in (b"before", payload, b"after")]
    lines = [payload_line(name, b"s" * 16, part) for name, part in zip(names, (b"2", payload, b"3"), strict=True)]
    blank = b'{"commitment":"%b","salt":null,"payload":null' % names[1].encode()
    lines[1] = blank.ljust(len(lines[1]) - 2) + b"}\n"
    path.write_bytes(b"".join(lines))
    store = FilePayloads(path)
    assert [store.find(name) for name in names] == [(b"s" * 16, b"2"), None, (b"s" * 16, b"3")]


def test_a_log_without_a_payload_file_finds_none(tmp_path: Path) -> None:
    assert FilePayloads(tmp_path / "run.payloads").find("0" * 64) is None


def test_a_payload_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"payloads in .* cannot be read"):
        FilePayloads(tmp_path).find("0" * 64)


def test_payloads_in_memory_are_found_by_their_commitment() -> None:
    store = MemoryPayloads()
    store.put("c", b"s", b"p")
    assert (store.find("c"), store.find("d")) == ((b"s", b"p"), None)
