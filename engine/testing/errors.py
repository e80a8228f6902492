"""The one error of the testing kit."""

from looplatch.states.errors import LooplatchError


class ScriptError(LooplatchError):
    """A script that cannot be played, or was not played to its end; the text says where, and how to mend it."""
