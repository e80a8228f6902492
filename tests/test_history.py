"""The history: bytes that are sent, and plain messages that show the same."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from looplatch.encoding import encode
from looplatch.requests.history import History, Joining, Rewrite, weight_of
from looplatch.requests.kept import Kept
from looplatch.states.record import ZEROS, digest

Block = dict[str, Any]
TEXTS = st.text(max_size=10)
ROLES = st.sampled_from(["user", "assistant"])


def text(said: str) -> Block:
    return {"type": "text", "text": said}


BLOCKS = st.lists(st.builds(text, TEXTS), min_size=1, max_size=3)


def kept(*blocks: Block | str) -> list[Kept]:
    return [Kept(encode(block), {"type": "text", "commitment": digest(encode(block))}) for block in blocks]


def joining(role: str, blocks: list[Block]) -> Joining:
    return Joining(role, "blocks", kept(*blocks))


def test_an_empty_history_is_no_messages() -> None:
    history = History()
    assert (len(history), history.messages(), bytes(history.body()), history.last_role) == (0, [], b"", None)
    assert history.sent == {"count": 0, "digest": ZEROS}


def test_a_message_of_one_text_keeps_its_form_until_more_is_said() -> None:
    history = History()
    history.join(Joining("user", "text", kept("Go.")), digest(b"1"))
    assert history.messages() == [{"role": "user", "content": "Go."}]
    history.extend(kept(text("And?")), digest(b"2"))
    assert history.messages() == [{"role": "user", "content": [text("Go."), text("And?")]}]


def test_what_is_sent_names_the_records_in_their_order() -> None:
    history = History()
    first, second = digest(b"1"), digest(b"2")
    history.join(Joining("user", "text", kept("Go.")), first)
    history.extend(kept(text("And?")), second)
    chained = digest((digest((ZEROS + first).encode()) + second).encode())
    assert history.sent == {"count": 2, "digest": chained}


def test_messages_are_made_anew() -> None:
    history = History()
    history.join(joining("user", [text("Go.")]), digest(b"1"))
    history.messages()[0]["content"].append("changed")
    assert history.messages() == [{"role": "user", "content": [text("Go.")]}]


def test_an_id_is_the_wanted_one_if_it_is_free_and_allowed() -> None:
    history = History()
    history.tool_use_ids.update(["a", "b", "b_2"])
    assert history.own_id("c", []) == "c"
    assert history.own_id("a", []) == "a_2"
    assert history.own_id("b", []) == "b_3"
    assert history.own_id("c", ["c", "c_2"]) == "c_3"
    assert history.own_id("a.b/c", []) == "a_b_c"
    assert history.own_id("x" * 300, []) == "x" * 200


@given(st.text(min_size=1), st.sets(st.sampled_from(["a", "a_2", "a_3", "toolu", "_"])))
def test_an_id_is_always_free_and_allowed(wanted: str, taken: set[str]) -> None:
    history = History()
    history.tool_use_ids.update(taken)
    own = history.own_id(wanted, [])
    assert own not in taken
    assert own.isascii()
    assert own.replace("_", "a").replace("-", "a").isalnum()
    assert 1 <= len(own) <= 256


def test_a_picture_weighs_the_same_whatever_its_size() -> None:
    def picture(size: int) -> bytes:
        source = {"type": "base64", "media_type": "image/png", "data": "A" * size}
        return encode({"type": "image", "source": source})

    small, large = weight_of(picture(1_000)), weight_of(picture(1_000_000))
    assert small == large
    assert 1_000 < small < 20_000


def test_long_text_that_only_looks_like_a_picture_weighs_what_it_is() -> None:
    said = encode(text('"base64" "data":"' + "A" * 1_000_000))
    assert weight_of(said) == len(said)


class Growth(RuleBasedStateMachine):
    """A history beside a plain list of messages."""

    def __init__(self) -> None:
        super().__init__()
        self.history = History()
        self.model: list[dict[str, Any]] = []
        self.hashes: list[list[str]] = []
        self.number = 0

    def next_hash(self) -> str:
        self.number += 1
        return digest(str(self.number).encode())

    @rule(role=ROLES, blocks=BLOCKS)
    def join(self, role: str, blocks: list[Block]) -> None:
        own = self.next_hash()
        self.history.join(joining(role, blocks), own)
        self.model.append({"role": role, "content": blocks})
        self.hashes.append([own])

    @rule(role=ROLES, said=TEXTS)
    def join_text(self, role: str, said: str) -> None:
        own = self.next_hash()
        self.history.join(Joining(role, "text", kept(said)), own)
        self.model.append({"role": role, "content": said})
        self.hashes.append([own])

    @precondition(lambda self: bool(self.model))
    @rule(blocks=BLOCKS)
    def extend(self, blocks: list[Block]) -> None:
        own = self.next_hash()
        self.history.extend(kept(*blocks), own)
        content = self.model[-1]["content"]
        before = [text(content)] if isinstance(content, str) else content
        self.model[-1]["content"] = [*before, *blocks]
        self.hashes[-1].append(own)

    @precondition(lambda self: bool(self.model))
    @rule(data=st.data(), role=ROLES, edits=st.lists(st.lists(BLOCKS, max_size=2), max_size=3))
    def rewrite(self, data: st.DataObject, role: str, edits: list[list[list[Block]]]) -> None:
        bounds = st.integers(0, len(self.model))
        places = sorted(data.draw(st.lists(bounds, min_size=2 * len(edits), max_size=2 * len(edits))))
        spans = list(zip(places[::2], places[1::2], strict=True))
        own = self.next_hash()
        self.history.rewrite(
            [
                Rewrite(start, stop, [joining(role, blocks) for blocks in several])
                for (start, stop), several in zip(spans, edits, strict=True)
            ],
            own,
        )
        for (start, stop), several in reversed([*zip(spans, edits, strict=True)]):
            self.model[start:stop] = [{"role": role, "content": blocks} for blocks in several]
            self.hashes[start:stop] = [[own] for _ in several]

    @invariant()
    def both_agree(self) -> None:
        history, model = self.history, self.model
        assert history.messages() == model
        assert json.loads(b"[%b]" % bytes(history.body())) == model
        assert len(history) == len(model)
        assert history.last_role == (model[-1]["role"] if model else None)
        assert history.weight == sum(len(encode(message)) for message in model)

    @invariant()
    def the_records_are_named(self) -> None:
        chained = ZEROS
        hashes = [own for entry in self.hashes for own in entry]
        for own in hashes:
            chained = digest((chained + own).encode())
        assert self.history.sent == {"count": len(hashes), "digest": chained}

    @invariant()
    def blocks_can_be_taken_out_again(self) -> None:
        for place, message in enumerate(self.model):
            content = message["content"]
            blocks = [content] if isinstance(content, str) else content
            assert [one.encoded for one in self.history.kept(place)] == [encode(block) for block in blocks]
            assert self.history.role(place) == message["role"]


TestGrowth = Growth.TestCase
TestGrowth.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
