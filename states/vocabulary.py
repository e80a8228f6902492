"""What records say in one word of several: which effect it is, how it ended, what becomes of the history."""

from enum import StrEnum


class EffectClass(StrEnum):
    """What was done."""

    MODEL = "model"  # the model was called
    TOOL = "tool"
    HOOK = "hook"
    SUMMARY = "summary"  # the model was called for one
    SLEEP = "sleep"  # the wait before a retry
    COUNT = "count"  # the API counted the tokens of a request
    SIZE = "size"  # the API said how large a model's window is
    NOTE = "note"  # of what the tools of a turn did


class Op(StrEnum):
    """What a message record does to the history."""

    JOIN = "join"  # a message is put at its end
    EXTEND = "extend"  # the last message goes on
    EDIT = "edit"  # messages give way to others
    LEAVE = "leave"  # a message goes; up to schema 2


class EffectOutcome(StrEnum):
    """How an effect ended; a tool's end has a cause of its own, a hook's its verdict, a failed call the API's error."""

    OK = "ok"
    INTERRUPTED = "interrupted"  # the run was stopped meanwhile
    SUSPENDED = "suspended"  # for now: the run inside the call waits for someone's word
    ABANDONED = "abandoned"  # it did not end within its grace
