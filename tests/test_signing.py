"""Seals and checkpoints that are signed: with the public key it is seen who wrote a log, whatever was made of it."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

import looplatch
from looplatch import Tool, UsageError
from looplatch.audit import KeySigner, LogFailed, MemoryLog, PublicKey, SigningFailed, key_id, public_key, read, redact
from looplatch.cli import main
from looplatch.recovery.resume.errors import LoopChanged
from looplatch.states.record import ZEROS, signed_bytes
from looplatch.states.verify.findings import Report
from looplatch.states.verify.log import verify_lines
from looplatch.testing import ScriptedAPI, reply, tool_use
from tests.forge import broken, encode, keep_up, naive_root, named, sealed
from tests.playing import ANYTHING, MODEL, played, saying, scripted

OURS, THEIRS = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2))
NAME = KeySigner(OURS).key_id
PEM, PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
LOOK = saying("look", "there " * 20)
STORES = [("run.jsonl", None), ("run.jsonl", 3_000), ("run.sqlite", None)]


def private_file(folder: Path, key: Any = OURS, secret: bytes | None = None) -> Path:
    how = serialization.BestAvailableEncryption(secret) if secret else serialization.NoEncryption()
    path = folder / "private.pem"
    path.write_bytes(key.private_bytes(PEM, PKCS8, how))
    return path


def public_file(folder: Path, key: Ed25519PrivateKey = OURS) -> Path:
    path = folder / f"{KeySigner(key).key_id[:8]}.pem"
    path.write_bytes(key.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
    return path


def ran(log: Path, signer: Any, segment_bytes: int | None = None) -> None:
    script = [*(reply(tool_use(f"t{n}", "look", {"n": n})) for n in range(1, 4)), reply("It is there.")]
    play = asyncio.run(played(script, log=log, tools=[LOOK], signer=signer, segment_bytes=segment_bytes))
    assert play.error is None


def signed_in(log: Path) -> list[tuple[str, bool]]:
    return [(r.kind, "signature" in r.data) for r in read(log) if r.kind in ("checkpoint", "terminal")]


@pytest.mark.parametrize(("name", "segment_bytes"), STORES)
def test_the_seal_and_each_checkpoint_are_signed(tmp_path: Path, name: str, segment_bytes: int | None) -> None:
    log = tmp_path / name
    ran(log, private_file(tmp_path), segment_bytes)
    found = signed_in(log)
    assert found[-1] == ("terminal", True)
    assert (len(found) > 2) is (segment_bytes is not None)
    assert all(signed for _, signed in found)
    assert read(log).records[0]["signed_by"] == NAME
    report = looplatch.verify(log, key=public_file(tmp_path))
    assert report.ok, str(report)
    assert report.signed == report.count == len(read(log))
    assert looplatch.verify(log).ok
    assert looplatch.verify(log).signed is None
    assert looplatch.replay(log).ok
    foreign = looplatch.verify(log, key=public_file(tmp_path, THEIRS))
    assert broken(foreign) == {"I11"}
    assert NAME in str(foreign)
    redact(log, next(r.seq for r in read(log) if r.get("role") == "assistant"))
    report = looplatch.verify(log, key=public_file(tmp_path))
    assert report.ok, str(report)
    assert report.signed is not None
    assert report.signed < report.count  # a tombstone after the seal is signed by nobody


def test_the_key_is_named_by_the_hash_of_its_der(tmp_path: Path) -> None:
    """What `openssl pkey -pubin -outform DER | sha256sum` says: RFC 8410 has the bytes before the key."""
    der = bytes.fromhex("302a300506032b6570032100") + OURS.public_key().public_bytes_raw()
    assert hashlib.sha256(der).hexdigest() == NAME == key_id(public_file(tmp_path))


def test_a_log_that_is_not_signed_is_told_with_a_key_alone(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    ran(log, None)
    assert looplatch.verify(log).ok
    report = looplatch.verify(log, key=public_file(tmp_path))
    assert broken(report) == {"I11"}
    assert report.violations[0].line == 1
    assert report.violations[0].found == "no key"
    with pytest.raises(UsageError, match="key: none is given"):
        looplatch.verify(log, key=[])


# --- who wrote a log anew


@cache
def lines() -> tuple[bytes, ...]:
    """A log in segments, signed."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "run.jsonl"
        ran(log, KeySigner(OURS), 3_000)
        return read(log).lines


def written_anew(records: Sequence[dict[str, Any]], sign: Callable[[bytes], bytes] | None) -> list[bytes]:
    """A whole log of these records, as right as one who cannot sign with our key can make it."""
    done: list[dict[str, Any]] = []
    history: list[list[str]] = []
    for old in records:
        record = {name: value for name, value in old.items() if name not in ("hash", "signature")}
        record["prev"] = done[-1]["hash"] if done else ZEROS
        if record["kind"] in ("terminal", "checkpoint"):
            record["root"] = naive_root(one["hash"] for one in done)
            if record["kind"] == "terminal":
                record["history"] = named(history)
            if sign is not None:
                record["signature"] = sign(signed_bytes(record)).hex()
            elif "signature" in old:
                record["signature"] = old["signature"]
        elif "sent" in record:
            record["sent"] = named(history)
        done.append(sealed(record))
        if record["kind"] == "message":
            keep_up(history, record, done[-1]["hash"])
    return [encode(record) + b"\n" for record in done]


def judged(log: Sequence[bytes]) -> Report:
    key = OURS.public_key()

    def verifies(data: bytes, signature: bytes) -> bool:
        try:
            key.verify(signature, data)
        except Exception:
            return False
        return True

    return verify_lines(log, keys=[PublicKey(key_id=NAME, verifies=verifies)])


def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines()]


def test_a_log_as_it_was_is_written_anew_the_same() -> None:
    assert tuple(written_anew(recorded(), OURS.sign)) == lines()
    assert judged(lines()).signed == len(lines())


@settings(max_examples=60, deadline=None)
@given(place=st.integers(0, 10_000), by=st.sampled_from(["keeping", "stripping", "another key"]))
def test_one_changed_record_is_found_though_all_else_was_made_to_fit(place: int, by: str) -> None:
    records = recorded()
    place %= len(records)
    records[place]["ts"] = "2001-01-01T00:00:00.000000Z"
    if by == "stripping":
        for record in records:
            record.pop("signature", None)
    forged = written_anew(records, THEIRS.sign if by == "another key" else None)
    assert verify_lines(forged).ok, str(verify_lines(forged))
    report = judged(forged)
    assert broken(report) == {"I11"}
    before = [n for n, one in enumerate(records) if one["kind"] in ("checkpoint", "terminal") and n < place]
    assert report.signed == (before[-1] + 1 if before and by == "keeping" else 0)


@settings(max_examples=30, deadline=None)
@given(which=st.integers(0, 20), place=st.integers(0, 127), to=st.sampled_from("0123456789abcdefgA"))
def test_a_signature_with_another_digit_is_none(which: int, place: int, to: str) -> None:
    records = recorded()
    signed = [one for one in records if "signature" in one]
    old = signed[which % len(signed)]["signature"]
    signed[which % len(signed)]["signature"] = new = old[:place] + to + old[place + 1 :]
    forged = written_anew(records, None)
    # A record after it is another then, and the signatures that follow are of the log as it was.
    assert ("I11" in broken(judged(forged))) is (new != old)
    assert broken(judged(forged)) <= {"I11"}


@pytest.mark.parametrize("signed_by", [None, "a name", KeySigner(THEIRS).key_id])
def test_a_log_that_names_another_key_is_found(signed_by: str | None) -> None:
    records = recorded()
    records[0]["signed_by"] = signed_by
    report = judged(written_anew(records, THEIRS.sign))
    assert broken(report) == {"I11"}
    assert (report.violations[0].line, report.signed) == (1, 0)


def test_the_end_that_is_cut_off_is_not_called_signed() -> None:
    report = judged(lines()[:-2])  # the seal, and the move before it
    assert (report.ok, report.status) == (True, "open")
    assert report.signed is not None
    assert 0 < report.signed < report.count


# --- another process


async def look(given: dict[str, Any], ctx: looplatch.ToolContext) -> str:
    return "there"


ASKED = {"tools": [Tool("look", "", ANYTHING, look)], "rules": [looplatch.Rule("ask", "look")]}


def suspended(log: Any, signer: Any, segment_bytes: int | None = None) -> None:
    async def go() -> None:
        api = ScriptedAPI([reply(tool_use("t1", "look", {}))])
        async with scripted(api, signer=signer, segment_bytes=segment_bytes, **ASKED) as loop:
            assert (await loop.run("Go.", log=log)).subtype == "suspended"

    asyncio.run(go())


def taken_up(log: Any, signer: Any, **more: Any) -> None:
    async def go() -> None:
        async with scripted(ScriptedAPI([reply("Done.")]), signer=signer, **ASKED) as loop:
            result = await loop.resume(log, approvals={"t1": looplatch.Allow()}, **more)
            assert result.subtype == "success"

    asyncio.run(go())


@pytest.mark.parametrize(("name", "segment_bytes"), STORES[::2])
def test_a_resumed_process_signs_too(tmp_path: Path, name: str, segment_bytes: int | None) -> None:
    log, key = tmp_path / name, public_file(tmp_path)
    suspended(log, KeySigner(OURS))
    report = looplatch.verify(log, key=key)
    assert (report.ok, report.status, report.signed) == (True, "suspended", 0)
    assert "0 of them signed" in str(report)
    for other in (None, KeySigner(THEIRS)):
        with pytest.raises(LoopChanged, match="signed_by"):
            taken_up(log, other)
    taken_up(log, private_file(tmp_path))
    report = looplatch.verify(log, key=key)
    assert report.ok, str(report)
    assert report.signed == report.count


def test_another_key_is_accepted_on_demand_and_on_record(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    suspended(log, KeySigner(OURS))
    taken_up(log, KeySigner(THEIRS), accept_changes=True)
    assert looplatch.verify(log).ok
    report = looplatch.verify(log, key=public_file(tmp_path, THEIRS))
    assert report.ok, str(report)
    assert report.signed == report.count  # the seal is one of the whole log
    report = looplatch.verify(log, key=public_file(tmp_path))
    assert broken(report) == {"I11"}
    assert read(log).records[report.violations[0].line - 1].kind == "resumed"


def test_each_of_several_keys_judges_what_it_signed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, ours, theirs = tmp_path / "run.jsonl", public_file(tmp_path), public_file(tmp_path, THEIRS)
    suspended(log, KeySigner(OURS), segment_bytes=3_000)
    first = len(read(log))
    taken_up(log, KeySigner(THEIRS), accept_changes=True)
    several: list[list[Path | PublicKey]] = [[ours, theirs], [theirs, public_key(ours)], [theirs]]
    for keys in several:
        report = looplatch.verify(log, key=keys)
        assert report.ok, str(report)
        assert report.signed == report.count
    deaf = PublicKey(key_id=NAME, verifies=lambda data, signature: False)
    report = looplatch.verify(log, key=[deaf, theirs])
    assert {one.invariant for one in report.violations} == {"I11"}
    assert all(one.line <= first for one in report.violations)
    mine = Ed25519PrivateKey.from_private_bytes(bytes(32))
    report = looplatch.verify(log, key=[ours, public_file(tmp_path, mine)])
    assert report.violations[-1].message == "the run is not signed with any of these keys"
    assert main(["verify", str(log), "--key", str(ours), "--key", str(theirs)]) == 0
    assert f"{len(read(log))} of them signed" in capsys.readouterr().out
    assert main(["verify", str(log), "--key", str(ours)]) == 1


def test_a_log_of_ones_own_brings_its_signer(tmp_path: Path) -> None:
    log = MemoryLog("mine", signer=KeySigner(OURS))
    asyncio.run(played([reply("Hello.")], log=log))
    assert looplatch.verify(log, key=public_file(tmp_path)).signed == log.head[0]


def test_a_sub_agent_signs_as_its_caller_does(tmp_path: Path) -> None:
    log, key = tmp_path / "run.jsonl", public_file(tmp_path)
    script = [reply(tool_use("c1", "ask", {"prompt": "Look."})), reply("I looked."), reply("It is there.")]
    api = ScriptedAPI(script)

    async def go() -> None:
        async with (
            scripted(api) as inner,
            scripted(api, tools=[inner.as_tool("ask", "")], signer=KeySigner(OURS)) as loop,
        ):
            await loop.run("Go.", log=log)

    asyncio.run(go())
    logs = sorted(tmp_path.glob("*.jsonl"))
    assert len(logs) == 2
    for one in logs:
        report = looplatch.verify(one, key=key)
        assert report.ok, str(report)
        assert report.signed == report.count


# --- checkpoints that are handed out


def test_a_checkpoint_that_is_handed_out_is_signed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, key = tmp_path / "run.jsonl", public_file(tmp_path)
    taken: list[str] = []

    async def go() -> None:
        api = ScriptedAPI([reply("Hello.")])
        async with scripted(api, signer=KeySigner(OURS)) as loop, loop.run("Go.", log=log) as run:
            taken.extend([run.checkpoint() async for _ in run])

    asyncio.run(go())
    for text in taken:
        count, own, signature = text.split(":")
        OURS.public_key().verify(bytes.fromhex(signature), f"looplatch checkpoint {count}:{own}".encode())
        assert looplatch.verify(log, expect=text, key=key).ok
        assert looplatch.verify(log, expect=text, key=[public_file(tmp_path, THEIRS), key]).ok
        assert looplatch.verify(log, expect=text).ok
        assert looplatch.verify(log, expect=f"{count}:{own}", key=key).ok
        wrong = f"{count}:{own}:{signature[:-1]}{'0' if signature[-1] != '0' else '1'}"
        assert broken(looplatch.verify(log, expect=wrong, key=key)) == {"I11"}
    log.write_bytes(b"".join(read(log).lines[:-1]))
    assert main(["verify", str(log), "--key", str(key), "--expect", taken[-1]]) == 1
    assert "I10" in capsys.readouterr().out


# --- the command, and what cannot be used


def test_the_command_judges_by_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "run.jsonl"
    ran(log, private_file(tmp_path))
    assert main(["verify", str(log), "--key", str(public_file(tmp_path))]) == 0
    assert f"{len(read(log))} of them signed" in capsys.readouterr().out
    assert main(["verify", str(log), "--key", str(public_file(tmp_path, THEIRS)), "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["violations"][0]["invariant"], told["signed"]) == ("I11", 0)
    assert main(["verify", str(log), "--key", str(tmp_path / "private.pem")]) == 2
    assert "no public key of Ed25519" in capsys.readouterr().err


def absent(folder: Path) -> Path:
    return folder / "absent.pem"


def encrypted(folder: Path) -> Path:
    return private_file(folder, secret=b"word")


def of_another_kind(folder: Path) -> Path:
    return private_file(folder, generate_private_key(SECP256R1()))


def none_at_all(folder: Path) -> int:
    return 7


def oddly_named(folder: Path) -> "Service":
    return Service(name="arn:key")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (absent, "cannot be read"),
        (public_file, "no private key"),
        (encrypted, "is encrypted"),
        (of_another_kind, "not one of Ed25519"),
        (none_at_all, "signs nothing"),
        (oddly_named, "not the SHA-256"),
    ],
)
def test_what_is_no_signer_is_refused(tmp_path: Path, make: Callable[[Path], Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        looplatch.Loop(model=MODEL, signer=make(tmp_path))


def not_installed(name: str) -> None:
    return None


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, public = private_file(tmp_path), public_file(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", not_installed)
    with pytest.raises(UsageError, match=r"looplatch\[signing\]"):
        looplatch.Loop(model=MODEL, signer=key)
    with pytest.raises(UsageError, match=r"looplatch\[signing\]"):
        public_key(public)


class Service:
    """A service that holds the key, and is away at some moment."""

    def __init__(self, away: int | None = None, name: str = NAME, made: bytes | None = None) -> None:
        self.key_id = name
        self.left = away
        self.made = made

    def sign(self, data: bytes, /) -> bytes:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise ConnectionError("the service is away")
        return OURS.sign(data) if self.made is None else self.made


def stopped(script: Sequence[Any], log: Path, **options: Any) -> None:
    async def go() -> None:
        async with scripted(ScriptedAPI(script), **options) as loop:
            await loop.run("Go.", log=log)

    asyncio.run(go())


@pytest.mark.parametrize("service", [Service(away=0), Service(made=b"short")])
def test_a_seal_that_cannot_be_signed_is_set_by_the_next_process(tmp_path: Path, service: Service) -> None:
    log, key = tmp_path / "run.jsonl", public_file(tmp_path)
    with pytest.raises(SigningFailed) as caught:
        stopped([reply("Hello.")], log, signer=service)
    assert caught.value.key_id == NAME
    report = looplatch.verify(log)
    assert (report.ok, report.status) == (True, "open")

    async def go() -> None:
        async with scripted(ScriptedAPI([]), signer=KeySigner(OURS)) as loop:
            assert (await loop.resume(log)).subtype == "success"

    asyncio.run(go())
    report = looplatch.verify(log, key=key)
    assert report.ok, str(report)
    assert report.signed == report.count


def test_a_checkpoint_that_cannot_be_signed_stops_the_run(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    script = [*(reply(tool_use(f"t{n}", "look", {"n": n})) for n in range(1, 4)), reply("It is there.")]
    with pytest.raises(LogFailed) as caught:
        stopped(script, log, tools=[LOOK], signer=Service(away=1), segment_bytes=3_000)
    assert caught.value.action == "signing"
    assert signed_in(log) == [("checkpoint", True)]
    report = looplatch.verify(log, key=public_file(tmp_path))
    assert report.ok, str(report)
