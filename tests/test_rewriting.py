"""Edits of compression in a run's history: as if each had been made by hand, with few records, and none lost."""

import asyncio
import json
from functools import cache
from typing import Any

import pytest
from hypothesis import assume, given, settings

from looplatch import Compression, Log, Loop
from looplatch.audit import SECRETS, MemoryLog
from looplatch.compressing.rewriting import InvalidCompression, rewrite
from looplatch.journal import Journal
from looplatch.outbox import Outbox
from looplatch.plan import Plan
from looplatch.recovery.compression.collapse import Staged, drain, next_span
from looplatch.recovery.compression.compact import compact
from looplatch.recovery.compression.edits import Edit, apply
from looplatch.recovery.compression.micro import micro
from looplatch.recovery.compression.snip import snip
from looplatch.recovery.validity import history_problems
from looplatch.requests.history import History, Rewrite
from looplatch.states.record import digest
from looplatch.testing import FakeClock, ScriptedAPI, reply
from looplatch.testing import histories as drawn_histories
from looplatch.workplace import Workplace
from tests import histories
from tests.histories import Message
from tests.recovering import files, meet, moves, reads

SMALL = Compression(long_result_tokens=200, keep_results=1, micro_frees=0.0, span_exchanges=2, keep_exchanges=1)
NO_ANSWER: dict[str, Any] = dict.fromkeys(("message_id", "model", "stop_reason"))


@cache
def plan_once() -> Plan:
    return Loop(model="claude-sonnet-4-5", client=ScriptedAPI([]).client(), clock=FakeClock()).plan


def workplace(messages: list[Message]) -> Workplace:
    """A workplace whose history is `messages`."""
    plan = plan_once()
    log = MemoryLog("run-1", payloads="keep", clock=plan.clock, entropy=plan.entropy)
    at = Workplace(plan=plan, journal=Journal(log), history=History(), outbox=Outbox(), partial=False)
    for message in messages:
        content, more = message["content"], NO_ANSWER if message["role"] == "assistant" else {}
        if isinstance(content, str):
            at.join(message["role"], [at.journal.keep_text(content)], form="text", **more)
        else:
            at.join(message["role"], [at.journal.keep(block) for block in content], **more)
    return at


def edits_by(level: str, messages: list[Message]) -> tuple[Edit, ...]:
    match level:
        case "snip":
            return snip(messages, SMALL)
        case "micro":
            return micro(messages, SMALL, 10_000)
        case "collapse":
            staged: list[Staged] = []
            while (span := next_span(messages, SMALL, staged)) is not None:
                staged.append(Staged(span=span, summary="It was done."))
            return drain(messages, staged, SMALL)
        case _:
            return compact(messages, "It was done.", SMALL)


@pytest.mark.parametrize("level", ["snip", "micro", "collapse", "compact"])
@settings(max_examples=40)
@given(messages=drawn_histories(min_size=4))
def test_the_history_the_log_and_what_is_sent_are_what_the_edits_say(level: str, messages: list[Message]) -> None:
    assume(list(history_problems(messages)) == [])  # calls that wait for approval are answered before anything is cut

    async def main() -> None:
        at = workplace(messages)
        shown = at.history.messages()
        edits = edits_by(level, shown)
        rewrite(at, level, shown, edits)
        after = apply(messages, edits)
        assert at.history.messages() == after
        assert Log.of(at.journal.log).messages == after
        afresh = workplace(after)
        assert at.history.body() == afresh.history.body()
        assert (at.history.weight, at.history.marks) == (afresh.history.weight, afresh.history.marks)
        assert [at.history.role(n) for n in range(len(after))] == [message["role"] for message in after]
        at.join("user", [at.journal.keep(histories.text("More."))])  # what is appended then finds its place
        assert at.history.messages()[-1] == {"role": "user", "content": [histories.text("More.")]}

    asyncio.run(main())


def test_what_an_edit_leaves_as_it_was_is_not_committed_to_again() -> None:
    """Of two results in one message one is cleared: the other keeps its commitment, and only one payload is new."""

    async def main() -> None:
        whole = "line\n" * 400
        calls = histories.assistant(histories.call("a"), histories.call("b"))
        answered = histories.user(histories.result("a", whole), histories.result("b", whole + "x"))
        at = workplace([histories.user("Go."), calls, answered, *histories.steps(3)])
        before = at.history.skeletons(2)
        messages = at.history.messages()
        changed = {
            **messages[2],
            "content": [{**messages[2]["content"][0], "content": "gone"}, messages[2]["content"][1]],
        }
        rewrite(at, "test", messages, [Edit(start=2, stop=3, messages=(changed,))])
        after = at.history.skeletons(2)
        assert after[1] == before[1]
        assert after[0]["commitment"] != before[0]["commitment"]

    asyncio.run(main())


def test_all_that_a_level_changes_is_one_record() -> None:
    compression = Compression(snip_at=None, micro_at=None, stage_at=None, collapse_at=None)
    told = meet([*reads(6), reply("Done.")], tools=[files(8_000)], window=20_000, compression=compression)
    changes = moves(told, "HistoryCompressed")
    edits = [record["edits"] for record in told.log.records if record.kind == "message" and record["op"] == "edit"]
    assert len(edits) == len(changes) > 0
    assert all(one["start"] == 0 and one["stop"] >= 5 for (one,) in edits)


def test_many_edits_are_one_record_that_says_what_stands_there_then() -> None:
    async def main() -> None:
        steps = histories.steps(4)
        at = workplace([histories.user("Go."), *steps])
        messages, before = at.history.messages(), at.history.skeletons(2)
        cleared = [
            Edit(start=place, stop=place + 1, messages=({**messages[place], "content": [gone(messages[place])]},))
            for place in (4, 2)
        ]
        count = at.journal.log.head[0]
        rewrite(at, "test", messages, cleared)
        assert at.journal.log.head[0] == count + 1
        record = Log.of(at.journal.log).records[-1]
        assert (record["op"], [(one["start"], one["stop"]) for one in record["edits"]]) == ("edit", [(2, 3), (4, 5)])
        [told] = record["edits"][0]["messages"]
        assert (told["role"], told["form"], told["blocks"]) == ("user", "blocks", at.history.skeletons(2))
        [now], [was] = told["blocks"], before
        assert now == {**was, "commitment": now["commitment"], "bytes": now["bytes"]}
        assert now["commitment"] != was["commitment"]

    asyncio.run(main())


def gone(message: Message) -> Message:
    """Its result, cleared."""
    return {**message["content"][0], "content": "gone"}


class OneByOne(MemoryLog):
    """A log that cannot keep many contents at once."""

    keep_all: Any = None


@pytest.mark.parametrize("log", [MemoryLog, OneByOne])
def test_secrets_are_taken_out_of_contents_that_are_kept_together(log: type[MemoryLog]) -> None:
    """Of many blocks one has a secret: that one is kept without it, the others as they are, in their order."""
    token = "ghp_" + "a1B2" * 9
    said = [f"text {number}" if number != 40 else f"the token is {token}." for number in range(80)]
    kept = log("run-1", payloads="keep")
    journal = Journal(kept, SECRETS)
    parts = journal.keep_all([histories.text(one) for one in said])
    found = [kept.payloads.find(part.skeleton["commitment"]) for part in parts]
    texts = [json.loads(one[1])["text"] for one in found if one is not None]
    assert [json.loads(part.encoded)["text"] for part in parts] == said
    assert texts == [one if token not in one else "the token is [redacted: github_token]." for one in said]
    assert list(journal.with_redacted({})["redacted"]) == [parts[40].skeleton["commitment"]]


@pytest.mark.parametrize("blocks", [False, True], ids=["a text", "blocks"])
def test_a_secret_in_the_new_content_of_a_result_is_taken_out(blocks: bool) -> None:
    """Of two results that are cut, what is new in one has a secret: it alone is kept without it."""
    token = "ghp_" + "a1B2" * 9
    kept = MemoryLog("run-1", payloads="keep")
    journal = Journal(kept, SECRETS)
    was = journal.keep_all([histories.result("a", "long"), histories.result("b", "long")])
    said = [f"the token is {token}.", "head and tail"]
    new = [histories.result(own, [histories.text(one)] if blocks else one) for own, one in zip("ab", said, strict=True)]
    parts = journal.keep_all(new, [one.skeleton for one in was])
    assert [json.loads(part.encoded) for part in parts] == new
    found = [kept.payloads.find(part.skeleton["commitment"]) for part in parts]
    texts = [one[1].decode() for one in found if one is not None]
    assert ["[redacted: github_token]" in one for one in texts] == [True, False]
    assert not any(token in one for one in texts)
    told = [{**one.skeleton, "commitment": "", "bytes": 0} for one in (*was, *parts)]
    assert told[:2] == told[2:]


def test_an_id_out_of_which_a_secret_was_taken_is_looked_at_again_when_its_result_is_cut() -> None:
    token = "ghp_" + "a1B2" * 9
    kept = MemoryLog("run-1", payloads="keep")
    journal = Journal(kept, SECRETS)
    was = journal.keep_all([histories.result(token, "long")])
    parts = journal.keep_all([histories.result(token, "head")], [one.skeleton for one in was])
    found = [kept.payloads.find(part.skeleton["commitment"]) for part in (*was, *parts)]
    texts = [one[1].decode() for one in found if one is not None]
    assert len(texts) == 2
    assert not any(token in one for one in texts)


def test_a_change_that_the_api_would_refuse_is_not_made() -> None:
    async def main() -> None:
        at = workplace([histories.user("Go."), *histories.steps(2)])
        messages = at.history.messages()
        records = at.journal.log.head
        with pytest.raises(InvalidCompression, match="the level x made an invalid history") as raised:
            rewrite(at, "the level x", messages, [Edit(start=2, stop=3, messages=())])
        assert raised.value.problems
        assert at.history.messages() == messages
        assert at.journal.log.head == records

    asyncio.run(main())


def test_a_rewrite_at_both_ends_and_in_the_middle_keeps_the_rest() -> None:
    async def main() -> None:
        at = workplace([histories.user(f"m{n}") if n % 2 == 0 else histories.assistant(f"m{n}") for n in range(7)])
        at.history.rewrite([Rewrite(0, 2, ()), Rewrite(3, 4, ()), Rewrite(6, 7, ())], digest(b"1"))
        assert [message["content"] for message in at.history.messages()] == ["m2", "m4", "m5"]

    asyncio.run(main())
