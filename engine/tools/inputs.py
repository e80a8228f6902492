"""Whether the input of a call fits the tool's schema, and what to tell the model when it does not."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from looplatch.states.brief import brief
from looplatch.states.errors import LooplatchError, UsageError

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["MAX_PROBLEMS", "InputRejected", "InputValidator"]

MAX_PROBLEMS = 10
"""How many problems of one input are named; the others are counted."""
_MAX_PROBLEM_CHARS = 300


class InputRejected(LooplatchError):
    """The input fits the schema but not the function's types, and the function was not called.

    `problem` names the fields.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(f"invalid input: {problem}")
        self.problem = problem


class InputValidator:
    """A JSON Schema, compiled once.

    `what` names its owner in errors. Raises `UsageError`, naming the place, when the schema is not valid JSON Schema
    (2020-12 unless its `$schema` says otherwise), is not of type object, or refers to another document.
    """

    def __init__(self, schema: Mapping[str, Any], *, what: str = "input schema") -> None:
        if not isinstance(cast("object", schema), Mapping):
            raise UsageError(what, "input_schema is no dict", 'Give a JSON Schema, at least {"type": "object"}')
        if schema.get("type") != "object":
            raise UsageError(
                what,
                f"input_schema.type is {brief(schema.get('type'))}",
                'The API takes schemas whose outermost type is "object" only',
            )
        self._schema = dict(schema)
        self._what = what
        _ = self._compiled  # a bad schema is found where it is given, not when the model calls

    @cached_property
    def _compiled(self) -> "jsonschema_rs.Validator":
        import jsonschema_rs

        try:
            return jsonschema_rs.validator_for(self._schema, retriever=_refuse)
        except jsonschema_rs.ValidationError as error:
            place = _place(["input_schema", *error.instance_path])
            problem = f"{place} is not valid JSON Schema: {_cut(error.message)}"
            raise UsageError(self._what, problem, "Mend the schema there") from error
        except (TypeError, ValueError) as error:
            problem = f"input_schema cannot be read: {_cut(str(error))}"
            raise UsageError(self._what, problem, "Use plain JSON values with text as keys") from error

    def problem(self, given: Mapping[str, Any]) -> str | None:
        """What is wrong with the input, a problem a line, naming the fields; None when it is valid. Never raises."""
        try:
            if self._compiled.is_valid(cast("dict[str, Any]", given)):
                return None
            errors = self._compiled.iter_errors(cast("dict[str, Any]", given))
            found = [text for error in errors for text in _messages(error)]
        except Exception as error:  # a pattern that backtracks too far, a value that is no JSON
            return f"input: cannot be checked: {_cut(str(error))}"
        named = sorted(set(found))
        more = [f"and {len(named) - MAX_PROBLEMS} more problems"] if len(named) > MAX_PROBLEMS else []
        return "\n".join(named[:MAX_PROBLEMS] + more)


def _refuse(uri: str) -> Any:
    # Without this the compiler would fetch the reference from the network.
    raise ValueError(f"{uri} is another document; a tool's schema must hold all that it refers to")


def _messages(error: "jsonschema_rs.ValidationError") -> list[str]:
    """The problems, named by the field that is to be changed rather than by the object around it."""
    import jsonschema_rs

    path = list(error.instance_path)
    match error.kind:
        case jsonschema_rs.ValidationErrorKind.Required(property=name):
            return [f"{_place([*path, name])}: is required"]
        case jsonschema_rs.ValidationErrorKind.AdditionalProperties(unexpected=names):
            return [f"{_place([*path, name])}: is not a known field" for name in names]
        case jsonschema_rs.ValidationErrorKind.AnyOf(context=branches):
            return _branch_messages(branches) or [f"{_place(path)}: {_cut(error.message)}"]
        case _:
            return [f"{_place(path)}: {_cut(error.message)}"]


def _branch_messages(branches: "Sequence[Sequence[jsonschema_rs.ValidationError]]") -> list[str]:
    """What each alternative would have taken, since "not valid under any of the schemas" helps nobody."""
    branched = [[text for error in branch for text in _messages(error)] for branch in branches]
    # An optional value that is there but wrong: that it might have been null is no help.
    wanted = [
        texts for texts in branched if not all(text.endswith('is not of type "null"') for text in texts)
    ] or branched
    return wanted[0] if len(wanted) == 1 else ["; or ".join(dict.fromkeys(", ".join(texts) for texts in wanted))]


def _place(path: Sequence[str | int]) -> str:
    """`items[2].name`; the input itself when the path is empty."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{_cut(step)}"
    return text.lstrip(".") or "input"


def _cut(text: str) -> str:
    """The text with its end kept, where the validator says what it wanted."""
    if len(text) <= _MAX_PROBLEM_CHARS:
        return text
    kept = _MAX_PROBLEM_CHARS // 2
    return f"{text[:kept]} … {text[-kept:]}"
