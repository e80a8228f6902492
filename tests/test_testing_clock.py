"""The fake clock: its time moves as told, and wakes sleepers and timers in their right order."""

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.testing import FakeClock, ScriptError

SECOND = 1_000_000_000


def test_it_starts_where_it_is_told_and_stands_still() -> None:
    clock = FakeClock(datetime(1970, 1, 2, 0, 0, 1, 5, tzinfo=UTC))
    assert clock.now_ns() == 86_401 * SECOND + 5_000
    assert clock.now_ns() == clock.now_ns()
    assert clock.monotonic_ns() == 0


def test_advance_moves_both_times() -> None:
    clock = FakeClock(datetime(1970, 1, 1, tzinfo=UTC))
    clock.advance(1.5)
    assert (clock.now_ns(), clock.monotonic_ns()) == (1_500_000_000, 1_500_000_000)


def test_a_start_without_a_zone_and_time_backwards_are_refused() -> None:
    with pytest.raises(ScriptError, match="the time has no zone"):
        FakeClock(datetime(2026, 1, 1))
    with pytest.raises(ScriptError, match="time does not run backwards"):
        FakeClock().advance(-1)


def test_timers_fire_in_their_order_each_at_its_own_time() -> None:
    clock = FakeClock()
    fired: list[tuple[str, int]] = []

    def note(name: str) -> None:
        fired.append((name, clock.monotonic_ns() // SECOND))

    def early_too() -> None:
        note("early too")
        clock.call_later(1, lambda: note("set on the way"))

    clock.call_later(3, lambda: note("late"))
    clock.call_later(1, lambda: note("early"))
    clock.call_later(2, lambda: note("cancelled")).cancel()
    clock.call_later(1, early_too)
    clock.advance(2.5)
    assert fired == [("early", 1), ("early too", 1), ("set on the way", 2)]
    clock.advance(10)
    assert fired[3:] == [("late", 3)]


def test_a_cancelled_timer_and_a_fired_one_say_so() -> None:
    clock = FakeClock()
    cancelled, fired = clock.call_later(1, lambda: None), clock.call_later(1, lambda: None)
    cancelled.cancel()
    assert (cancelled.cancelled, fired.cancelled) == (True, False)
    clock.advance(1)
    assert fired.cancelled


def test_sleeps_take_no_real_time_and_end_in_their_order() -> None:
    async def main() -> list[tuple[str, int]]:
        clock, woken = FakeClock(), list[tuple[str, int]]()

        async def sleeper(name: str, *naps: float) -> None:
            for nap in naps:
                await clock.sleep(nap)
                woken.append((name, clock.monotonic_ns() // SECOND))

        await asyncio.gather(sleeper("a", 3_000), sleeper("b", 1_000, 1_000, 2_000), sleeper("c", 2_500))
        return woken

    assert asyncio.run(main()) == [("b", 1_000), ("b", 2_000), ("c", 2_500), ("a", 3_000), ("b", 4_000)]


def test_a_timer_on_the_way_of_a_sleep_fires_and_one_behind_it_does_not() -> None:
    async def main() -> list[str]:
        clock, fired = FakeClock(), list[str]()
        clock.call_later(5, lambda: fired.append("on the way"))
        clock.call_later(15, lambda: fired.append("behind"))
        await clock.sleep(10)
        await asyncio.sleep(0)
        return fired

    assert asyncio.run(main()) == ["on the way"]


def test_sleeps_are_listed_and_no_sleep_is_long_when_it_is_not() -> None:
    async def main() -> FakeClock:
        clock = FakeClock(autoadvance=False)
        await clock.sleep(0)
        await clock.sleep(-1)
        return clock

    clock = asyncio.run(main())
    assert (clock.slept, clock.monotonic_ns()) == ([0, -1], 0)


def test_without_autoadvance_a_sleep_waits_to_be_advanced() -> None:
    async def main() -> None:
        clock = FakeClock(autoadvance=False)
        sleep = asyncio.create_task(clock.sleep(2))
        await asyncio.sleep(0)
        clock.advance(1.999)
        await asyncio.sleep(0)
        assert not sleep.done()
        clock.advance(0.001)
        await sleep

    asyncio.run(main())


def test_a_cancelled_sleep_no_longer_moves_the_time() -> None:
    async def main() -> int:
        clock = FakeClock()
        long, short = asyncio.create_task(clock.sleep(1_000)), asyncio.create_task(clock.sleep(1))
        await short
        long.cancel()
        await asyncio.gather(long, return_exceptions=True)
        await clock.sleep(1)
        return clock.monotonic_ns()

    assert asyncio.run(main()) == 2 * SECOND


def test_one_clock_serves_one_loop_after_another() -> None:
    clock = FakeClock()

    async def interrupted() -> None:
        sleep = asyncio.create_task(clock.sleep(1_000))
        await asyncio.sleep(0)
        assert not sleep.done()

    asyncio.run(interrupted())
    asyncio.run(clock.sleep(1))
    assert clock.monotonic_ns() == SECOND


@given(st.lists(st.floats(0.001, 1_000), max_size=8))
def test_any_sleepers_wake_in_the_order_of_their_ends(naps: list[float]) -> None:
    async def main() -> list[float]:
        clock, woken = FakeClock(), list[float]()

        async def sleeper(nap: float) -> None:
            await clock.sleep(nap)
            woken.append(nap)
            assert clock.monotonic_ns() == round(nap * SECOND)

        await asyncio.gather(*(sleeper(nap) for nap in naps))
        return woken

    assert asyncio.run(main()) == sorted(naps, key=lambda nap: round(nap * SECOND))
