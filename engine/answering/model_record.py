"""What the record of a model call tells: names and numbers that the API gave, bounded to what a record takes."""

from collections.abc import Callable
from typing import Any, Final

import attrs

from looplatch.model import Assembly
from looplatch.model.spending import cache_miss
from looplatch.recovery.compression.server_edits import applied_edits
from looplatch.recovery.failure import Failure
from looplatch.states.record import MAX_INT

_CUT_LIMIT: Final = 4_096  # characters, as many as a failure's message has


def answer_fields(assembly: Assembly, name_of: Callable[[str], str]) -> dict[str, Any]:
    """The fields that an answer, or its beginning, gives. `name_of`: a name as a record can hold it."""
    missed = cache_miss(assembly.extra.get("diagnostics"))
    edits = applied_edits(assembly.extra.get("context_management"))
    return {
        "message_id": None if assembly.message_id is None else name_of(assembly.message_id),
        "stop_reason": None if assembly.stop_reason is None else name_of(assembly.stop_reason),
        "cache_miss": None if missed is None else {**missed, "reason": name_of(missed["reason"])},
        "context_edits": [{**edit, "type": name_of(edit["type"])} for edit in edits],
    }


def cut_message(assembly: Assembly) -> str:
    """What cut an answer, in words: of the API's details what is plain, and no more than a message can show."""
    plain = {name: value for name, value in (assembly.stop_details or {}).items() if not isinstance(value, dict | list)}
    said = f" ({', '.join(f'{name}: {value}' for name, value in plain.items())})" if plain else ""
    return f"the answer ended with the stop reason {assembly.stop_reason}{said}"[:_CUT_LIMIT]


def failure_fields(failure: Failure | None, name_of: Callable[[str], str]) -> dict[str, Any] | None:
    """Why there was no whole answer. `name_of`: a name as a record can hold it."""
    if failure is None:
        return None
    return {
        "type": name_of(failure.type),
        "status": failure.status,
        "retry_after_ms": None if failure.retry_after_ms is None else min(failure.retry_after_ms, MAX_INT),
        "measured": None if failure.measured is None else attrs.asdict(failure.measured),
    }
