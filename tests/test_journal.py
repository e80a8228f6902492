"""What is written into the log, and what is not."""

import asyncio
import json
from typing import Any

import pytest

from looplatch import Log, read
from looplatch.audit import MemoryLog
from looplatch.journal import Journal
from looplatch.states.events import ModelFailed, ModelResponded
from looplatch.states.record import MAX_INT, Kind, Record
from looplatch.states.state import State
from looplatch.states.trouble import TroubleKind
from looplatch.testing import ScriptedAPI, error, failing, reply, text, thinking, tool_use
from tests.playing import echo, play, saying, scripted, tool_named

SECRETS = ["hush-prompt", "hush-text", "hush-thought", "hush-input", "hush-result", "hush-system", "hush-error"]


def a_journal() -> Journal:
    return Journal(MemoryLog("run-1"))


def records(log: Log, kind: Kind) -> list[Record]:
    return [record for record in log if record.kind is kind]


def talk(**options: Any) -> Log:
    """A run with a secret in every place where contents are."""

    def fails(given: dict[str, Any], ctx: Any) -> str:
        raise ValueError("hush-error")

    script = [
        reply(
            thinking("hush-thought"),
            text("hush-text"),
            tool_use("t1", "read", {"n": "hush-input"}),
            tool_use("t2", "fail", {"n": 1}),
        ),
        error(529, "overloaded_error", "hush-error"),
        reply("Done."),
    ]
    tools = [saying("read", "hush-result"), tool_named("fail", answer=fails)]
    return play(script, prompt="hush-prompt", system="hush-system", tools=tools, **options).log


def test_no_content_stands_in_the_chain() -> None:
    log = talk()
    written = b"".join(log.lines).decode()
    assert not [secret for secret in SECRETS if secret in written]


def test_contents_stand_in_the_payload_store_unless_only_digests_are_wanted() -> None:
    kept, digests = talk(), talk(payloads="digest")
    for log, there in ((kept, True), (digests, False)):
        named_in = [block["commitment"] for record in records(log, Kind.MESSAGE) for block in record["blocks"]]
        assert [log.payloads.find(commitment) is not None for commitment in named_in] == [there] * len(named_in)
    assert "hush-text" in json.dumps(kept.messages)


def test_a_log_with_digests_only_verifies_and_says_what_is_gone() -> None:
    log = talk(payloads="digest")
    assert "no longer kept" in json.dumps(log.messages)


def test_the_genesis_says_what_the_run_was_made_of() -> None:
    told = play([reply("Done.")], tools=[echo()], system="Be brief.", params={"temperature": 0.5}, deadline_s=1.5)
    genesis = told.log.genesis
    assert genesis is not None
    assert genesis["model"] == "claude-sonnet-4-5"
    assert genesis["library"].startswith("looplatch ")
    assert genesis["sdk"].startswith("anthropic ")
    assert genesis["deadline_ms"] == 1_500
    assert genesis["limits"]["max_turns"] == 100
    assert genesis["parent"] is None
    assert (genesis["durability"], genesis["payloads"]) == ("group", "keep")
    assert all(len(genesis[name]) == 64 for name in ("system", "tools", "params", "table"))


def test_the_digests_of_a_genesis_tell_settings_apart() -> None:
    def genesis(**options: Any) -> Any:
        found = play([reply("Done.")], **options).log.genesis
        assert found is not None
        return {name: found[name] for name in ("system", "tools", "params")}

    plain = genesis()
    assert genesis() == plain
    assert plain["system"] is None
    assert genesis(system="a")["system"] != genesis(system="b")["system"]
    assert genesis(tools=[echo()])["tools"] != plain["tools"]
    assert genesis(params={"temperature": 0.5})["params"] != plain["params"]
    assert genesis(params={"extra_body": {"temperature": 0.5}})["params"] != plain["params"]
    assert genesis(params={"betas": ["a"]})["params"] not in (
        plain["params"],
        genesis(params={"betas": ["b"]})["params"],
    )
    asked = genesis(params={"extra_headers": {"anthropic-beta": "a"}})["params"]
    assert asked == genesis(params={"betas": ["a"]})["params"]
    # Keys and other headers are no matter of the log's.
    assert genesis(params={"extra_headers": {"x-key": "hush"}})["params"] == plain["params"]


def test_a_genesis_and_the_requests_are_of_what_a_loop_was_made_of() -> None:
    def genesis_and_body(*, spoilt: bool) -> tuple[Any, Any]:
        system: list[Any] = [{"type": "text", "text": "Be kind."}]
        params: dict[str, Any] = {"stop_sequences": ["END"], "extra_body": {"metadata": {"user_id": "u"}}}

        async def main() -> tuple[Any, Any]:
            api = ScriptedAPI([reply("Done.")])
            async with scripted(api, system=system, params=params) as loop:
                if spoilt:
                    system[0]["text"] = "Be rude."
                    params["stop_sequences"].append("STOP")
                    params["extra_body"]["metadata"]["user_id"] = "v"
                run = loop.run("Go.")
                async for _ in run:
                    pass
            genesis = run.log.genesis
            assert genesis is not None
            return [genesis["system"], genesis["params"]], api.requests[0].body

        return asyncio.run(main())

    assert genesis_and_body(spoilt=True) == genesis_and_body(spoilt=False)


def test_a_move_is_written_before_what_it_commands() -> None:
    log = talk()
    places = {record.seq: record for record in log}
    for effect in log.effects:
        before = [places[seq] for seq in range(effect.begin.seq) if places[seq].kind is Kind.TRANSITION]
        wanted = {"model": "stream", "tool": "stream", "sleep": "recover", "hook": "decide"}[effect.kind]
        states = [str(move.target) for move in before]
        assert wanted in states


def test_every_effect_has_its_two_records() -> None:
    log = talk()
    assert [effect.kind for effect in log.effects] == ["model", "tool", "tool", "model", "sleep", "model"]
    assert all(effect.end is not None and effect.end["class"] == effect.kind for effect in log.effects)
    assert [effect.begin["effect"] for effect in log.effects] == [effect.begin.seq for effect in log.effects]


def test_a_model_call_names_what_it_sent_and_what_came_of_it() -> None:
    told = play(
        [
            reply("Part", stop="max_tokens", usage={"input_tokens": 7, "output_tokens": 3}, id="msg_1"),
            failing(reply("Do"), after=3),
            reply("Done."),
        ]
    )
    first, second, third = told.log.effects[0], told.log.effects[1], told.log.effects[3]
    assert first.end is not None
    assert second.end is not None
    assert (first.begin["max_tokens"], second.begin["max_tokens"]) == (8_000, 64_000)
    assert first.begin["sent"] == second.begin["sent"] == third.begin["sent"], "the same messages each time"
    assert [effect.begin["attempt"] for effect in (first, second, third)] == [0, 0, 1]
    assert (first.end["outcome"], first.end["message_id"], first.end["stop_reason"]) == ("ok", "msg_1", "max_tokens")
    assert first.end["usage"]["output_tokens"] == 3
    assert second.end["outcome"] == second.end["error"]["type"] == "overloaded_error"


@pytest.mark.parametrize("read_only", [True, False])
def test_a_tool_call_names_its_key_access_and_commitments(read_only: bool) -> None:
    told = play([reply(tool_use("t1", "read", {})), reply("Done.")], tools=[echo(read_only=read_only)])
    [call] = [effect for effect in told.log.effects if effect.kind == "tool"]
    joined = [record for record in records(told.log, Kind.MESSAGE) if record["op"] == "join"]
    assert call.end is not None
    assert call.begin["idempotency_key"] == f"{told.run.id}:t1"
    assert call.begin["access"] == ("read" if read_only else "write")
    assert call.begin["input"] == joined[1]["blocks"][0]["commitment"]
    assert call.end["result"] == joined[2]["blocks"][0]["commitment"]
    assert (call.end["outcome"], call.end["is_error"]) == ("answered", False)


def test_a_log_on_disk_is_the_log_of_the_run(tmp_path: Any) -> None:
    path = tmp_path / "run.jsonl"
    told = play([reply(tool_use("t1", "read", {})), reply("Done.")], tools=[echo(read_only=False)], log=path)
    again = read(path)
    assert again.lines == told.log.lines
    assert again.messages == told.run.messages
    turn = ("prepare", "stream", "decide")
    assert again.path == told.log.path == (*turn, "orchestrate", *turn, "completed")
    assert path.stat().st_mode & 0o777 == 0o600


# --- names and numbers from outside


def test_names_from_outside_are_bounded_and_have_no_half_pairs() -> None:
    name_of = a_journal().names.of
    assert name_of("a" * 1_000) == "a" * 256
    assert name_of("a\ud83a") == "a\ufffd"
    assert name_of("\ud83d\ude00") == "\U0001f600"
    assert name_of("a" * 255 + "\ud83d\ude00") == "a" * 255 + "\U0001f600"


@pytest.mark.parametrize(
    "awkward",
    [
        {"model": "m" * 10_000, "id": "i" * 10_000},
        {"model": "\ud83a", "id": "\ud83a"},
        {"stop": "s" * 10_000},
        {"stop": "\ud83a"},
        {"usage": {"input_tokens": 2**70, "output_tokens": -5, "cache_read_input_tokens": None}},
        {"usage": {"input_tokens": 1.5, "output_tokens": "many", "cache_creation_input_tokens": True}},
    ],
    ids=str,
)
def test_whatever_a_server_says_can_be_recorded(awkward: dict[str, Any]) -> None:
    told = play([reply("Done.", **awkward)])
    assert told.error is None
    assert told.log.terminal is not None
    assert max(map(len, told.log.lines)) < 10_000


@pytest.mark.parametrize("message", ["x" * 100_000, "\ud83a", ""])
@pytest.mark.parametrize("kind", ["e" * 1_000, "\ud83a"])
def test_whatever_an_error_says_can_be_recorded(kind: str, message: str) -> None:
    told = play([failing(reply("Do"), after=3, error_type=kind, message=message)])
    assert told.error is None
    assert told.result.terminal == "model_error"
    assert max(map(len, told.log.lines)) < 10_000


def test_an_events_numbers_and_names_are_written_as_a_record_can_hold_them() -> None:
    journal = a_journal()
    responded = ModelResponded(stop_reason="\ud83a", calls=("t1", "\ud83a"), input_tokens=2**60)
    record = journal.rejected(State.PREPARE, responded, [])
    assert record["fields"]["stop_reason"] == "\ufffd"
    assert record["fields"]["calls"] == ["t1", "\ufffd"]
    assert record["fields"]["input_tokens"] == MAX_INT
    failed = ModelFailed(trouble=TroubleKind.FATAL, failure="a")
    assert journal.rejected(State.PREPARE, failed, [("always", True)])["fields"]["trouble"] == "fatal"


def test_a_block_is_encoded_and_committed_to_once() -> None:
    told = play([reply("Look.", tool_use("t1", "read", {})), reply("Done.")], tools=[echo()])
    named_at = [
        block["commitment"] for record in told.log for block in record.get("blocks", ()) if block["type"] == "tool_use"
    ]
    assert len(named_at) == 2, "at the tool's begin, and where the answer joined"
    assert len(set(named_at)) == 1
