"""The log's files: their names, modes and locks, and every way in which they cannot be had."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from looplatch.audit import JsonlLog, LogExists, LogInUse
from looplatch.audit.payloads import payloads_of
from looplatch.states.errors import UsageError
from looplatch.states.record import Kind


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("log", "payloads"),
    [
        ("run.jsonl", "run.payloads"),
        ("run", "run.payloads"),
        ("run.v1", "run.v1.payloads"),
        ("run.v1.jsonl", "run.v1.payloads"),
        ("run.payloads", "run.payloads.payloads"),
        (".jsonl", ".jsonl.payloads"),
    ],
)
def test_payloads_stand_beside_the_log(log: str, payloads: str) -> None:
    assert payloads_of(Path("/logs") / log) == Path("/logs") / payloads


def test_files_are_for_their_owner_only_whatever_the_umask(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        log = JsonlLog(tmp_path / "run.jsonl", "r")
    finally:
        os.umask(umask)
    assert (mode(tmp_path / "run.jsonl"), mode(tmp_path / "run.payloads")) == (0o600, 0o600)
    log.close()


def test_an_empty_file_is_taken_over_and_made_private(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.touch(mode=0o644)
    log = JsonlLog(path, "r")
    assert mode(path) == 0o600
    log.append(Kind.GENESIS, {})
    log.close()
    assert path.read_bytes().count(b"\n") == 1


def test_digests_need_no_payload_file(tmp_path: Path) -> None:
    log = JsonlLog(tmp_path / "run.jsonl", "r", payloads="digest")
    log.keep(b"{}")
    log.close()
    assert names(tmp_path) == {"run.jsonl"}


def test_a_record_is_in_the_file_when_append_returns_and_a_payload_when_keep_does(tmp_path: Path) -> None:
    """What is with the operating system outlives the process, however it ends: nothing is buffered here."""
    log = JsonlLog(tmp_path / "run.jsonl", "r")
    payload = b'{"type":"text","text":"hello"}'
    kept = log.keep(payload)
    stored = (tmp_path / "run.payloads").read_bytes()
    assert stored.startswith(b'{"commitment":"%b","salt":"' % kept.hex.encode())
    assert stored.endswith(b'","payload":' + payload + b"}\n")
    record = log.append(Kind.MESSAGE, {"op": "join"})
    assert record.hash.encode() in (tmp_path / "run.jsonl").read_bytes()
    log.close()


def test_the_path_is_kept_when_the_working_directory_changes(tmp_path: Path) -> None:
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        log = JsonlLog("run.jsonl", "r")
    finally:
        os.chdir(before)
    record = log.append(Kind.GENESIS, {})
    assert log.file == tmp_path / "run.jsonl"
    assert record.hash.encode() in next(log.lines())
    log.close()


def test_a_log_that_is_being_written_is_refused_to_a_second_writer(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    log = JsonlLog(path, "r1")
    with pytest.raises(LogInUse, match="another run is writing to this log") as caught:
        JsonlLog(path, "r2")
    assert caught.value.file == path
    log.append(Kind.GENESIS, {})  # the first is not disturbed
    log.close()


HOLDER = """
import sys
from looplatch.audit import JsonlLog
log = JsonlLog(sys.argv[1], "theirs")
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_log_is_refused_to_a_second_process_until_the_first_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    command = [sys.executable, "-I", "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(LogInUse):
            JsonlLog(path, "ours")
        holder.kill()  # it closes nothing by itself; the lock goes with the process
    JsonlLog(path, "ours").close()


def test_the_payload_file_is_locked_as_well(tmp_path: Path) -> None:
    """`run` and `run.jsonl` are two logs, but would share their payloads."""
    log = JsonlLog(tmp_path / "run.jsonl", "r1")
    with pytest.raises(LogInUse) as caught:
        JsonlLog(tmp_path / "run", "r2")
    assert caught.value.file == tmp_path / "run.payloads"
    assert names(tmp_path) == {"run.jsonl", "run.payloads"}
    log.close()


def test_a_log_of_another_run_is_refused_and_named(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    log = JsonlLog(path, "the-first")
    log.append(Kind.GENESIS, {})
    log.close()
    before = path.read_bytes()
    with pytest.raises(LogExists, match=r"run\.jsonl: it holds the run the-first, and") as caught:
        JsonlLog(path, "the-second")
    assert (caught.value.file, caught.value.run) == (path, "the-first")
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"# Read me\n", b"\x00" * 100, b'{"run": 3}\n', b"[]\n"])
def test_a_file_that_is_no_log_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(LogExists, match="something that is no log of looplatch") as caught:
        JsonlLog(path, "r")
    assert caught.value.run is None
    assert path.read_bytes() == content
    assert names(tmp_path) == {"notes"}


def test_payloads_left_of_an_earlier_run_are_refused(tmp_path: Path) -> None:
    (tmp_path / "run.payloads").write_bytes(b"{}\n")
    with pytest.raises(UsageError, match=r"run\.payloads holds the payloads of an earlier run"):
        JsonlLog(tmp_path / "run.jsonl", "r")
    assert names(tmp_path) == {"run.payloads"}


def test_a_log_refused_for_its_payloads_can_be_had_once_they_are_gone(tmp_path: Path) -> None:
    (tmp_path / "run.payloads").write_bytes(b"{}\n")
    with pytest.raises(UsageError):
        JsonlLog(tmp_path / "run.jsonl", "r")
    (tmp_path / "run.payloads").unlink()
    JsonlLog(tmp_path / "run.jsonl", "r").close()


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("missing/run.jsonl", "No such file or directory"),
        ("file/run.jsonl", "Not a directory"),
        ("folder", "Is a directory"),
        ("", "Is a directory"),
        ("n" * 300, "File name too long"),
        ("nu\0ll", "null"),
    ],
)
def test_a_path_that_cannot_be_written_is_a_usage_error(tmp_path: Path, path: str, problem: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match=problem) as caught:
        JsonlLog(tmp_path / path, "r")
    assert caught.value.what == "log"
    assert names(tmp_path) == {"file", "folder"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_not_writable_is_a_usage_error(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o500)
    with pytest.raises(UsageError, match="Permission denied"):
        JsonlLog(folder / "run.jsonl", "r")


def test_a_device_is_refused_and_its_mode_is_left_alone(tmp_path: Path) -> None:
    before = mode(Path("/dev/null"))
    path = tmp_path / "run.jsonl"
    path.symlink_to("/dev/null")
    with pytest.raises(UsageError, match="is no regular file"):
        JsonlLog(path, "r")
    assert mode(Path("/dev/null")) == before
    assert path.is_symlink()


def test_an_unknown_durability_is_refused_before_a_file_is_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Use one of none, group, barrier"):
        JsonlLog(tmp_path / "run.jsonl", "r", durability="always")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - the caller's mistake
    assert names(tmp_path) == set()
