"""amqps:// to RabbitMQ: what travels, in which TLS, and that a bad peer holds up nobody but its own session."""

import os
import ssl

import pytest

from support import amqp
from support.bellhop import Bellhop
from support.certificates import Authority, shared_authority
from support.proxy import Proxy
from support.rabbitmq import Node, version, wait_until
from support.tls_front import TlsFront

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


def to(address, **more):
    """A configuration for a broker with TLS there."""
    broker = {"url": f"amqps://{address}", "tls": {"ca": shared_authority().ca}, **more}
    return {"broker": broker, "claim_check": {"enabled": False}}


def declared(channel, name):
    channel.call("queue.declare", queue=name)
    return name


def round_trip(address, queue, bodies):
    client = amqp.connect(address)
    channel = client.channel()
    declared(channel, queue)
    channel.call("confirm.select")
    for body in bodies:
        channel.publish("", queue, body)
    assert set(channel.confirms(len(bodies), timeout=60).values()) == {"ack"}
    channel.call("basic.consume", queue=queue, consumer_tag="c", no_ack=True)
    got = [channel.deliver(timeout=60).body for _ in bodies]
    channel.call("queue.delete", queue=queue)
    client.close()
    assert [len(body) for body in got] == [len(body) for body in bodies] and got == bodies


def test_bodies_of_all_sizes_travel_and_the_connection_is_encrypted(bellhop, tls_rabbit, name):
    daemon = bellhop(to(tls_rabbit.tls_address))
    with amqp.connect(daemon.socket):
        port = str(tls_rabbit.tls_port)
        rows = wait_until(lambda: [row for row in tls_rabbit.rows("list_connections", "port", "ssl", "ssl_protocol") if row[0] == port],
                          what="the connection")
        assert rows[0] == [port, "true", "tlsv1.3"]
    round_trip(daemon.socket, name(), [os.urandom(size) for size in (0, 1, 16384, 16385, 131072, 3 * MIB + 7)])


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_both_versions_are_spoken_and_the_name_is_asked_for(bellhop, rabbit, name, authority, version):
    def only(context):
        context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, version.replace(".", "_"))

    with TlsFront(rabbit.address, authority.issue("broker", ["rabbit.test"]), only) as front:
        daemon = bellhop(to(front.address, tls={"ca": authority.ca, "server_name": "rabbit.test"}))
        round_trip(daemon.socket, name(), [b"small", os.urandom(MIB)])
        assert front.versions == [version] and front.names == ["rabbit.test"]


def test_an_address_is_verified_as_one_and_no_name_is_asked_for(bellhop, rabbit, authority):
    with TlsFront(rabbit.address, authority.issue("broker", ["127.0.0.1"])) as front:
        daemon = bellhop(to(front.address, tls={"ca": authority.ca}))
        amqp.connect(daemon.socket).close()
        assert front.names == [None]


def test_a_host_name_is_resolved_and_verified(bellhop, rabbit, authority):
    with TlsFront(rabbit.address, authority.issue("broker", ["localhost"])) as front:
        daemon = bellhop(to(front.address.replace("127.0.0.1", "localhost"), tls={"ca": authority.ca}))
        amqp.connect(daemon.socket).close()
        assert front.names == ["localhost"]


def test_without_a_ca_the_systems_store_is_trusted(bellhop, rabbit, authority, tmp_path):
    with TlsFront(rabbit.address, authority.issue("broker")) as front:
        for env in ({"SSL_CERT_FILE": authority.ca}, {"SSL_CERT_DIR": os.path.dirname(authority.ca)}):
            daemon = bellhop({"broker": {"url": front.url, "tls": {"verify": True}}}, env=env)
            amqp.connect(daemon.socket).close()


# RabbitMQ 4 takes no larger message without being told to.
LARGE_MIB = 100 if version() < (4, 0) else 15


def test_a_large_body_passes_without_being_held(bellhop, tls_rabbit, name):
    daemon = bellhop(to(tls_rabbit.tls_address))
    amqp.connect(daemon.socket).close()
    idle = daemon.memory_kib()
    round_trip(daemon.socket, name(), [os.urandom(MIB) * LARGE_MIB])
    daemon.assert_memory_below(16 * 1024 if LARGE_MIB > 16 else 8 * 1024, field="VmHWM", beyond=idle)


def test_ten_thousand_confirms_of_one_pipeline(bellhop, tls_rabbit, name):
    daemon = bellhop(to(tls_rabbit.tls_address))
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    queue = channel.declare(name(), exclusive=True)
    channel.call("confirm.select")
    batch = b"".join(b"".join(channel.publish_frames("", queue, b"x" * 100)) for _ in range(1000))
    for number in range(10):
        client.send_raw(batch)
        outcome = channel.confirms((number + 1) * 1000, timeout=60)
    assert len(outcome) == 10_000 and set(outcome.values()) == {"ack"}
    client.close()


def test_a_consumer_that_does_not_read_holds_the_broker_back_and_loses_nothing(bellhop, tls_rabbit, name):
    daemon = bellhop(to(tls_rabbit.tls_address))
    feeder = amqp.connect(daemon.socket)
    source = feeder.channel()
    queue = declared(source, name())
    source.call("confirm.select")
    body, count = os.urandom(MIB), 60
    for number in range(count):
        source.publish("", queue, number.to_bytes(4, "big") + body)
    source.confirms(count, timeout=60)
    idle = daemon.memory_kib()
    slow = amqp.connect(daemon.socket)
    channel = slow.channel()
    channel.call("basic.consume", queue=queue, consumer_tag="c", no_ack=True)
    # The broker has more to say than the sockets hold: it waits, until the client reads.
    feeder.channel().get(queue)
    daemon.assert_memory_below(24 * 1024, beyond=idle)
    got = [channel.deliver(timeout=60).body for _ in range(count - 1)]
    numbers = [int.from_bytes(each[:4], "big") for each in got]
    assert numbers == sorted(numbers) and all(each[4:] == body for each in got)
    source.call("queue.delete", queue=queue)


def test_a_peer_that_stalls_in_the_handshake_holds_up_no_other_session(bellhop, tls_rabbit, authority):
    with TlsFront("127.0.0.1:1", authority.issue("broker"), silent=True) as mute:
        daemon = bellhop({"broker": {"url": [mute.url, f"amqps://{tls_rabbit.tls_address}"], "connect_timeout": "6s",
                                     "tls": {"ca": shared_authority().ca}}})
        # The first is stuck at the mute one for its share of the time, then served by the other.
        first = amqp.Client(daemon.socket, timeout=20)
        first.send_header()
        wait_until(lambda: mute.kept, what="the session at the mute peer")
        first.start()
        # From then on the good one is the first choice.
        amqp.connect(daemon.socket, timeout=1).close()
        first.abort()


def test_sessions_that_work_go_on_while_others_wait_for_a_handshake(bellhop, tls_rabbit, name):
    with Proxy(tls_rabbit.tls_address) as proxy:
        daemon = bellhop(to(proxy.address))
        client = amqp.connect(daemon.socket)
        channel = client.channel()
        queue = channel.declare(name(), exclusive=True)
        proxy.stall_new()
        waiting = [amqp.Client(daemon.socket) for _ in range(8)]
        for each in waiting:
            each.send_header()
        wait_until(lambda: proxy.accepted >= 9, what="all sessions at the broker")
        channel.call("confirm.select")
        for number in range(100):
            channel.publish("", queue, b"x" * 1000)
            channel.confirms(number + 1, timeout=5)
        proxy.resume()
        for each in waiting:
            each.start(timeout=20)
            each.abort()
        client.close()


@pytest.mark.parametrize("how", ["cut", "reset"])
def test_a_connection_that_breaks_in_the_middle_is_told_to_the_client(bellhop, tls_rabbit, name, how):
    with Proxy(tls_rabbit.tls_address) as proxy:
        daemon = bellhop(to(proxy.address))
        client = amqp.connect(daemon.socket)
        channel = client.channel()
        queue = channel.declare(name(), exclusive=True)
        channel.publish("", queue, b"x" * MIB)
        getattr(proxy, how)()
        closed = client.expect_close(320)
        assert "the broker connection was lost" in closed.reply_text
        amqp.connect(daemon.socket).close()


def test_a_record_cut_off_by_the_end_is_an_end(bellhop, tls_rabbit, name):
    with Proxy(tls_rabbit.tls_address) as proxy:
        daemon = bellhop(to(proxy.address))
        client = amqp.connect(daemon.socket)
        channel = client.channel()
        queue = channel.declare(name(), exclusive=True)
        channel.publish("", queue, b"y" * MIB)
        proxy.cut_after("down", proxy.carried("down") + 500_000)
        channel.call("basic.consume", queue=queue, consumer_tag="c", no_ack=True)
        # No connection.close stands inside a body: where one is half handed over, the socket just ends.
        try:
            while client.read_frame(timeout=20).channel != 0:
                pass
        except amqp.SocketClosed:
            pass
        daemon.wait_log("the broker connection was lost")


def test_a_node_that_is_killed_and_comes_back_is_found_again(bellhop):
    node = Node.start(tls=True)
    try:
        daemon = bellhop(to(node.tls_address))
        client = amqp.connect(daemon.socket)
        node.kill()
        client.expect_close(320)
        node.launch()
        amqp.connect(daemon.socket, timeout=30).close()
    finally:
        node.stop()


def test_pipelines_are_declared_over_tls(bellhop, tls_rabbit, name):
    pipeline = name("line")
    config = to(tls_rabbit.tls_address, username="guest", password="guest")
    daemon = bellhop({**config, "pipelines": {pipeline: {"steps": ["one", "two"], "declare": True}}})
    daemon.wait_log("pipelines declared broker=amqps://")
    assert {f"{pipeline}.one", f"{pipeline}.two", f"{pipeline}.one.dlq", f"{pipeline}.two.parked"} <= set(tls_rabbit.queues())


def test_the_end_of_a_session_is_said_with_close_notify(bellhop, rabbit, authority):
    with TlsFront(rabbit.address, authority.issue("broker")) as front:
        daemon = bellhop(to(front.address, tls={"ca": authority.ca}))
        amqp.connect(daemon.socket).close()
        assert wait_until(lambda: front.ends, what="the end") == ["close_notify"]


def test_a_daemon_without_an_amqps_url_does_not_even_begin_with_tls(rabbit):
    with Bellhop(f"listen: [{{ unix: '{{dir}}/s' }}]\nbroker: {{ url: 'amqp://{rabbit.address}' }}\n") as daemon:
        amqp.connect(str(daemon.folder / "s")).close()
        daemon.assert_memory_below(12 * 1024)
