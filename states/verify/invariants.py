"""What every audit log must satisfy, by the ids that the verifier, the tests and the findings use alike.

The verifier reads only the log, its payloads and the table that its genesis names. Three of them the file alone cannot
show: that a begin was durable before the tool started (T6; the order of begin and end is seen, by E1), that a log still
begins as it did (R1; a count and a hash that were noted before show it), and that a replay makes the same moves (R5).
"""

from typing import Final

INVARIANTS: Final[dict[str, str]] = {
    # Integrity
    "I1": "seq starts at 0 and rises by one.",
    "I2": "`prev` is the hash of the record before; genesis has zeros, or the seal of the segment before.",
    "I3": "`hash` is SHA-256 of the record without it.",
    "I4": "every line is its own canonical encoding.",
    "I5": "exactly one genesis, first.",
    "I6": "`run` is constant; table fingerprint and `v` are constant between `resumed` records.",
    "I7": "`mono_ns` never falls within one epoch; a new epoch begins only at `resumed`.",
    "I8": "the last record is terminal, or the run is open, suspended or in doubt and the report says so.",
    "I9": "the terminal's count and root match.",
    "I10": "checkpoints are prefixes of one another.",
    "I11": "judged with a key: the run names it, and the seal and each checkpoint bear its signature.",
    # Machine
    "M1": "the first source is the initial state.",
    "M2": "each source is the target before.",
    "M3": "(source, event, target) is a row.",
    "M4": (
        "the verdict of every alternative is there, in row order, real booleans; the row taken is the one that holds."
    ),
    "M5": "the pure guards re-evaluated on the folded context and the event's fields give the same verdicts.",
    "M6": "exactly one alternative holds.",
    "M7": "an edge enters `prepare` iff it names one of the six reasons, and reason and strategy are the row's.",
    "M8": "leaving `recover` names a strategy, a back-off or a terminal reason; entering it names the trouble.",
    "M9": "a final state is last; at most one.",
    "M10": "a rejected record leaves the state and the context unchanged.",
    "M11": "each recorded change of the context follows from the row, and the context is their fold.",
    "M12": "no state the table cannot reach.",
    "M13": "the stop reason and the calls decide the event, by the total map.",
    # Tools
    "T1": "each tool_use id of the history occurs once (ids of discarded turns do not count).",
    "T2": "each has exactly one tool_result before the next model call.",
    "T3": "no tool_result without its tool_use in the assistant message directly before.",
    "T4": "results are in the order of the calls, whatever order they finished in.",
    "T5": "a write overlaps no other tool; reads may overlap, at most the limit.",
    "T6": "a write starts only after its effect_begin, durable unless durability is `none`.",
    "T7": (
        "cancelled, denied, unknown and failed calls still yield a result, marked as an error, with its true cause."
    ),
    "T8": "name and input executed are those the model asked for, or an edit is recorded.",
    "T9": (
        "nothing is executed from an uncertain or cut call (a call certain before the cut of a sealed turn is none)."
    ),
    # Counters
    "C1": (
        "the turn is 1 at the first request, rises by one on each `next_turn` and on no other edge, never "
        "past the limit."
    ),
    "C2": "every counter stays within its bound and is reset only by what resets it.",
    "C3": "the counters' lexicographic measure falls on every cycle, so every run ends.",
    "C4": "token and cost totals are the sums of their parts and never fall.",
    "C5": "back-off is within bounds and honours `retry-after`.",
    "C6": "no effect begins after the deadline.",
    "C7": "compaction shrinks the context and is not repeated without progress.",
    # Effects
    "E1": "each effect_begin has one effect_end, or is in doubt at the crash point.",
    "E2": (
        "effects stand in their states (model calls in `stream`; tools begin in `stream` or `orchestrate` and "
        "all end before orchestrate is left; hooks in `decide` or around tools; summaries in `prepare` or "
        "`recover`; sleeps in `recover`)."
    ),
    "E3": "at most one model call in flight per run.",
    "E4": "the idempotency key is `run:tool_use_id`, unique, the same on a re-run.",
    "E5": (
        "a retried request names the same message records and parameters as the original, or the record says why not."
    ),
    "E6": "message roles are valid for the API; history is append-only except at a compression record.",
    # Recovery
    "R1": "after a resume the kept prefix is byte-identical.",
    "R2": "no finished effect runs again; one in flight at most once per restart.",
    "R3": "the owner's epoch rises at each claim; no record of an older epoch after a newer claim.",
    "R4": "two owners never interleave in one run.",
    "R5": (
        "replay with stubbed effects reproduces every field but `ts`, `mono_ns`, `prev`, `hash` and salts; "
        "with those recorded, the same bytes."
    ),
    # Privacy
    "P1": "no match of the configured secret patterns in any record or kept payload.",
    "P2": "a kept payload and its salt match the commitment.",
    "P3": "each removed payload has a tombstone.",
    "P4": (
        "a child's genesis names the parent's run, seq and hash; the parent's effect_end names the child's last hash."
    ),
}
