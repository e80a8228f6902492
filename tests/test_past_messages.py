"""Logs of earlier schemas, in which each message leaves and joins by itself: their histories are followed as before."""

from pathlib import Path

import pytest

from looplatch import read
from looplatch.audit.history import rebuild
from looplatch.blocks import blocks_of
from looplatch.recovery.resume.messages import MessageFold
from looplatch.states.record import Kind

GOLDEN = Path(__file__).parent / "golden"
REWRITTEN = sorted(file for file in GOLDEN.glob("v[12]/*.jsonl") if b'"op":"leave"' in file.read_bytes())


def test_there_are_such_logs() -> None:
    assert {file.parent.name for file in REWRITTEN} == {"v1", "v2"}


@pytest.mark.parametrize("file", REWRITTEN, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_resume_and_a_reader_follow_the_same_history(file: Path) -> None:
    """After every record: the roles, and how many blocks each message has; what left is known until a move."""
    log, fold = read(file), MessageFold()
    for count, record in enumerate(log.records, 1):
        if record.kind is not Kind.MESSAGE:
            fold.settle()
            continue
        fold.take(record)
        messages = rebuild(log.records[:count], log.payloads)
        assert [(one.role, len(one.blocks)) for one in fold.entries] == [
            (message["role"], len(blocks_of(message))) for message in messages
        ]
        if record["op"] == "leave":
            assert fold.base is not None
