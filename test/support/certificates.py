"""Certificates for tests: an authority of its own, and what it issues.

    authority = Authority(folder)
    broker = authority.issue("broker", names=["localhost", "127.0.0.1"])
    broker.cert, broker.key, authority.ca      # paths of PEM files

EC keys, which take no time.
"""

import datetime
import functools
import ipaddress
import os
import pathlib
import tempfile
import uuid

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HERE = ("localhost", "127.0.0.1", "::1")


def _general_name(text):
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _write(path, data, mode=0o600):
    path.write_bytes(data)
    path.chmod(mode)
    return str(path)


class Identity:
    """A certificate and its key, as paths of PEM files."""

    def __init__(self, folder, certificate, key):
        stem = pathlib.Path(folder) / uuid.uuid4().hex[:8]
        self.cert = _write(stem.with_suffix(".pem"), certificate.public_bytes(serialization.Encoding.PEM))
        self.key = _write(stem.with_suffix(".key"), key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))


class Authority:
    """`ca` is the path of its certificate. Another process may open the same folder once `ca` is there."""

    def __init__(self, folder, name="bellhop's test authority"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ca = str(self.folder / "ca.pem")
        key_path = self.folder / "ca.key"
        if os.path.exists(self.ca):
            self.key = serialization.load_pem_private_key(key_path.read_bytes(), None)
            self.certificate = x509.load_pem_x509_certificate(pathlib.Path(self.ca).read_bytes())
            return
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._make(name, self.key, (-1, 30), None, (), True)
        _write(key_path, self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                                serialization.NoEncryption()))
        _write(pathlib.Path(self.ca), self.certificate.public_bytes(serialization.Encoding.PEM), 0o644)

    def _make(self, name, key, days, issuer, names, is_authority):
        now = datetime.datetime.utcnow()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer.subject if issuer else subject)
                   .public_key(key.public_key()).serial_number(x509.random_serial_number())
                   .not_valid_before(now + datetime.timedelta(days=days[0]))
                   .not_valid_after(now + datetime.timedelta(days=days[1]))
                   .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True))
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(n) for n in names]), critical=False)
        return builder.sign(self.key if issuer else key, hashes.SHA256())

    def issue(self, name, names=HERE, days=(-1, 30), self_signed=False):
        """An Identity; valid from `days[0]` to `days[1]`, counted from today."""
        key = ec.generate_private_key(ec.SECP256R1())
        return Identity(self.folder, self._make(name, key, days, None if self_signed else self.certificate, names, False), key)


@functools.lru_cache(maxsize=None)
def shared_authority():
    """The one that this test run's nodes have their certificates from, and its daemons trust."""
    folder = os.environ.get("BELLHOP_TEST_AMQP_DIR")
    if folder and os.path.exists(os.path.join(folder, "tls", "ca.pem")):
        return Authority(os.path.join(folder, "tls"))
    keeper = tempfile.TemporaryDirectory(prefix="bellhop-ca-")
    authority = Authority(keeper.name)
    authority.keeper = keeper  # removed with it
    return authority
