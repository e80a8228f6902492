"""Lines that a regular expression fits: never slow, whoever wrote the expression."""

from typing import Any, cast

from looplatch.states.errors import LooplatchError

__all__ = ["LinePattern", "PatternRefused"]


class PatternRefused(LooplatchError):
    """A regular expression cannot be used; `pattern` is what was given."""

    def __init__(self, pattern: str) -> None:
        super().__init__(
            f"{pattern[:300]!r} is no regular expression that can be used here. It may hold no look-around and no "
            "back-references; escape ( ) [ ] { } * + ? . | ^ $ and \\ to mean themselves"
        )
        self.pattern = pattern


class LinePattern:
    """A regular expression whose search takes time in proportion to the text.

    Python's own engine may take for ever, and holds up the whole process meanwhile; an expression that a model writes
    is run by the engine that the input schemas are checked with. Raises PatternRefused for what that does not know.
    """

    def __init__(self, pattern: str) -> None:
        import jsonschema_rs

        try:
            self._validator = jsonschema_rs.validator_for(
                {"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions()
            )
        except (jsonschema_rs.ValidationError, ValueError) as error:
            raise PatternRefused(pattern) from error

    def found_in(self, line: str) -> bool:
        """Whether it fits anywhere in the line."""
        return self._validator.is_valid(cast("Any", line))
