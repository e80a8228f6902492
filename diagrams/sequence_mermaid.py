"""A sequence as Mermaid text (`sequenceDiagram`), as GitHub and many editors show it."""

from looplatch.diagrams.mermaid import escaped
from looplatch.diagrams.sequence import Sequence, Step, Style, sequence_of
from looplatch.diagrams.source import Source

_ARROWS = {Style.CALL: "->>", Style.ANSWER: "-->>", Style.FAILURE: "--x"}


def sequence_mermaid(log: Source) -> str:
    """The sequence of a log, of a run or of its records; the same run gives the same text.

    Raises UsageError where `log` is none of these.
    """
    sequence = sequence_of(log)
    names = {party: f"p{index}" for index, party in enumerate(sequence.parties)}
    lines = ["sequenceDiagram"]
    lines += [f"    participant {name} as {escaped(party)}" for party, name in names.items()]
    for step in sequence.steps:
        lines += _lines(step, names, sequence)
    return "\n".join((*lines, ""))


def _lines(step: Step, names: dict[str, str], sequence: Sequence) -> list[str]:
    if step.style is Style.NOTE:
        return [f"    Note over {names[step.source]}: {escaped(step.text)}"]
    arrow = f"    {names[step.source]}{_ARROWS[step.style]}{names[step.target]}: {escaped(step.text)}"
    if step.effect is None or step.effect not in sequence.whole:
        return [arrow]
    if step.style is Style.CALL:
        return [arrow, f"    activate {names[step.target]}"]
    return [arrow, f"    deactivate {names[step.source]}"]
