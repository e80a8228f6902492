"""Signing: who signs the seal and the checkpoints of a log, with Ed25519, and the key that they are checked with."""

import hashlib
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import attrs

from looplatch.audit.errors import SigningFailed
from looplatch.paths import path_of
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.verify.signatures import PublicKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SIZE: Final = 64  # bytes of a signature
_NAME_SIZE: Final = 64  # hex digits
_DIGITS: Final = frozenset("0123456789abcdef")


@runtime_checkable
class Signer(Protocol):
    """What signs: a key in a file, or a service that holds one.

    It is called in the thread that the run is in, once for its seal, for each checkpoint in the log and for each one
    that is handed out. Where it raises, the log goes no further, as where a disk is full.
    """

    @property
    def key_id(self) -> str:
        """The public key's name: the SHA-256 of its DER (SubjectPublicKeyInfo), 64 hex digits, as `key_id` tells it."""
        ...

    def sign(self, data: bytes, /) -> bytes:
        """The Ed25519 signature of `data` (some hundred bytes at most): 64 bytes."""
        ...


@attrs.frozen
class KeySigner:
    """Signs with a private key of `cryptography`, in this process."""

    private_key: "Ed25519PrivateKey" = attrs.field(repr=False)

    @property
    def key_id(self) -> str:
        """See `Signer`."""
        return _key_id(self.private_key.public_key())

    def sign(self, data: bytes, /) -> bytes:
        """See `Signer`."""
        return self.private_key.sign(data)


def signer_of(given: str | os.PathLike[str] | Signer | None) -> Signer | None:
    """A signer as it is, or one with the private key in a PEM file. Raises UsageError for what is neither."""
    if isinstance(given, str | os.PathLike):
        return _read_signer(path_of("signer", given))
    if given is None:
        return None
    if not isinstance(given, Signer):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("signer", f"{brief(given)} signs nothing", "Give the path of a private key, or a Signer")
    if not _is_key_id(given.key_id):
        problem = f"its key_id {brief(given.key_id)} is not the SHA-256 of a public key"
        raise UsageError("signer", problem, "Give looplatch.audit.key_id(...) of the file with the public key")
    return given


def public_key(file: str | os.PathLike[str]) -> PublicKey:
    """The Ed25519 public key in a PEM file, for `verify`. Raises UsageError where there is none."""
    key = _read_public(path_of("key", file))
    from cryptography.exceptions import InvalidSignature

    def verifies(data: bytes, signature: bytes) -> bool:
        try:
            key.verify(signature, data)
        except InvalidSignature:
            return False
        return True

    return PublicKey(key_id=_key_id(key), verifies=verifies)


def key_id(file: str | os.PathLike[str]) -> str:
    """The name of the Ed25519 public key in a PEM file, as logs have it. Raises UsageError where there is none."""
    return _key_id(_read_public(Path(file)))


def signature(signer: Signer, data: bytes) -> str:
    """The signature of `data`, as hex digits. Raises SigningFailed."""
    try:
        made = signer.sign(data)
    except Exception as error:
        raise SigningFailed(signer.key_id, error) from error
    if type(made) is not bytes or len(made) != SIZE:
        raise SigningFailed(signer.key_id, ValueError(f"it gave no signature of {SIZE} bytes"))
    return made.hex()


def _is_key_id(value: object) -> bool:
    return isinstance(value, str) and len(value) == _NAME_SIZE and set(value) <= _DIGITS


def checkpoint_bytes(checkpoint: str) -> bytes:
    """What the signature of a checkpoint that is handed out is made of."""
    return f"looplatch checkpoint {checkpoint}".encode()


def _key_id(key: "Ed25519PublicKey") -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def _read_signer(file: Path) -> KeySigner:
    data = _read("signer", file)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    mend = "Give a PEM file, as `openssl genpkey -algorithm ed25519` makes it"
    try:
        key = load_pem_private_key(data, password=None)
    except TypeError:
        mend = "Decrypt it yourself, and give looplatch.audit.KeySigner(key)"
        raise UsageError("signer", f"the key in {file} is encrypted", mend) from None
    except ValueError:  # without its text, in which a key may stand
        raise UsageError("signer", f"{file} holds no private key", mend) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError("signer", f"the key in {file} is not one of Ed25519", mend)
    return KeySigner(key)


def _read_public(file: Path) -> "Ed25519PublicKey":
    data = _read("key", file)
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        mend = "Give a PEM file, as `openssl pkey -in PRIVATE.pem -pubout` makes it"
        raise UsageError("key", f"{file} holds no public key of Ed25519", mend)
    return key


def _read(what: str, file: Path) -> bytes:
    if importlib.util.find_spec("cryptography") is None:
        problem = "it needs a package that is not installed"
        raise UsageError(what, problem, "Install it: pip install 'looplatch[signing]'")
    try:
        return file.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(what, f"{file} cannot be read ({why})", "Give the path of a PEM file") from error
