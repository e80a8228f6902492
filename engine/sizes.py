"""The size of the model that a run talks to, as far as it is known."""

from typing import Final

from looplatch.recovery.windows import ModelSize, model_size

_LONGEST_RESULT: Final = 200_000  # characters
_BYTES_PER_TOKEN: Final = 4


class Sizes:
    """The model's window and the most that it writes, in tokens; None: not known. What is learned in a run stays."""

    def __init__(self, size: ModelSize, *, given: bool = False) -> None:
        """`given`: the caller said how large the window is, so nobody needs to be asked."""
        self.window = size.window
        self.output = size.output
        self.asked = False  # whether the API was asked about this model
        self._given = given

    def learn(self, size: ModelSize | None) -> None:
        """The API was asked, and has said this, or nothing."""
        self.asked = True
        if size is not None:
            self.window = size.window if self.window is None else self.window
            self.output = size.output if self.output is None else self.output

    def lower(self, window: int) -> None:
        """The API has measured the window."""
        if window > 0:
            self.window = window if self.window is None else min(self.window, window)

    def switch(self, model: str) -> None:
        """Another model goes on: what is known of both holds."""
        size = model_size(model)
        self.output = size.output
        self.asked = False
        if size.window is not None and not self._given:
            self.lower(size.window)

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
