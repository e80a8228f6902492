"""The diagrams of the standard loop show the whole table: every row and reason, and the moves `transitions` draws."""

import re
from collections import Counter
from typing import Any

import pytest
from transitions.extensions import GraphMachine

from looplatch.diagrams import render
from looplatch.diagrams.files import rendered
from looplatch.states.reasons import Continue, Strategy
from looplatch.states.state import FINAL, State
from looplatch.states.table import TABLE
from looplatch.states.transition import Transition


def trigger(row: Transition) -> str:
    name = row.event.__name__
    return name if row.guard.name == "always" else f"{name} [{row.guard.name}]"


def test_every_row_is_a_line_of_the_text() -> None:
    lines = Counter(" ".join(line.split()) for line in render(format="text").splitlines())
    for row in TABLE.rows:
        where = "stays" if row.target is None else f"-> {row.target}"
        commands = ", ".join(command.name for command in row.commands)
        parts = (where, trigger(row), row.strategy or row.reason or row.terminal or "", commands and f"/ {commands}")
        assert lines[" ".join(part for part in parts if part)] >= 1, row.name


def edges_of(mermaid: str) -> Counter[tuple[str, str, str]]:
    """Source, target and trigger of every move in the text, those that stay with their source as target."""
    found: Counter[tuple[str, str, str]] = Counter()
    shared = {
        "every_state": [state for state in State if state not in FINAL],
        "every_working_state": [State.PREPARE, State.STREAM, State.DECIDE, State.ORCHESTRATE, State.RECOVER],
    }
    for line in mermaid.splitlines():
        edge = re.fullmatch(r"    (\w+) --> (\w+) : (.*)", line)
        inside = re.fullmatch(r"    (\w+) : (.*)", line)
        if edge:
            source, target, label = edge.groups()
            triggers = [part for part in label.split("<br/>") if part[0].isupper()]  # outcomes are lower case
        elif inside:
            source, target, triggers = inside[1], "", [inside[2].split(" / ")[0]]
        else:
            continue
        for state in shared.get(source, [source]):
            found.update((str(state), target or str(state), text) for text in triggers)
    return found


def test_mermaid_has_the_moves_that_transitions_draws() -> None:
    """The library that runs the machine draws its own Mermaid text: another hand, the same moves."""

    class Model:
        """What the library's machine puts its methods on."""

    def named(name: str) -> Any:
        def condition(_event: object) -> bool:
            return True

        condition.__name__ = name
        return condition

    model: Any = Model()
    machine = GraphMachine(
        model=model,
        states=[str(state) for state in TABLE.states],
        initial=str(TABLE.initial),
        auto_transitions=False,
        graph_engine="mermaid",
        show_conditions=True,
        send_event=True,
    )
    for row in TABLE.rows:
        for source in row.sources:
            target = row.target and str(row.target)
            machine.add_transition(row.event.__name__, str(source), target, conditions=[named(row.guard.name)])
    drawn: Counter[tuple[str, str, str]] = Counter()
    for line in model.get_graph().draw(None).splitlines():
        if edge := re.fullmatch(r"  (\w+) --> (\w+): (.*)", line):
            for label in edge[3].split(" | "):
                plain = label.replace(" [internal]", "").replace(" [always]", "")
                drawn[edge[1], edge[2], plain] += 1
    assert sum(drawn.values()) == sum(len(row.sources) for row in TABLE.rows)
    assert edges_of(render()) == drawn


def test_mermaid_colours_each_of_the_six_reasons() -> None:
    text = render()
    arrows = [line for line in text.splitlines() if " --> " in line]
    colours: dict[str, set[str]] = {}
    for number, colour in re.findall(r"edge(\d+)\]\{stroke:(#\w+)!", text):
        arrow = arrows[int(number)]
        assert " --> prepare : " in arrow
        colours.setdefault(colour, set()).add(arrow.rsplit("<br/>", 1)[1])
    assert sorted(sorted(names) for names in colours.values()) == [
        ["collapse_drain_retry"],
        ["max_output_tokens_escalate", "max_output_tokens_recovery"],
        ["next_turn"],
        ["reactive_compact_retry"],
        ["stop_hook_blocking"],
        ["token_budget_continuation"],
    ]


@pytest.mark.parametrize("name", [name for name in rendered() if name.startswith("agent_loop")])
def test_every_strategy_and_terminal_reason_is_named(name: str) -> None:
    picture = rendered()[name]
    for meaning in (*Strategy, *Continue, *{row.terminal for row in TABLE.rows if row.terminal}):
        assert meaning in picture
