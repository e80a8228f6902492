"""looplatch.states: what is legal, as data and pure functions.

The table of legal moves and what its rows are made of, its checker, the log's records, and the verifier. The names
below are those that a user's own table, guard or check of a log needs; the events are in `looplatch.states.events`, the
commands in `looplatch.states.commands`.
"""

from looplatch.states.check.explore import Exploration, explore
from looplatch.states.check.table import check_table, faults
from looplatch.states.commands import Command
from looplatch.states.context import Context
from looplatch.states.errors import IllegalTransition, NoGuardPassed, RefusedEvent, TableError
from looplatch.states.event import Event
from looplatch.states.limits import Limits
from looplatch.states.reasons import Continue, Strategy, Terminal
from looplatch.states.record import Kind, Record
from looplatch.states.state import FINAL, INITIAL, WAITING, WORKING, State
from looplatch.states.table import COUNTERS, TABLE
from looplatch.states.transition import Counter, Guard, Table, Transition, guard
from looplatch.states.trouble import TroubleKind
from looplatch.states.verify.findings import Report, Violation
from looplatch.states.verify.log import verify_lines

__all__ = [
    "COUNTERS",
    "FINAL",
    "INITIAL",
    "TABLE",
    "WAITING",
    "WORKING",
    "Command",
    "Context",
    "Continue",
    "Counter",
    "Event",
    "Exploration",
    "Guard",
    "IllegalTransition",
    "Kind",
    "Limits",
    "NoGuardPassed",
    "Record",
    "RefusedEvent",
    "Report",
    "State",
    "Strategy",
    "Table",
    "TableError",
    "Terminal",
    "Transition",
    "TroubleKind",
    "Violation",
    "check_table",
    "explore",
    "faults",
    "guard",
    "verify_lines",
]
