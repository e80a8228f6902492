"""Patience: what is tried once, and when what was in vain is tried again."""

from typing import Final

GROWTH: Final = 0.02  # of the window: what must be new before a level that found nothing looks again


class Patience:
    """Remembers what was tried in a visit of `prepare`, and at which size of the history it was in vain."""

    def __init__(self) -> None:
        self._visited: set[str] = set()
        self._fruitless: dict[str, int] = {}

    def once(self, what: str) -> bool:
        """Whether something was not tried in this visit yet; now it was."""
        if what in self._visited:
            return False
        self._visited.add(what)
        return True

    def tries(self, what: str, tokens: int, window: int) -> bool:
        """Whether something is tried now: once in a visit; after it was in vain, only when enough is new."""
        if not self.once(what):
            return False
        before = self._fruitless.get(what)
        if before is not None and before <= tokens < before + GROWTH * window:
            return False
        self._fruitless[what] = tokens  # until it turns out to be of use
        return True

    def was_of_use(self, what: str) -> None:
        """It may be tried again in the next visit."""
        self._fruitless.pop(what, None)

    def renew(self) -> None:
        """The history has changed: whatever was in vain may be of use now."""
        self._fruitless.clear()

    def leave(self) -> None:
        """The visit is over."""
        self._visited.clear()
