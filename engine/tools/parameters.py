"""The parameters of a function as a JSON Schema, and inputs as their values. By pydantic, imported lazily."""

import inspect
import typing
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, cast

import attrs

from looplatch.states.errors import UsageError
from looplatch.tools.annotations import adapted
from looplatch.tools.context import ToolContext
from looplatch.tools.docstrings import DocText
from looplatch.tools.inputs import InputRejected

if TYPE_CHECKING:
    import pydantic

__all__ = ["Arguments", "Parameters"]

Kind = inspect.Parameter


@attrs.frozen
class Arguments:
    """How to call a function for an input: what to pass by position, what by name."""

    args: tuple[object, ...]
    kwargs: Mapping[str, object]


class Parameters:
    """What a function takes. Raises `UsageError`, naming the parameter and its type, for what cannot be described."""

    def __init__(self, function: Callable[..., object], what: str, doc: DocText, namespace: Mapping[str, Any]) -> None:
        self._what = what
        signature = _signature(function, what)
        hints = _hints(function, what, namespace)
        self._context_name: str | None = None
        self._parameters: list[Kind] = []
        fields: dict[str, Any] = {}
        for name, parameter in signature.parameters.items():
            if hints.get(name) is ToolContext:
                self._context_name = name
                continue
            fields[self._field(len(fields))] = self._described(parameter, hints, doc)
            self._parameters.append(parameter)
        self._positional = [one for one in signature.parameters.values() if one.kind is Kind.POSITIONAL_ONLY]
        self._model = self._built(fields)
        self.schema: dict[str, Any] = _schema_of(self._model)

    def arguments(self, given: Mapping[str, Any], context: ToolContext) -> Arguments:
        """The arguments for an input. What it leaves out is left to the function's defaults.

        Raises `InputRejected`, naming the fields, when a value does not fit the type that the function declares.
        """
        import pydantic

        try:
            made = self._model.model_validate(dict(given))
        except pydantic.ValidationError as error:
            problems = [f"{_place(problem['loc'])}: {problem['msg']}" for problem in error.errors(include_url=False)]
            raise InputRejected("\n".join(problems)) from error
        values: dict[str, object] = {
            parameter.name: getattr(made, self._field(position))
            for position, parameter in enumerate(self._parameters)
            if self._field(position) in made.model_fields_set
        }
        if self._context_name is not None:
            values[self._context_name] = context
        args: list[object] = []
        for parameter in self._positional:
            if not any(other.name in values for other in self._positional[len(args) :]):
                break
            args.append(values.pop(parameter.name, parameter.default))
        return Arguments(tuple(args), values)

    @staticmethod
    def _field(position: int) -> str:
        # Pydantic reserves names (json, copy, model_…, _x) that parameters may well have: those are aliases.
        return f"p{position}"

    def _described(self, parameter: Kind, hints: Mapping[str, Any], doc: DocText) -> tuple[Any, Any]:
        """A parameter as a pydantic field."""
        import pydantic

        name = parameter.name
        if parameter.kind in (Kind.VAR_POSITIONAL, Kind.VAR_KEYWORD):
            raise UsageError(
                self._what, f"the parameter {parameter} has no schema", "Name the parameters, or take one dict or list"
            )
        if name not in hints:
            mend = "Decorate a bound method, as tool(object.method)" if name in ("self", "cls") else "Annotate it"
            raise UsageError(self._what, f"the parameter {name} has no type", mend)
        annotation = adapted(hints[name], f"{self._what}, parameter {name}")
        default = ... if parameter.default is Kind.empty else parameter.default
        annotation, text = _without_text(annotation)
        text = text or doc.params.get(name)
        described: dict[str, Any] = {"description": text} if text else {}
        return Annotated[annotation, cast("Any", pydantic.Field)(alias=name, **described)], default

    def _built(self, fields: Mapping[str, Any]) -> "type[pydantic.BaseModel]":
        import pydantic

        def model(of: Mapping[str, Any]) -> type[pydantic.BaseModel]:
            config = pydantic.ConfigDict(extra="forbid", protected_namespaces=())
            made = cast("Any", pydantic.create_model)("Input", __config__=config, **of)
            _schema_of(made)
            return cast("type[pydantic.BaseModel]", made)

        try:
            return model(fields)
        except Exception as error:
            # Which one is it? Each is tried alone, since pydantic's error does not always say.
            for parameter, (name, field) in zip(self._parameters, fields.items(), strict=True):
                try:
                    model({name: field})
                except Exception as cause:
                    shown = inspect.formatannotation(parameter.annotation)
                    raise UsageError(
                        self._what,
                        f"the parameter {parameter.name}: {shown} cannot be described as JSON Schema",
                        "Use types that have a JSON form: str, int, list, dict, Literal, Enum, TypedDict, dataclass, "
                        "attrs or pydantic classes",
                    ) from cause
            raise UsageError(self._what, f"its parameters cannot be described: {error}", "Simplify them") from error


def _signature(function: Callable[..., object], what: str) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise UsageError(what, "it has no signature that can be read", "Wrap it in a function") from error


def _hints(function: Callable[..., object], what: str, namespace: Mapping[str, Any]) -> dict[str, Any]:
    target = inspect.unwrap(function)
    if not inspect.isroutine(target):
        target = type(target).__call__
    try:
        return typing.get_type_hints(target, localns=dict(namespace), include_extras=True)
    except Exception as error:
        raise UsageError(
            what, f"its annotations cannot be read: {error}", "Import or define the types it names"
        ) from error


def _without_text(annotation: Any) -> tuple[Any, str | None]:
    """`Annotated[T, "text", …]` without its text, and the text."""
    if typing.get_origin(annotation) is not Annotated:
        return annotation, None
    base, *extras = typing.get_args(annotation)
    text = next((extra for extra in extras if isinstance(extra, str)), None)
    rest = [extra for extra in extras if not isinstance(extra, str)]
    for extra in rest:
        base = Annotated[base, extra]
    return base, text


def _place(steps: tuple[int | str, ...]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.lstrip(".") or "input"


def _schema_of(model: "type[pydantic.BaseModel]") -> dict[str, Any]:
    with warnings.catch_warnings():
        # A default that is no JSON is left out of the schema, which is as it should be.
        warnings.simplefilter("ignore")
        schema = model.model_json_schema(by_alias=True)
    schema.setdefault("properties", {})
    return cast("dict[str, Any]", _without_titles(schema))


def _without_titles(schema: object) -> Any:
    """The schema without pydantic's titles, which repeat the names; names and values of the user's are left alone."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", schema).items():
        match key:
            case "title" if isinstance(value, str):
                continue
            case "properties" | "$defs":
                kept[key] = {name: _without_titles(item) for name, item in value.items()}
            case "default" | "const" | "enum" | "examples":
                kept[key] = value
            case _:
                kept[key] = _without_titles(value)
    return kept
