"""The Merkle root, against RFC 6962 written out word for word."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from looplatch.states.merkle import Merkle
from tests.forge import hexed, naive_root

HASHES = st.lists(st.binary(min_size=32, max_size=32).map(bytes.hex), max_size=40)


@given(HASHES)
def test_the_root_is_that_of_rfc_6962_at_every_length(hashes: list[str]) -> None:
    merkle = Merkle()
    for count, leaf in enumerate(hashes, 1):
        merkle.add(leaf)
        assert (merkle.count, merkle.root()) == (count, naive_root(hashes[:count]))


def test_known_roots() -> None:
    """Of nothing, the hash of nothing; of one leaf, its hash behind a zero byte; of two, theirs behind a one."""
    merkle = Merkle()
    assert merkle.root() == hashlib.sha256(b"").hexdigest()
    one, two = (bytes.fromhex(hexed(name)) for name in ("one", "two"))
    merkle.add(one.hex())
    first = hashlib.sha256(b"\x00" + one).digest()
    assert merkle.root() == first.hex()
    merkle.add(two.hex())
    assert merkle.root() == hashlib.sha256(b"\x01" + first + hashlib.sha256(b"\x00" + two).digest()).hexdigest()


def test_the_root_of_many() -> None:
    merkle = Merkle()
    for number in range(1_000):
        merkle.add(hexed(str(number)))
    assert merkle.root() == naive_root(hexed(str(number)) for number in range(1_000))
