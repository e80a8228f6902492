"""The size of the model that a run talks to, as far as it is known, and what follows from it."""

from typing import Final

import attrs

from looplatch.recovery.windows import ModelSize

_LONGEST_RESULT: Final = 200_000  # characters
_BYTES_PER_TOKEN: Final = 4


@attrs.frozen
class Asked:
    """The API was asked how large the model is, and has said this; None: it does not say."""

    size: ModelSize | None


@attrs.frozen
class Measured:
    """The API has measured a window of so many tokens."""

    window: int


@attrs.frozen
class Switched:
    """The fallback model goes on."""


Learned = Asked | Measured | Switched
"""What is learned of the model's size in a run."""


@attrs.frozen(kw_only=True)
class Sizes:
    """The model's window and the most that it writes, in tokens; None: not known.

    given: the caller said how large the window is. fallback: the size of the model that may go on. asked: the API was
    asked about this model.
    """

    window: int | None = None
    output: int | None = None
    given: bool = False
    fallback: ModelSize = attrs.field(factory=ModelSize)
    asked: bool = False

    def after(self, learned: Learned) -> "Sizes":
        """What is known once this is learned, too."""
        match learned:
            case Asked(size=size):
                said = size or ModelSize()
                return attrs.evolve(
                    self,
                    asked=True,
                    window=said.window if self.window is None else self.window,
                    output=said.output if self.output is None else self.output,
                )
            case Measured(window=window):
                return attrs.evolve(self, window=self._least(window or None))
            case Switched():  # what is known of both holds
                known = None if self.given else self.fallback.window
                return attrs.evolve(self, window=self._least(known), output=self.fallback.output, asked=False)

    def _least(self, window: int | None) -> int | None:
        """The smaller one of this window and the known one."""
        return min((size for size in (self.window, window) if size is not None), default=None)

    def answer(self, wanted: int) -> int:
        """The max_tokens of a request where `wanted` is asked for: not more than the model writes, nor half a window.

        The other half is for the prompt: where a window is small, an answer that fills it leaves nothing to answer to.
        """
        bounds = [wanted]
        if self.output is not None:
            bounds.append(self.output)
        if self.window is not None:
            bounds.append(self.window // 2)
        return max(1, min(bounds))

    @property
    def result_chars(self) -> int:
        """The longest text of one tool result: about a quarter of the window."""
        if self.window is None:
            return _LONGEST_RESULT
        return max(1, min(_LONGEST_RESULT, self.window * _BYTES_PER_TOKEN // 4))
