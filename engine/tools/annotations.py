"""Annotations as pydantic takes them: it knows neither attrs classes nor, on Python 3.11, `typing.TypedDict`."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Required, Union, cast

import attrs

from looplatch.states.errors import UsageError

if TYPE_CHECKING:
    import pydantic
    from pydantic_core import CoreSchema

__all__ = ["adapted"]


def adapted(annotation: Any, what: str, above: tuple[type, ...] = ()) -> Any:
    """The annotation with each class that pydantic does not know told how to be described and built.

    `what` names the owner in errors, `above` holds the classes around the annotation. Raises `UsageError` for such a
    class that contains itself, or whose annotations are missing or cannot be read.
    """
    origin: Any = typing.get_origin(annotation)
    args = typing.get_args(annotation)
    if origin is None and isinstance(annotation, type):
        return _adapted_class(cast("Any", annotation), what, above)
    if origin is None or origin is typing.Literal:
        return annotation
    if origin is Annotated:
        inner = adapted(args[0], what, above)
        for extra in args[1:]:
            inner = Annotated[inner, extra]
        return inner
    inner_args = tuple(adapted(arg, what, above) for arg in args)
    if all(new is old for new, old in zip(inner_args, args, strict=True)):
        return annotation
    if origin is Union or origin is types.UnionType:
        return reduce(lambda left, right: left | right, inner_args)
    return origin[inner_args]


def _adapted_class(cls: Any, what: str, above: tuple[type, ...]) -> Any:
    if attrs.has(cls):
        fields = [
            _Field(field.name, field.alias or field.name, _default(field.default, attrs.NOTHING))
            for field in attrs.fields(cls)
            if field.init
        ]
        return _record(cls, fields, _hints(cls, what), what, above)
    if typing.is_typeddict(cls):
        return _typed_dict(cls, what, above)
    if _is_plain_dataclass(cls) and cls not in above:
        hints = _hints(cls, what)
        # Pydantic knows dataclasses, but not what these may hold.
        if all(adapted(hint, what, (*above, cls)) is hint for hint in hints.values()):
            return cls
        missing = dataclasses.MISSING
        fields = [
            _Field(
                field.name,
                field.name,
                {"default_factory": _none}
                if field.default_factory is not missing
                else _default(field.default, missing),
            )
            for field in dataclasses.fields(cls)
            if field.init
        ]
        return _record(cls, fields, hints, what, above)
    return cls


def _is_plain_dataclass(cls: type) -> bool:
    return dataclasses.is_dataclass(cls) and not hasattr(cls, "__pydantic_validator__")


@attrs.frozen
class _Field:
    """What a record's `__init__` takes: `name` in the class, `parameter` of the call, `default` for pydantic."""

    name: str
    parameter: str
    default: Mapping[str, Any]


def _default(value: object, missing: object) -> Mapping[str, Any]:
    if value is missing:
        return {}
    return {"default_factory": _none} if isinstance(value, cast("Any", attrs.Factory)) else {"default": value}


def _none() -> None:
    """Stands for a default that the class makes itself: it is never asked for one."""


def _hints(cls: type, what: str) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except Exception as error:
        raise UsageError(what, f"the annotations of {cls.__name__} cannot be read: {error}", "Define them") from error


def _check_not_within_itself(cls: type, what: str, above: tuple[type, ...]) -> None:
    if cls in above:
        raise UsageError(what, f"the class {cls.__name__} contains itself", "Use a pydantic model for it")


def _record(cls: type, fields: list[_Field], hints: Mapping[str, Any], what: str, above: tuple[type, ...]) -> Any:
    """The class, described by a pydantic model of what its `__init__` takes, and built from one."""
    import pydantic

    _check_not_within_itself(cls, what, above)
    described: dict[str, Any] = {}
    for position, field in enumerate(fields):
        if field.name not in hints:
            raise UsageError(what, f"the field {cls.__name__}.{field.name} has no type", "Annotate it")
        annotation = adapted(hints[field.name], what, (*above, cls))
        described[f"f{position}"] = (annotation, cast("Any", pydantic.Field)(alias=field.parameter, **field.default))
    config = pydantic.ConfigDict(extra="forbid", protected_namespaces=())
    model = cast("Any", pydantic.create_model)(cls.__name__, __config__=config, **described)
    return Annotated[cls, _RecordSchema(model)]


def _typed_dict(cls: Any, what: str, above: tuple[type, ...]) -> Any:
    from typing_extensions import TypedDict  # pydantic's own dependency

    _check_not_within_itself(cls, what, above)
    fields: dict[str, Any] = {}
    for name, hint in _hints(cls, what).items():
        origin = typing.get_origin(hint)
        if origin is Required or origin is NotRequired:
            fields[name] = origin[adapted(typing.get_args(hint)[0], what, (*above, cls))]
        else:
            wrapper: Any = Required if name in cls.__required_keys__ else NotRequired
            fields[name] = wrapper[adapted(hint, what, (*above, cls))]
    made: Any = cast("Any", TypedDict)(cls.__name__, fields)
    made.__doc__ = cls.__doc__
    return made


@attrs.frozen
class _RecordSchema:
    """Tells pydantic to take the model's fields, and to build the class of them."""

    model: "type[pydantic.BaseModel]"

    def __get_pydantic_core_schema__(self, source: type, handler: "pydantic.GetCoreSchemaHandler") -> "CoreSchema":
        from pydantic_core import core_schema

        def build(made: "pydantic.BaseModel") -> object:
            fields = type(made).model_fields
            given = {str(fields[name].alias): getattr(made, name) for name in made.model_fields_set}
            return cast("object", source(**given))

        return core_schema.no_info_after_validator_function(build, handler.generate_schema(self.model))
