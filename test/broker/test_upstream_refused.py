"""A broker that cannot be trusted, or does not trust: each failure is told in its own words, and tells no secret."""

import pathlib
import re
import ssl
import warnings

import pytest

from support import amqp
from support.bellhop import Bellhop, run_cli
from support.certificates import Authority
from support.rabbitmq import free_port
from support.tls_front import TlsFront

SECRET = "hunter2-secret"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


def refusal(broker, secrets=()):
    """What the log says when no session reaches a broker. `broker` is the section but for its timeout."""
    with Bellhop({"broker": {"connect_timeout": "1200ms", **broker}, "log": {"level": "trace"}}) as daemon:
        with pytest.raises(amqp.AmqpError):
            amqp.connect(daemon.socket, password=SECRET)
        line = daemon.wait_log(r"no broker could be reached .*|ended the connection during the handshake: .*").group(0).replace('\\"', '"')
        for secret in (SECRET, *secrets):
            assert secret not in daemon.log
        assert "PRIVATE KEY" not in daemon.log
        return line


def through(front, authority, **tls):
    url = front.url.replace("amqps://", f"amqps://app:{SECRET}@")
    return refusal({"url": url, "tls": {"ca": authority.ca, **tls}})


@pytest.mark.parametrize("certificate, tls, told", [
    ({"days": (-10, -1)}, {}, r"the certificate of 'CN=broker' expired on .* GMT"),
    ({"days": (1, 10)}, {}, r"the certificate of 'CN=broker' is not valid before .* GMT"),
    ({"names": ["one.test", "two.test"]}, {},
     r"the broker's certificate is for the DNS name 'one.test', the DNS name 'two.test' and not for the IP address '127.0.0.1'"),
    ({}, {"server_name": "rabbit.test"},
     r"the broker's certificate is for the DNS name 'localhost', the IP address '127.0.0.1', the IP address '::1' and not for the DNS name 'rabbit.test'"),
    ({"self_signed": True}, {}, r"the broker's certificate, of 'CN=broker', is self-signed and not in broker.tls.ca"),
], ids=["expired", "not yet valid", "other names", "another server_name", "self-signed"])
def test_a_certificate_that_is_not_good_is_refused(rabbit, authority, certificate, tls, told):
    with TlsFront(rabbit.address, authority.issue("broker", **certificate)) as front:
        assert re.search(told, through(front, authority, **tls))
        assert front.failures and not front.versions  # the broker was told too


def test_an_unknown_authority_is_refused_the_systems_do_not_know_it_either(rabbit, authority, tmp_path):
    stranger = Authority(tmp_path, "stranger")
    with TlsFront(rabbit.address, stranger.issue("broker")) as front:
        told = "the certificate of 'CN=broker' was issued by an unknown CA, 'CN=stranger'"
        assert told in through(front, authority)
        assert told in refusal({"url": front.url})


def test_verify_false_takes_all_of_these_and_says_so_at_the_start(bellhop, rabbit, authority):
    with TlsFront(rabbit.address, authority.issue("broker", ["one.test"], days=(-10, -1), self_signed=True)) as front:
        daemon = bellhop({"broker": {"url": front.url, "tls": {"verify": False}}})
        daemon.wait_log("broker.tls.verify is false")
        amqp.connect(daemon.socket).close()


def test_no_tls_there(rabbit, authority):
    line = refusal({"url": f"amqps://{rabbit.address}", "tls": {"ca": authority.ca}})
    assert f"amqps://{rabbit.address}: {rabbit.address}: there is no TLS: a broker without TLS answered" in line


def test_tls_where_none_was_expected(tls_rabbit):
    """As text, so that the test run over TLS leaves the URL alone."""
    with Bellhop(f"listen: [{{ unix: '{{dir}}/s' }}]\nbroker: {{ url: 'amqp://{tls_rabbit.tls_address}' }}\n") as daemon:
        with pytest.raises(amqp.ConnectionClosed) as told:
            amqp.connect(str(daemon.folder / "s"))
        assert "the broker speaks TLS there: the URL should begin with amqps://" in told.value.text
        daemon.wait_log(f"the broker speaks TLS there.* broker=amqp://{tls_rabbit.tls_address} ")


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
@pytest.mark.parametrize("shown", [False, True], ids=["no certificate", "a stranger's certificate"])
def test_a_broker_that_wants_another_client_certificate(rabbit, authority, tmp_path, version, shown):
    def strict(context):
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.ca)
        context.maximum_version = getattr(ssl.TLSVersion, version)

    tls, told = {}, r"TLS alert \".*\" \(it may want a client certificate: broker.tls.cert and key\)"
    if shown:
        own = Authority(tmp_path, "stranger").issue("client")
        tls = {"cert": own.cert, "key": own.key}
        told = r"TLS alert \".*\" \(it may not accept the client certificate broker.tls.cert\)"
    with TlsFront(rabbit.address, authority.issue("broker"), strict) as front:
        line = refusal({"url": front.url, "tls": {"ca": authority.ca, **tls}},
                       secrets=[pathlib.Path(tls["key"]).read_text().splitlines()[1]] if tls else [])
        assert re.search(told, line)


def test_an_old_tls_is_refused(rabbit, authority):
    def old(context):
        context.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1

    with TlsFront(rabbit.address, authority.issue("broker"), old) as front:
        assert "TLS alert \"protocol version\" (bellhop speaks TLS 1.2 and 1.3)" in through(front, authority)


def test_each_broker_of_a_list_has_its_own_reason(rabbit, authority):
    port = free_port()
    with TlsFront(rabbit.address, authority.issue("broker", days=(-10, -1))) as front:
        line = refusal({"url": [front.url, f"amqps://127.0.0.1:{port}"], "tls": {"ca": authority.ca}})
        assert re.search(rf"{front.url}: {front.address}: the certificate .* expired on .*; amqps://127.0.0.1:{port}: .*Connection refused", line)


def test_the_next_broker_is_taken_when_the_first_is_not_to_be_trusted(bellhop, rabbit, authority):
    with TlsFront(rabbit.address, authority.issue("broker", days=(-10, -1))) as bad, \
            TlsFront(rabbit.address, authority.issue("broker")) as good:
        daemon = bellhop({"broker": {"url": [bad.url, good.url], "tls": {"ca": authority.ca}}})
        amqp.connect(daemon.socket).close()
        assert good.versions


def test_check_tells_what_a_file_lacks_and_what_is_good(authority, tmp_path):
    own = authority.issue("client")

    def check(tls):
        file = tmp_path / "bellhop.yaml"
        file.write_text(f"broker:\n  url: amqps://rabbit.test\n  tls: {tls}\n")
        return run_cli("check", file)

    good = check(f"{{ ca: {authority.ca}, cert: {own.cert}, key: {own.key}, server_name: other.test }}")
    assert good.returncode == 0, good.stderr
    assert "amqps://rabbit.test:5671 by the client certificate (EXTERNAL), or where that is not offered with each client's own" in good.stdout
    assert f"tls verified with the CAs in '{authority.ca}', client certificate '{own.cert}', for the name 'other.test'" in good.stdout
    bad = check(f"{{ ca: {own.key} }}")
    assert bad.returncode == 2 and f":3:14: broker.tls.ca: file '{own.key}' has a damaged certificate or none in it" in bad.stderr
    assert pathlib.Path(own.key).read_text().splitlines()[1] not in bad.stderr


def test_a_daemon_whose_system_knows_no_authority_does_not_start(tmp_path):
    (tmp_path / "bellhop.yaml").write_text(f"listen: [{{ unix: '{tmp_path}/s' }}]\nbroker: {{ url: amqps://rabbit.test }}\n")
    done = run_cli("run", "--config", tmp_path / "bellhop.yaml", env={"SSL_CERT_FILE": "/nowhere/ca.pem", "SSL_CERT_DIR": "/nowhere"})
    assert done.returncode == 1
    assert "cannot start reason=\"the system has no readable store of CAs" in done.stderr
