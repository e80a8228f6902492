"""What others make of the exports: pm4py's conformance checking, and the verifier of the Agent Audit Trail draft.

They are heavy, and none of them is needed for anything else: the dependency group `interop` has them.
"""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from looplatch import Log
from looplatch.export import export
from looplatch.states.table import TABLE
from tests.playing import play
from tests.stories import STORIES
from tests.test_export import CALLS, TOOLS


def logs() -> list[Log]:
    found: list[Log] = []
    for story in STORIES:
        script, watch = story.script()
        found.append(play(script, watch=watch, **story.options).log)
    return found


# --- pm4py


@pytest.fixture
def mining() -> Any:
    return pytest.importorskip("pm4py", reason="needs the dependency group interop")


def net_of() -> Any:
    """The table as a Petri net: states are places, rows are transitions labelled with their events."""
    made: Any = importlib.import_module("pm4py.objects.petri_net.obj")
    add_arc: Any = importlib.import_module("pm4py.objects.petri_net.utils.petri_utils").add_arc_from_to
    net = made.PetriNet("looplatch")
    places = {state: made.PetriNet.Place(str(state)) for state in TABLE.states}
    end = made.PetriNet.Place("end")
    net.places.update([*places.values(), end])
    for row in TABLE.rows:
        for source in row.sources:
            target = end if row.target in TABLE.final else places[row.target or source]
            move = made.PetriNet.Transition(f"{source} {row.name}", row.event.__name__)
            net.transitions.add(move)
            add_arc(places[source], move, net)
            add_arc(move, target, net)
    return net, made.Marking({places[TABLE.initial]: 1}), made.Marking({end: 1})


def fitting(mining: Any, xes: str, file: Path) -> list[bool]:
    """Whether each trace of moves can be replayed on the net, as pm4py sees it."""
    file.write_text(xes)
    frame = mining.read_xes(str(file))
    moves = frame[frame["looplatch:kind"] == "move"]
    aligned = mining.conformance_diagnostics_alignments(moves, *net_of())
    return [trace["fitness"] == 1.0 for trace in aligned]


@pytest.mark.filterwarnings("ignore")
def test_every_story_conforms_to_the_table_and_a_forged_one_does_not(mining: Any, tmp_path: Path) -> None:
    for number, log in enumerate(logs()):
        xes = "".join(export(log, "xes"))
        assert fitting(mining, xes, tmp_path / f"{number}.xes") == [True]
        forged = xes.replace('value="ContextReady"', 'value="ToolsAnswered"', 1)
        assert fitting(mining, forged, tmp_path / f"forged{number}.xes") == [False]


# --- aat-verify


@pytest.fixture
def verifier() -> Any:
    return pytest.importorskip("aat_verify", reason="needs the dependency group interop")


def test_the_drafts_verifier_accepts_every_trail_and_no_forged_one(verifier: Any) -> None:
    for log in [*logs(), play(CALLS, tools=TOOLS).log]:
        records = [json.loads(line) for line in "".join(export(log, "aat")).splitlines()]
        assert verifier.verify_trail(records, {}).ok
        forged = [*records[:-2], {**records[-2], "outcome": "denied"}, records[-1]]
        assert not verifier.verify_trail(forged, {}).ok
        assert not verifier.verify_trail([records[0], *records[2:]], {}).ok
