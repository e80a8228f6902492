"""The recorded agent sessions through every level at windows from 8k to 200k tokens."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from looplatch.recovery.compression.collapse import Staged, drain, moved, next_span, summary_request
from looplatch.recovery.compression.compact import compact, compaction_request
from looplatch.recovery.compression.edits import Edit, apply
from looplatch.recovery.compression.micro import micro
from looplatch.recovery.compression.settings import Compression
from looplatch.recovery.compression.snip import snip
from looplatch.recovery.weights import weigh, weigh_all
from looplatch.states.level import Level
from tests import transcripts
from tests.histories import Message, problems

pytestmark = pytest.mark.corpus

WINDOWS = (8_000, 20_000, 50_000, 100_000, 200_000)
SETTINGS = Compression(span_exchanges=4)
SPAN_SUMMARY = "The files were read and the change was made, as asked. " * 3
SUMMARY = "The work is half done: the files were read, the change was made, the tests are still to be run. " * 5


@pytest.fixture(scope="module")
def sessions(corpus: Path) -> dict[str, list[Message]]:
    return transcripts.histories_in(corpus)


def test_the_sessions_are_long_and_the_api_would_take_them(sessions: dict[str, list[Message]]) -> None:
    sizes = {name: (len(messages), weigh_all(messages)) for name, messages in sessions.items()}
    assert all(problems(messages) == [] for messages in sessions.values()), sizes
    assert len(sessions) >= 6
    assert max(count for count, _ in sizes.values()) > 500
    assert max(tokens for _, tokens in sizes.values()) > 100_000


@pytest.mark.parametrize("window", WINDOWS)
def test_each_session_is_kept_under_the_window_while_it_grows(sessions: dict[str, list[Message]], window: int) -> None:
    """Whenever a level is due it strictly shortens or does nothing, and what it leaves is taken by the API."""
    runs = {name: _Run(name, window) for name in sessions}
    for name, session in sessions.items():
        run, whole = runs[name], weigh_all(session)
        run.play(session)
        if whole < 0.6 * window:
            assert run.history == session, f"{name} was never due"
        if whole >= window:
            assert run.used, f"{name} would have overflowed"
            assert run.tokens < window or compaction_request(run.history, SETTINGS) == []
    if window <= 20_000:
        assert set[Level]().union(*(run.used for run in runs.values())) == set(Level)


class _Run:
    """A session that is compressed while it grows."""

    def __init__(self, name: str, window: int) -> None:
        self.used: set[Level] = set()
        self._name = name
        self._window = window
        self._staged: list[Staged] = []
        self.history: list[Message] = []
        self.tokens = 0

    def play(self, session: list[Message]) -> None:
        """Every prefix of the session that ends in a message of the user's is a request."""
        for message in session:
            self.history.append(message)
            self.tokens += weigh(message)
            if message["role"] == "user":
                self._fit()

    def _fit(self) -> None:
        if SETTINGS.staging_due(self.tokens, self._window):
            self._stage()
        for level in Level:
            if SETTINGS.due(level, self.tokens, self._window):
                self._shorten(level)
        if self.tokens >= self._window:
            assert compaction_request(self.history, SETTINGS) == [], "what is left is the latest exchange alone"

    def _stage(self) -> None:
        span = next_span(self.history, SETTINGS, self._staged)
        if span is not None:
            assert problems(summary_request(self.history, span, self._window // 2)) == []
            self._staged.append(Staged(span=span, summary=SPAN_SUMMARY))

    def _shorten(self, level: Level) -> None:
        edits = self._edits(level)
        if not edits:
            return
        shorter = apply(self.history, edits)
        assert problems(shorter, self.history) == [], f"{self._name} at {self._window}, {level}"
        tokens = weigh_all(shorter)
        assert tokens < self.tokens
        self.history, self.tokens = shorter, tokens
        self._staged = list(moved(self._staged, edits))
        self.used.add(level)
        assert self._edits(level) == (), "nothing is done twice"

    def _edits(self, level: Level) -> Sequence[Edit]:
        match level:
            case Level.SNIP:
                return snip(self.history, SETTINGS)
            case Level.MICRO:
                return micro(self.history, SETTINGS, self._window)
            case Level.COLLAPSE:
                return drain(self.history, self._staged, SETTINGS)
            case Level.COMPACT:
                return compact(self.history, SUMMARY, SETTINGS)
