"""What was measured, as medians and ratios: a table for people, JSON for programs."""

import platform
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from tests.benchmarks.measures import Figure, Measure, Raw, Target

BASE: Final = "sdk"
ALONE: Final = "looplatch"
"""The name under which the measures without contenders stand."""


@attrs.define
class Results:
    """What the children have measured: of each entrant one `Raw` for each repetition, None where it did not run."""

    measure: Measure
    raw: dict[str, list[Raw]] = attrs.field(factory=dict[str, list[Raw]])

    def values(self, entrant: str, figure: Figure) -> list[float]:
        """A figure in every repetition."""
        return [figure.of(raw) for raw in self.raw.get(entrant, ())]

    def ratios(self, entrant: str, figure: Figure) -> list[float]:
        """The same beside the SDK loop's of the same repetition."""
        return [own / base for own, base in zip(self.values(entrant, figure), self.values(BASE, figure), strict=False)]

    def reached(self, target: Target) -> float | None:
        """What stands beside a target; None where that entrant did not run."""
        figure = next(figure for figure in self.measure.figures if figure.name == target.figure)
        values = self.ratios(target.entrant, figure) if target.ratio else self.values(target.entrant, figure)
        return statistics.median(values) if values else None


def table(results: Sequence[Results]) -> str:
    """Every figure of every entrant, and the targets with what was reached."""
    return "\n".join(line for result in results for line in _lines(result))


def _lines(result: Results) -> Iterator[str]:
    yield f"\n{result.measure.name}: {result.measure.about}"
    for figure in result.measure.figures:
        for entrant in result.raw:
            values = result.values(entrant, figure)
            shown = f"{_number(statistics.median(values), figure.digits)} {figure.unit}".rstrip()
            spread = f"{_number(min(values), figure.digits)} to {_number(max(values), figure.digits)}"
            ratios = result.ratios(entrant, figure) if figure.beside else []
            beside = f"{statistics.median(ratios):7.3f} x" if ratios else ""
            yield f"  {figure.name:<28} {entrant:<15} {shown:>14} {beside:>9}   ({spread})".rstrip()
    for target in result.measure.targets:
        reached = result.reached(target)
        if reached is None:
            yield f"  ?    {target.text}: not run"
        else:
            yield f"  {'met ' if target.is_met(reached) else 'MISS'} {target.text}: {reached:,.3g}"


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}"


def as_json(results: Sequence[Results]) -> dict[str, Any]:
    """The same, and each single value, as plain data."""
    return {
        "machine": {
            "python": platform.python_version(),
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
        },
        "measures": [_measure_json(result) for result in results],
    }


def _measure_json(result: Results) -> Mapping[str, Any]:
    return {
        "name": result.measure.name,
        "about": result.measure.about,
        "figures": [
            {
                "figure": figure.name,
                "unit": figure.unit,
                "entrant": entrant,
                "median": statistics.median(values),
                "values": values,
                "ratio": statistics.median(ratios) if (ratios := result.ratios(entrant, figure)) else None,
            }
            for figure in result.measure.figures
            for entrant in result.raw
            if (values := result.values(entrant, figure))
        ],
        "targets": [
            {"target": target.text, "reached": reached, "met": None if reached is None else target.is_met(reached)}
            for target in result.measure.targets
            for reached in [result.reached(target)]
        ],
    }
