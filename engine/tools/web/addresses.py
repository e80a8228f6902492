"""Which addresses a model may have fetched: those of the public internet, and what its user allows."""

import ipaddress
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import Final

import attrs

from looplatch.states.brief import brief
from looplatch.states.errors import LooplatchError, UsageError

__all__ = ["Address", "AddressRefused", "Allowed", "is_public"]

Address = IPv4Address | IPv6Address

# Public by their number, but answered inside of clouds with what only the machine should know.
_METADATA: Final = frozenset({IPv4Address("168.63.129.16"), IPv4Address("192.0.0.192")})
_NETWORKS: Final = tuple(
    ipaddress.ip_network(network)
    for network in ("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "fec0::/10")
)
_CARRIES_IPV4: Final = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))


class AddressRefused(LooplatchError):
    """An address that is not public was to be fetched from; `host` is what was asked for, `address` what it is."""

    def __init__(self, host: str, address: str) -> None:
        known = "" if host == address else f" ({address})"
        super().__init__(f"{host}{known} is no public address, so nothing was fetched from it")
        self.host = host
        self.address = address


def is_public(address: Address) -> bool:
    """Whether an address is one of the public internet, in itself and in what it stands for."""
    return all(_is_public(meant) for meant in _meant(address))


def _is_public(address: Address) -> bool:
    if not address.is_global or address.is_multicast or address in _METADATA:
        return False
    return not any(address.version == network.version and address in network for network in _NETWORKS)


def _meant(address: Address) -> Iterator[Address]:
    """The address, and the IPv4 addresses that it leads to."""
    if isinstance(address, IPv4Address):
        yield address
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
        return
    yield address
    if address.sixtofour is not None:
        yield address.sixtofour
    if any(address in network for network in _CARRIES_IPV4):
        yield IPv4Address(int(address) & 0xFFFF_FFFF)


@attrs.frozen
class Allowed:
    """What may be fetched from although it is not public: hosts by their names, addresses by their networks."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> "Allowed":
        """From texts such as "intranet.example", "127.0.0.1" and "10.0.0.0/8". Raises UsageError for any other."""
        if isinstance(entries, str):
            raise UsageError("allow", f"{brief(entries)} is one text, not a list", 'Give a list: ["10.0.0.0/8", ...]')
        hosts: set[str] = set()
        networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for entry in entries:
            try:
                networks.append(ipaddress.ip_network(entry))
            except ValueError:
                if not entry or "/" in entry or ":" in entry:
                    mend = "Give names of hosts, addresses, or networks such as '10.0.0.0/8'"
                    raise UsageError("allow", f"{brief(entry)} is no host and no network", mend) from None
                hosts.add(entry.lower())
        return cls(frozenset(hosts), tuple(networks))

    def takes(self, host: str, address: Address) -> bool:
        """Whether `host`, which is at `address`, may be fetched from."""
        if is_public(address) or host.lower().rstrip(".") in self.hosts:
            return True
        return any(address.version == network.version and address in network for network in self.networks)

    def checked(self, host: str, found: Iterable[str]) -> list[str]:
        """The addresses at which a host was found, each once. Raises AddressRefused if one of them may not be used."""
        addresses: dict[str, None] = {}
        for text in found:
            bare = text.partition("%")[0]  # a scope says through which interface
            if not self.takes(host, ipaddress.ip_address(bare)):
                raise AddressRefused(host, bare)
            addresses[text] = None
        return list(addresses)
