"""Contents that are kept without their secrets, and contents that are deleted later: the log says so, and verifies."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import looplatch
from looplatch import Log, Tool, UsageError
from looplatch.audit import AuditLog, JsonlLog, LogInUse, MemoryLog, Secrets, SqliteLog, read, redact
from looplatch.cli import main
from looplatch.recovery.resume.lost import ContentRemoved
from looplatch.states.patterns import KNOWN_VERSION
from looplatch.states.record import Kind, Record
from looplatch.states.verify.log import verify_lines
from looplatch.testing import FakeClock, ScriptedAPI, reply, tool_use
from tests.nesting import Agents, ask
from tests.playing import ANYTHING, MODEL, played, saying, scripted
from tests.recovering import files, meet, only

SECRET = "sk-ant-" + "api03-0123456789abcdefABCDEF_-x"
MARKED = "[redacted: anthropic_key]"


async def tell(given: dict[str, Any], ctx: looplatch.ToolContext) -> str:
    return f"the key is {SECRET}"


TELL = Tool("tell", "", ANYTHING, tell, read_only=True)
DEPLOY = Tool("deploy", "", ANYTHING, tell)
ASKS = [looplatch.Rule("ask", "deploy")]


def suspended(log: Path, given: dict[str, Any]) -> None:
    """A run that was told a secret and waits for someone."""
    script = [reply(tool_use("t1", "tell", {})), reply(tool_use("d1", "deploy", given))]

    async def main() -> None:
        async with scripted(ScriptedAPI(script), tools=[TELL, DEPLOY], rules=ASKS) as loop:
            assert (await loop.run("Go.", log=log)).subtype == "suspended"

    asyncio.run(main())


async def approved(log: Path, **given: Any) -> tuple[looplatch.ResultMessage, ScriptedAPI]:
    api = ScriptedAPI([reply("Done.")])
    async with scripted(api, clock=FakeClock(), tools=[TELL, DEPLOY], rules=ASKS) as loop:
        return await loop.resume(log, approvals={"d1": looplatch.Allow()}, **given), api


def test_a_secret_is_sent_and_not_kept(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    play = asyncio.run(
        played([reply(tool_use("t1", "tell", {"token": SECRET})), reply("I see.")], log=log, tools=[TELL])
    )
    assert SECRET in str(play.sent[1])
    assert SECRET in str(play.run.messages)
    assert SECRET.encode() not in log.read_bytes() + log.with_suffix(".payloads").read_bytes()
    found = read(log)
    assert SECRET not in str(found.messages)
    assert MARKED in str(found.messages)
    assert {kind for record in found for kinds in record.get("redacted", {}).values() for kind in kinds} == {
        "anthropic_key"
    }
    assert looplatch.verify(log).ok
    assert looplatch.replay(log).ok


def edited(path: Path) -> tuple[Log, Record]:
    """A run whose history is edited: of two results in one message one is cleared."""
    clears = only(micro_at=0.5, micro_frees=0.0, keep_results=3)
    pairs = [reply(*(tool_use(f"t{turn}{one}", "read", {"path": one}) for one in "ab")) for turn in range(4)]
    meet([*pairs, reply("Done.")], tools=[files(8_000)], window=30_000, compression=clears, log=path)
    log = read(path)
    return log, next(record for record in log if record.get("op") == "edit")


def test_of_an_edit_only_what_it_brought_is_deleted(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    log, edit = edited(path)
    kept = [block["commitment"] for one in edit["edits"] for new in one["messages"] for block in new["blocks"]]
    before = {block["commitment"] for one in log.records[: edit.seq] for block in one.get("blocks") or ()}
    assert len(set(kept) & before) > 0
    brought = [one for one in kept if one not in before]
    assert len(brought) > 0
    done = redact(path, edit.seq)
    assert sorted(done.commitments) == sorted(set(brought))
    left = read(path).payloads
    assert [one for one in kept if left.find(one) is None] == brought
    assert looplatch.verify(path).ok
    with pytest.raises(UsageError, match=rf"the record {edit.seq} \(message\) has no contents of its own"):
        redact(path, edit.seq)


def test_records_with_the_same_contents_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.jsonl"
    log, edit = edited(path)
    last = edit["edits"][0]["messages"][-1]["blocks"][-1]["commitment"]
    naming = [record.seq for record in log if last in str(record.data)]
    assert edit.seq in naming[1:]
    assert main(["redact", str(path), "--seq", str(naming[0])]) == 0
    others = ", ".join(map(str, naming[1:]))
    told = capsys.readouterr().out.splitlines()[-1]
    assert told == f"{len(naming) - 1} other records had the same contents: {others}"
    assert looplatch.verify(path).ok


def test_without_patterns_all_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    asyncio.run(played([reply(tool_use("t1", "tell", {})), reply("I see.")], log=log, tools=[TELL], secrets=None))
    assert SECRET in str(read(log).messages)
    assert looplatch.verify(log).ok


def test_own_patterns_are_a_setting_of_the_loop(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    secrets = Secrets(own={"customer": "customer-[0-9]+"})
    asyncio.run(played([reply("Hello.")], log=log, prompt="I am customer-17", secrets=secrets))
    assert read(log).messages[0]["content"] == "I am [redacted: customer]"
    assert looplatch.verify(log).ok
    with pytest.raises(UsageError, match="secrets"):
        looplatch.Loop(model=MODEL, secrets={"x": "y"})  # type: ignore[arg-type]


def test_a_secret_that_stands_in_a_payload_is_told(tmp_path: Path) -> None:
    """A writer that claims to take secrets out, and does not."""
    log = tmp_path / "run.jsonl"
    asyncio.run(played([reply("Hello.")], log=log, prompt=f"It is {SECRET}", secrets=Secrets(known=False)))
    assert looplatch.verify(log).ok
    report = verify_lines(
        [line.replace(b'"known":null', b'"known":%d' % KNOWN_VERSION) for line in read(log).lines],
        payloads=read(log).payloads.find,
    )
    assert [one for one in report.violations if one.invariant == "P1"]
    assert SECRET not in str(report)


def test_a_run_with_redacted_contents_goes_on_with_them_only_on_demand(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    suspended(log, {"n": 1})
    before = log.read_bytes()
    with pytest.raises(ContentRemoved, match=r"without the secrets.*accept_changes=True"):
        asyncio.run(approved(log))
    assert log.read_bytes() == before
    result, api = asyncio.run(approved(log, accept_changes=True))
    assert result.result == "Done."
    assert MARKED in str(api.requests[0].messages)
    claim = next(record for record in read(log) if record.kind is Kind.RESUMED)
    assert len(claim["changed_contents"]) == 1
    assert looplatch.verify(log).ok


def test_a_call_is_never_made_with_an_input_that_was_redacted(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    suspended(log, {"password": "open sesame"})
    for accepted in (False, True):  # what the tool told was redacted as well, which alone could be accepted
        with pytest.raises(ContentRemoved, match=r"still to be called.*Start another run"):
            asyncio.run(approved(log, accept_changes=accepted))


def test_an_id_that_is_a_secret_is_another_one_in_the_history(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    script = [reply(tool_use(SECRET, "tell", {}), tool_use(f"{SECRET}2", "tell", {})), reply("Done.")]
    asyncio.run(played(script, log=log, tools=[TELL]))
    assert SECRET.encode() not in log.read_bytes()
    assert SECRET.encode() not in (tmp_path / "run.payloads").read_bytes()
    assert looplatch.verify(log).ok
    assert looplatch.replay(log).ok


@pytest.mark.parametrize("name", ["model", "fallback_model"])
def test_a_model_named_like_a_secret_is_refused(name: str) -> None:
    given: Any = {"model": MODEL, name: SECRET}
    with pytest.raises(UsageError, match=f"{name}.*looks like a secret") as caught:
        looplatch.Loop(**given)
    assert SECRET not in str(caught.value)


def test_a_run_named_like_a_secret_is_refused_before_anything_is_written() -> None:
    log = MemoryLog(SECRET)

    async def main() -> None:
        async with scripted(ScriptedAPI([])) as loop:
            await loop.run("Go.", log=log)

    with pytest.raises(UsageError, match=r"log.*looks like a secret") as caught:
        asyncio.run(main())
    assert SECRET not in str(caught.value)
    assert list(log.lines()) == []


@pytest.mark.parametrize("inner", [{"model": "claude-badge1234567"}, {"tools": [saying("badge1234567", "there")]}])
def test_a_sub_agent_of_what_looks_like_a_secret_to_its_parent_has_no_log(tmp_path: Path, inner: Any) -> None:
    """Its parent's patterns count within it, too."""

    async def main() -> Log:
        script = [reply(ask("t1", "Look there.")), reply("Done.")]
        options: dict[str, Any] = {"secrets": Secrets(own={"badge": r"badge\d{7}"}), "inner_options": inner}
        async with Agents(script, [reply("Found.")], **options) as loop:
            result = await loop.run("Go.", log=tmp_path / "run.jsonl")
        assert result.result == "Done."
        return read(tmp_path / "run.jsonl")

    [told] = asyncio.run(main()).messages[2]["content"]
    assert told["is_error"]
    assert "UsageError" in told["content"]
    assert all(b"badge1234567" not in file.read_bytes() for file in tmp_path.iterdir())


def first(log: Path, **fields: Any) -> int:
    return next(record.seq for record in read(log) if all(record.get(name) == value for name, value in fields.items()))


def test_a_deleted_content_leaves_a_tombstone_after_the_seal(tmp_path: Path) -> None:
    log, store = tmp_path / "run.jsonl", tmp_path / "run.payloads"
    asyncio.run(played([reply("The answer is 42.")], log=log))
    before, size = log.read_bytes(), store.stat().st_size
    seq = first(log, kind="message", role="assistant")
    assert main(["redact", str(log), "--seq", str(seq)]) == 0
    assert b"The answer" not in store.read_bytes()
    assert store.stat().st_size == size
    assert log.read_bytes().startswith(before)
    found = read(log)
    assert found.records[-1].kind is Kind.TOMBSTONE
    assert found.records[-1]["of"] == seq
    assert found.terminal is not None
    report = looplatch.verify(log)
    assert report.ok, str(report)
    assert report.status == "sealed"
    assert "no longer kept" in found.messages[1]["content"][0]["text"]
    assert found.messages[0]["content"] == "Go."
    assert looplatch.replay(log).ok
    assert main(["redact", str(log), "--seq", str(seq)]) == 2  # there is nothing left to delete


def test_a_deleted_content_is_missed_by_a_resume(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    suspended(log, {"n": 1})
    done = redact(log, first(log, kind="message", role="user"))
    assert len(done.commitments) == len(done.tombstones) == 1
    assert looplatch.verify(log).status == "suspended"
    with pytest.raises(ContentRemoved, match="was deleted") as caught:
        asyncio.run(approved(log, accept_changes=True))
    assert (caught.value.commitment, caught.value.how) == (done.commitments[0], "deleted")


def test_a_tombstone_of_a_content_that_is_still_there_is_told(tmp_path: Path) -> None:
    """The process that deletes died between the two."""
    log, store = tmp_path / "run.jsonl", tmp_path / "run.payloads"
    asyncio.run(played([reply("The answer is 42.")], log=log))
    kept = store.read_bytes()
    seq = first(log, kind="message", role="assistant")
    redact(log, seq)
    store.write_bytes(kept)
    assert {one.invariant for one in looplatch.verify(log).violations} == {"P3"}
    redact(log, seq)
    assert looplatch.verify(log).ok


def test_what_cannot_be_deleted_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    asyncio.run(played([reply("The answer is 42.")], log=log))
    move = first(log, kind="transition")
    for seq in (-1, 10_000, move):
        with pytest.raises(UsageError, match="seq"):
            redact(log, seq)
    assert looplatch.verify(log).ok

    async def running() -> None:
        async with scripted(ScriptedAPI([reply("x")])) as loop, loop.run("Go.", log=tmp_path / "other.jsonl"):
            with pytest.raises(LogInUse):
                redact(tmp_path / "other.jsonl", 1)

    asyncio.run(running())


def test_a_name_that_a_model_wrote_is_recorded_without_its_secret(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    asyncio.run(played([reply(tool_use("t1", SECRET, {})), reply("I see.")], log=log, tools=[TELL]))
    assert SECRET.encode() not in log.read_bytes()
    assert MARKED.encode() in log.read_bytes()
    assert looplatch.verify(log).ok


TICKET = "ticket-[0-9]{6}"


def test_patterns_of_ones_own_are_looked_for_where_they_are_given(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    script = [reply(tool_use("ticket-123456", "tell", {})), reply("It is ticket-654321.")]
    asyncio.run(played(script, log=log, tools=[TELL]))
    assert looplatch.verify(log).ok
    report = looplatch.verify(log, secrets=Secrets(own={"ticket": TICKET}))
    assert {one.invariant for one in report.violations} == {"P1"}
    told = {one.message for one in report.violations}
    assert told == {"the record has a secret in it", "a kept payload has a secret in it"}
    assert "123456" not in str(report)
    assert "654321" not in str(report)
    assert looplatch.verify(log, secrets=Secrets(own={"ticket": "ticket-[0-9]{7}"})).ok


def test_a_pattern_that_the_run_had_and_nobody_gives_is_asked_for(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    mine = Secrets(own={"ticket": TICKET})
    asyncio.run(played([reply("It is ticket-654321.")], log=log, secrets=mine))
    assert looplatch.verify(log).ok
    assert looplatch.verify(log, secrets=mine).ok
    for other in (Secrets(), Secrets(own={"ticket": "ticket-[0-9]{7}"})):
        report = looplatch.verify(log, secrets=other)
        assert [(one.invariant, one.line) for one in report.violations] == [("P1", 1)]
        assert "'ticket'" in str(report)


@pytest.mark.parametrize("name", ["run.jsonl", "run.sqlite", None])
def test_a_content_that_no_record_names_is_judged_too(tmp_path: Path, name: str | None) -> None:
    """A process died between a content and its record; or somebody put it there."""
    orphan = b'"It is %b"' % SECRET.encode()
    log: AuditLog = MemoryLog("r")
    if name is not None:
        log = (SqliteLog if name == "run.sqlite" else JsonlLog)(tmp_path / name, "r")

    async def go() -> None:
        async with scripted(ScriptedAPI([reply("Hello.")])) as loop, loop.run("Go.", log=log) as run:
            log.keep(orphan)
            await run

    asyncio.run(go())
    report = looplatch.verify(log)
    assert {one.invariant for one in report.violations} == {"P1"}
    assert SECRET not in str(report)


def test_what_was_torn_off_and_moved_aside_is_deleted_too(tmp_path: Path) -> None:
    """The text was begun before a crash and written anew after it; of another text nothing is touched."""
    log = tmp_path / "run.jsonl"
    asyncio.run(played([reply("The answer is 42.")], log=log))
    seq = first(log, kind="message", role="assistant")
    named = read(log).records[seq]["blocks"][0]["commitment"]
    head = b'{"commitment":"%b","salt":"%b","payload":'
    found = read(log).payloads.find(named)
    assert found is not None
    begun = found[1][: found[1].index(b"42")]
    aside = {
        "run.payloads.1.torn": head % (b"0" * 64, b"1" * 32) + begun,
        "run.payloads.2.torn": head % (named.encode(), b"1" * 32) + b'"what it said, in part',
        "run.payloads.3.torn": head % (b"0" * 64, b"1" * 32) + b'"another',
        "run.payloads.4.torn": b'{"commitment":"00',
    }
    for name, data in aside.items():
        (tmp_path / name).write_bytes(data)
    assert redact(log, seq).commitments == (named,)
    left = {name: (tmp_path / name).read_bytes() for name in aside}
    assert {name: data.strip() for name, data in left.items()} == {
        **aside,
        "run.payloads.1.torn": b"",
        "run.payloads.2.torn": b"",
    }
    assert [len(data) for data in left.values()] == [len(data) for data in aside.values()]
    assert looplatch.verify(log).ok


def test_a_run_is_not_resumed_with_secrets_that_its_calls_are_named_by(tmp_path: Path) -> None:
    """Its calls would have other ids from then on than in the records before."""
    log = tmp_path / "run.jsonl"
    script = [reply(tool_use("ticket-123456", "tell", {})), reply("I see.")]

    async def main() -> None:
        api = ScriptedAPI(script)
        async with scripted(api, tools=[TELL]) as loop:
            await loop.run("Go.", log=log, pause_before=["orchestrate"])
        before = log.read_bytes()
        async with scripted(api, tools=[TELL], secrets=Secrets(own={"ticket": TICKET})) as loop:
            with pytest.raises(UsageError, match=r"an id in which a secret is found now \(ticket\)"):
                await loop.resume(log, accept_changes=True)
        assert log.read_bytes() == before
        async with scripted(api, tools=[TELL]) as loop:
            assert (await loop.resume(log, accept_changes=True)).terminal == "answered"

    asyncio.run(main())
