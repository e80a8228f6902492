"""Many files synced by the kernel in one call: every one of them is, and one that fails is told for itself."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from looplatch.audit.kernelsync import KernelSync, failure_of

NO_FILE = 1_000_000


@pytest.fixture
def kernel() -> KernelSync:
    found = KernelSync.found()
    if found is None:
        pytest.skip("the kernel cannot be asked here")
    return found


@pytest.fixture
def files(tmp_path: Path) -> Iterator[list[int]]:
    """More than the kernel is given at once."""
    opened = [os.open(tmp_path / str(n), os.O_RDWR | os.O_CREAT) for n in range(600)]
    for file in opened:
        os.write(file, b"1")
    yield opened
    for file in opened:
        os.close(file)


def test_all_files_are_synced_however_many_there_are(kernel: KernelSync, files: list[int]) -> None:
    for some in ([], files[:1], files[:256], files[:257], files):
        assert kernel.sync(some) == [None] * len(some)


@pytest.mark.parametrize("at", [0, 256, 599])
def test_a_file_that_cannot_be_synced_is_told_for_itself(kernel: KernelSync, files: list[int], at: int) -> None:
    """The kernel takes none after it: those are synced one by one."""
    outcomes = kernel.sync([*files[:at], NO_FILE, *files[at + 1 :]])
    assert [place for place, outcome in enumerate(outcomes) if outcome is not None] == [at]
    assert getattr(outcomes[at], "errno", None) == errno.EBADF
    assert kernel.sync(files) == [None] * len(files), "what was given up is not in the way"


def test_what_has_nothing_to_sync_is_told_as_fsync_tells_it(kernel: KernelSync, files: list[int]) -> None:
    reading, writing = os.pipe()
    outcomes = kernel.sync([files[0], writing, files[1]])
    assert [getattr(outcome, "errno", None) for outcome in outcomes] == [None, errno.EINVAL, None]
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(
    ("result", "code"),
    [(0, None), (1, None), (2**64 - 5, errno.EIO), (2**64 - 28, errno.ENOSPC), (-5, errno.EIO)],
)
def test_what_the_kernel_tells_is_the_negative_number_of_an_error(result: int, code: int | None) -> None:
    failure = failure_of(result)
    assert (failure and failure.errno) == code
    assert code is None or str(failure) == f"[Errno {code}] {os.strerror(code)}"


FINDING = "from looplatch.audit.kernelsync import KernelSync; print(KernelSync.found())"


def test_a_package_that_cannot_be_imported_is_done_without() -> None:
    """It warns of a setting that it does not know, and a program may take its warnings for errors."""
    command = [sys.executable, "-I", "-W", "error", "-c", FINDING]
    environment = {**os.environ, "CAIO_IMPL": "unknown"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, env=environment)
    assert (done.stdout, done.stderr) == ("None\n", "")
