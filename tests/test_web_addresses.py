"""Which addresses may be fetched from: the public ones, whatever they hide behind, and what is allowed."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.states.errors import UsageError
from looplatch.tools.web.addresses import AddressRefused, Allowed, is_public

PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.215.14", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]

PRIVATE = [
    "127.0.0.1", "127.1.2.3", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200", "192.0.0.192", "192.0.0.9", "168.63.129.16",
    "192.0.2.1", "198.18.0.1", "203.0.113.5", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "192.88.99.1",
    "::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "64:ff9b:1::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1",
    "2002:7f00:1::", "2002:a9fe:a9fe::1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
    "2001:0:7f00:1::", "2001:0:808:808::80ff:fffe",
]  # fmt: skip


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_is_taken(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))
    assert Allowed().checked("host", [text]) == [text]


@pytest.mark.parametrize("text", PRIVATE)
def test_any_other_is_refused(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))
    with pytest.raises(AddressRefused) as caught:
        Allowed().checked("host.example", ["8.8.8.8", text])
    assert str(caught.value) == f"host.example ({text}) is no public address, so nothing was fetched from it"


@given(st.ip_addresses(v=4))
def test_an_address_hidden_in_another_is_judged_as_itself(address: ipaddress.IPv4Address) -> None:
    number, public = int(address), is_public(address)
    assert is_public(ipaddress.IPv6Address((0xFFFF << 32) | number)) is public
    for carrier in (number << 80 | 0x2002 << 112, 0x64FF9B << 96 | number):
        assert not is_public(ipaddress.IPv6Address(carrier)) or public


@given(st.sampled_from(["10.0.0.0/8", "192.168.0.0/16", "fc00::/7", "127.0.0.0/8", "fe80::/10"]), st.data())
def test_no_address_of_a_private_network_is_public(network: str, data: st.DataObject) -> None:
    address = data.draw(st.ip_addresses(network=network))
    assert not is_public(address)
    assert Allowed.of([network]).takes("host", address)
    assert not Allowed.of(["203.0.113.0/24"]).takes("host", address)


def test_hosts_and_networks_may_be_allowed() -> None:
    allowed = Allowed.of(["Intranet.example", "10.0.0.0/8", "::1"])
    assert allowed.checked("INTRANET.example.", ["192.168.1.1"]) == ["192.168.1.1"]
    assert allowed.checked("other", ["10.1.2.3", "::1", "::1"]) == ["10.1.2.3", "::1"]
    for host, address in (("intranet.example.evil", "192.168.1.1"), ("other", "127.0.0.1")):
        with pytest.raises(AddressRefused):
            allowed.checked(host, [address])


def test_a_scope_is_no_part_of_an_address() -> None:
    assert Allowed.of(["fe80::/10"]).checked("host", ["fe80::1%eth0"]) == ["fe80::1%eth0"]
    with pytest.raises(AddressRefused, match=r"^fe80::1 is no public address"):
        Allowed().checked("fe80::1", ["fe80::1%eth0"])


@pytest.mark.parametrize("entry", ["", "10.0.0.0/99", "http://host", "host:80", "10.0.0.1/8"])
def test_what_is_no_host_and_no_network_cannot_be_allowed(entry: str) -> None:
    with pytest.raises(UsageError, match="is no host and no network"):
        Allowed.of([entry])


def test_one_text_is_no_list() -> None:
    with pytest.raises(UsageError, match="is one text, not a list"):
        Allowed.of("10.0.0.0/8")
