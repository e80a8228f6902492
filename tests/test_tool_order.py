"""The rule of order: by examples, and against a naive reading of the rule over everything that can happen."""

from collections.abc import Sequence

import attrs
from hypothesis import given
from hypothesis import strategies as st

from looplatch.tools.order import Access, Failures, Line

READ, WRITE, MEMBER = Access.READ, Access.WRITE, Access.MEMBER


@attrs.define(eq=False)
class P:
    """A call, as the rule sees it."""

    access: Access
    ready: bool = True


def line_of(*places: P, max_parallel: int = 10) -> Line[P]:
    line = Line[P](max_parallel)
    for place in places:
        line.add(place)
    return line


def test_nothing_starts_from_nothing() -> None:
    assert line_of().start() == []


def test_reads_start_together_up_to_the_limit() -> None:
    first, second, third = P(READ), P(READ), P(READ)
    line = line_of(first, second, third, max_parallel=2)
    assert line.start() == [first, second]
    assert line.start() == []
    line.left(second)
    assert line.start() == [third]


def test_what_is_no_read_starts_alone_and_in_order() -> None:
    first, second, third = P(WRITE), P(MEMBER), P(WRITE)
    line = line_of(first, second, third)
    for place in (first, second, third):
        assert line.start() == [place]
        assert line.start() == []
        line.left(place)


def test_a_write_waits_until_the_model_has_moved_on() -> None:
    write = P(WRITE, ready=False)
    line = line_of(write)
    assert line.start() == []
    write.ready = True
    line.readied(write)
    assert line.start() == [write]


def test_a_write_waits_for_the_reads_before_it_running_or_not() -> None:
    running, undecided, write = P(READ), P(READ, ready=False), P(WRITE)
    line = line_of(running, undecided, write)
    assert line.start() == [running]
    line.left(running)
    assert line.start() == []
    undecided.ready = True
    line.readied(undecided)
    assert line.start() == [undecided]
    line.left(undecided)
    assert line.start() == [write]


def test_a_read_overtakes_no_write_that_runs_or_waits() -> None:
    before, write, after = P(READ), P(WRITE), P(READ)
    line = line_of(before, write, after)
    assert line.start() == [before]
    line.left(before)
    assert line.start() == [write]
    assert line.start() == []
    line.left(write)
    assert line.start() == [after]


def test_a_read_may_overtake_a_read_that_is_not_ready() -> None:
    undecided, read = P(READ, ready=False), P(READ)
    assert line_of(undecided, read).start() == [read]


def test_a_read_that_turns_out_a_write_waits_for_those_that_passed_it_and_none_passes_it_any_more() -> None:
    first, second, third = P(READ), P(READ), P(READ)
    line = line_of(first, second, third, max_parallel=2)
    assert line.start() == [first, second]
    first.access = WRITE
    line.returned(first)
    assert line.start() == []
    line.left(second)
    assert line.start() == [first]
    line.left(first)
    assert line.start() == [third]


def test_a_write_that_returns_makes_room_and_keeps_its_turn() -> None:
    write, read = P(WRITE), P(READ)
    line = line_of(write, read)
    assert line.start() == [write]
    write.ready = False
    line.returned(write)
    assert line.start() == []
    write.ready = True
    line.readied(write)
    assert line.start() == [write]


def test_what_leaves_before_it_ran_holds_nobody_up() -> None:
    write, read = P(WRITE, ready=False), P(READ)
    line = line_of(write, read)
    assert line.start() == []
    line.left(write)
    assert line.start() == [read]
    line.left(write)  # a second time does nothing
    line.readied(write)
    assert line.start() == []


def test_a_failure_halts_what_comes_after_it_in_the_same_toolset_only() -> None:
    failures = Failures()
    assert not failures.halt("browser", 4)
    assert failures.add("browser", 4)
    assert not failures.add("browser", 5)
    assert failures.add("browser", 2)
    halted = [
        (name, index) for name in ("browser", "computer", None) for index in range(6) if failures.halt(name, index)
    ]
    assert halted == [("browser", 3), ("browser", 4), ("browser", 5)]


def naive(places: Sequence[P], running: Sequence[P], max_parallel: int) -> list[P]:
    """What may start, read off the rule word by word. `places` have not ended; those in `running` have started."""
    chosen: list[P] = []
    for position, place in enumerate(places):
        if place in running or not place.ready:
            continue
        beside = [*running, *chosen]
        if any(other.access is not READ for other in beside):
            continue  # it runs alone
        earlier = places[:position]
        if place.access is READ:
            if len(beside) < max_parallel and all(other.access is READ for other in earlier):
                chosen.append(place)
        elif not beside and not earlier:
            chosen.append(place)
    return chosen


accesses = st.sampled_from([READ, READ, READ, WRITE, MEMBER])


@given(st.lists(accesses, max_size=14), st.integers(1, 4), st.data())
def test_whatever_happens_the_line_starts_what_the_rule_says(
    kinds: Sequence[Access], max_parallel: int, data: st.DataObject
) -> None:
    """Calls join, become ready, turn out to be writes, end and leave in any order."""
    line = Line[P](max_parallel)
    coming = [P(kind, ready=data.draw(st.booleans())) for kind in kinds]
    there: list[P] = []
    running: list[P] = []
    started: list[P] = []
    for _ in range(8 * len(coming) + 2):
        started_now = line.start()
        assert started_now == naive(there, running, max_parallel)
        running += started_now
        started += started_now
        steps = ["join"] * bool(coming) + ["end"] * bool(running) + ["leave"] * bool(there)
        steps += ["ready"] * any(not place.ready for place in there) + ["return"] * bool(running)
        if not steps:
            break
        match data.draw(st.sampled_from(steps)):
            case "join":
                there.append(coming.pop(0))
                line.add(there[-1])
            case "ready":
                place = data.draw(st.sampled_from([place for place in there if not place.ready]))
                place.ready = True
                line.readied(place)
            case "return":
                place = data.draw(st.sampled_from(running))
                running.remove(place)
                place.access = data.draw(st.sampled_from([place.access, WRITE]))
                place.ready = data.draw(st.booleans())
                line.returned(place)
            case step:
                place = data.draw(st.sampled_from(running if step == "end" else there))
                there.remove(place)
                if place in running:
                    running.remove(place)
                line.left(place)


@given(st.lists(accesses, max_size=14), st.integers(1, 4), st.data())
def test_every_call_runs_once_and_the_line_is_never_stuck(
    kinds: Sequence[Access], max_parallel: int, data: st.DataObject
) -> None:
    places = [P(kind, ready=kind is READ) for kind in kinds]
    line = line_of(*places, max_parallel=max_parallel)
    moved_on = 0
    running: list[P] = []
    started: list[P] = []
    ended = 0
    while ended < len(places):
        for place in line.start():
            running.append(place)
            started.append(place)
        assert running or moved_on < len(places), "nothing runs and nothing is awaited: the calls are stuck"
        if running and (moved_on == len(places) or data.draw(st.booleans())):
            place = data.draw(st.sampled_from(running))
            running.remove(place)
            line.left(place)
            ended += 1
        else:
            places[moved_on].ready = True
            line.readied(places[moved_on])
            moved_on += 1
    assert len(started) == len(places)
    assert set(started) == set(places)
