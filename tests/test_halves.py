"""A secret that is cut in half where a text is shortened: neither half is kept, or sent."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch import Compression, verify
from looplatch.audit import SECRETS
from looplatch.recovery.compression.cutting import cut_content
from looplatch.states.halves import secrets_in, without_halves
from looplatch.testing import reply, tool_use
from tests.playing import play, saying, tool_named

KEY = "sk-ant-" + "api03-0123456789abcdefABCDEF_-x"
VALUE = "abcdef0123456789abcdef"


@given(st.integers(0, 300), st.integers(0, 300), st.sampled_from([KEY, f"api_key = {VALUE}"]))
def test_no_half_stays_wherever_a_text_is_cut(before: int, after: int, secret: str) -> None:
    whole = "." * before + f" {secret} " + "." * after
    cut = cut_content([{"type": "text", "text": whole}], 30)
    clean = without_halves(cut, secrets_in(SECRETS, whole))
    kept = SECRETS.taken_out(clean)[0][0]["text"]
    hidden = VALUE if VALUE in secret else KEY
    assert not [hidden[at : at + 4] for at in range(len(hidden) - 3) if hidden[at : at + 4] in kept]


def test_what_has_no_half_in_it_is_the_same_object() -> None:
    value: Any = [{"type": "text", "text": f"a {KEY}"}, {"n": 1}]
    assert without_halves(value, {KEY: "anthropic_key"}) is value


LONG = [
    "a" * 149_990 + f" {KEY} " + "b" * 80_000,  # across the end of the head
    "a" * 160_000 + f" {KEY} " + "b" * 49_980,  # across the start of the tail
    "a" * 160_000 + f" api_key={VALUE} " + "b" * 49_990,  # whole, and without its name
]


@pytest.mark.parametrize("said", LONG, ids=["head", "tail", "named"])
def test_a_result_that_is_cut_to_be_sent_keeps_no_half(said: str) -> None:
    run = play([reply(tool_use("t1", "tell", {})), reply("I see.")], tools=[saying("tell", said)])
    block: Any = run.log.messages[2]["content"][0]
    for part in (KEY[:10], KEY[-10:], VALUE):
        assert part not in str(block)
        assert part not in str(run.sent[1])
    assert "[redacted: " in str(block)
    assert "left out" in str(block)
    assert verify(run.log).ok


def test_an_old_result_that_compression_cuts_keeps_no_half() -> None:
    def answer(given: dict[str, Any], ctx: Any) -> str:
        return f"{given['n']} " + "a " * 2_990 + f" {KEY} " + "b " * 12_000

    script = [reply(tool_use(f"t{number}", "tell", {"n": number})) for number in range(6)]
    compression = Compression(snip_at=0.1, snip_frees=0.0, long_result_tokens=4_000, keep_exchanges=1)
    tools = [tool_named("tell", answer=answer)]
    run = play([*script, reply("I see.")], tools=tools, compression=compression, window=80_000)
    kept = str(run.log.messages)
    assert "tokens left out" in kept
    for part in (KEY[:10], KEY[-10:]):
        assert part not in kept
    assert KEY in str(run.sent[1])
    assert KEY[:10] not in str(run.run.messages[2])
    assert verify(run.log).ok
