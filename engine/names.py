"""Names and ids that come from outside, as records can hold them."""

from typing import Final

from looplatch.encoding import mend_surrogates
from looplatch.states.secrets import Secrets

_LOOKED_AT: Final = 4_096  # characters of it in which a secret is looked for
LONGEST: Final = 256  # characters of a name that a record keeps
_KNOWN: Final = 1_000  # names whose form in records is remembered: most come again and again


class Names:
    """Gives names the form that records have, always the same, so that what names one thing goes on doing so.

    secrets: what is taken out of them.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._known: dict[str, str] = {}

    def of(self, text: str) -> str:
        """A name without secrets or lone surrogates, and bounded."""
        known = self._known.get(text)
        if known is not None:
            return known
        name = self._clean(mend_surrogates(text[:_LOOKED_AT]))
        if len(name) > LONGEST:
            name = self._clean(name[:LONGEST])  # what is cut may look like a secret that has ended there
        if len(text) <= LONGEST:
            if len(self._known) >= _KNOWN:
                self._known.clear()
            self._known[text] = name
        return name

    def id_of(self, text: str) -> str:
        """The id of a call, as it is; where a secret is in it, as a record can hold it."""
        name = self.of(text)
        return text if name == text or name == mend_surrogates(text[:LONGEST]) else name

    def _clean(self, name: str) -> str:
        return str(self._secrets.taken_out(name)[0]) if self._secrets.may_be_in(name.encode()) else name
