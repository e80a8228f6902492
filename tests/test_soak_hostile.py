"""Some of the hostile runs of `make soak`; a seed is one run each time, and what is wrong is told with its seed."""

import asyncio
from pathlib import Path

import pytest

from looplatch.testing import ScriptError
from tests.soak import hostile
from tests.soak.hostile import Broken, live, shown, soak
from tests.soak.hostile_life import Life


@pytest.mark.parametrize("start", range(0, 40, 10))
def test_hostile_runs_hold(start: int) -> None:
    assert soak(10, start).startswith("10 hostile runs of ")


@pytest.mark.parametrize("seed", range(4))
def test_a_seed_is_one_run(tmp_path: Path, seed: int) -> None:
    told: list[str] = []
    for name in "ab":
        folder = tmp_path / name
        folder.mkdir()
        told.append(shown(live(seed, folder)))
    assert told[0] == told[1]


class Hanging(Life):
    """It waits for what never comes."""

    async def lived(self) -> int:
        await super().lived()
        await asyncio.Event().wait()
        return 0


class Wrong(Life):
    """Something does not hold of it."""

    async def lived(self) -> int:
        raise AssertionError("it has changed")


def test_a_run_that_hangs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile, "Life", Hanging)
    with pytest.raises(Broken, match=r"hostile\.py 1 3 shows it") as caught:
        live(3, tmp_path)
    assert isinstance(caught.value.__cause__, ScriptError)


def test_all_that_is_wrong_is_counted_and_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hostile, "Life", Wrong)
    with pytest.raises(AssertionError, match="2 of 2 hostile runs are broken"):
        soak(2, 7)
    said = capsys.readouterr().err
    for part in ("it has changed", "seed 7: ", "hostile.py 1 8 shows it"):
        assert part in said
