"""The interleaved handshake with a broker that the test plays: offers that RabbitMQ does not make, and brokers that fail in the middle."""

import socket
import time

import pytest

from support import amqp
from support.bellhop import Bellhop
from support.scripted_broker import ScriptedBroker, background


@pytest.fixture
def start():
    """start(fake, {...}) starts a daemon in front of a scripted broker, with a heartbeat of 30 s unless it is said otherwise."""
    daemons = []

    def run(fake, config=None):
        config = dict(config or {})
        config["broker"] = {"url": fake.url, **config.get("broker", {})}
        daemons.append(Bellhop(config))
        return daemons[-1]

    yield run
    for daemon in daemons:
        daemon.stop()


@pytest.mark.parametrize("offer, below, above", [
    # What the broker offers; what the client is offered; what the broker is answered when the client takes all.
    ((2047, 131072, 60), (2046, 131072, 30), (2047, 131072, 30)),
    ((100, 8192, 5), (99, 8192, 30), (100, 8192, 5)),
    ((0, 0, 0), (2047, 131072, 30), (2048, 1048576, 30)),
    ((65535, 4096, 600), (2047, 4096, 30), (2048, 4096, 30)),
    ((2, 4294967295, 60), (1, 1048576, 30), (2, 1048576, 30)),
    ((1, 131072, 60), (1, 131072, 30), (1, 131072, 30)),
])
def test_what_is_offered_below_and_taken_above(start, offer, below, above):
    with ScriptedBroker(*offer) as fake:
        daemon = start(fake)
        client, leg = fake.connect(daemon.socket, heartbeat=None)
        assert (client.tuned.channel_max, client.tuned.frame_max, client.tuned.heartbeat) == below
        assert (leg.tuned.channel_max, leg.tuned.frame_max, leg.tuned.heartbeat) == above
        client.abort()


def test_channels_per_session_bounds_what_the_client_is_offered(start):
    with ScriptedBroker() as fake:
        client, leg = fake.connect(start(fake, {"limits": {"channels_per_session": 5}}).socket)
        assert (client.tuned.channel_max, leg.tuned.channel_max) == (5, 6)
        client.send(6, "channel.open")
        client.expect_close(530)


def test_the_legs_have_heartbeats_of_their_own(start):
    """The client's choice is its leg's alone; `broker.heartbeat: 0` turns both offers off."""
    with ScriptedBroker(heartbeat=60) as fake:
        client, leg = fake.connect(start(fake).socket, heartbeat=3)
        assert leg.tuned.heartbeat == 30
        client.abort()
        client, leg = fake.connect(start(fake, {"broker": {"heartbeat": "0s"}}).socket, heartbeat=None)
        assert (client.tuned.heartbeat, leg.tuned.heartbeat) == (0, 0)
        client.abort()


def test_what_the_sides_say_of_themselves_passes_byte_for_byte(start):
    """Tables with types and orders that no codec would write again the same way."""
    odd = amqp.encode_table([("zz", amqp.Typed("b", -3)), ("a", amqp.Typed("l", 1)), ("list", [amqp.Typed("s", 1), {"k": None}]),
                             ("capabilities", {"authentication_failure_close": True}), ("a", "twice")])
    with ScriptedBroker(server_properties=odd) as fake:
        daemon = start(fake)
        client = amqp.Client(daemon.socket, client_properties=odd)
        client.send_header()
        leg = fake.accept(handshake=False)
        leg.send_start()
        assert odd in client.start().payload
        client.start_ok()
        leg.send_tune()
        assert odd in leg.login.payload
        client.abort()

        owner = start(fake, {"broker": {"username": "me", "password": "mine"}})
        fake.accept(handshake=False).abort()  # bellhop tries its login at start
        client = amqp.Client(owner.socket, client_properties=odd, locale="de_DE")
        client.send_header()
        leg = fake.accept(handshake=False)
        leg.send_start()
        client.start()
        client.start_ok()
        leg.send_tune()
        assert odd in leg.login.payload and leg.login.locale == "de_DE"
        assert (leg.login.mechanism, leg.login.response) == ("PLAIN", b"\0me\0mine")
        client.abort()


def test_a_challenge_and_its_answer_pass_when_the_login_is_the_clients(start):
    with ScriptedBroker(mechanisms="PLAIN RABBIT-CR-DEMO") as fake:
        client = amqp.Client(start(fake).socket, mechanism="RABBIT-CR-DEMO", response=b"guest")
        client.send_header()
        leg = fake.accept(handshake=False)
        leg.send_start()
        assert client.start().mechanisms == b"PLAIN RABBIT-CR-DEMO"
        client.start_ok()
        assert leg.wait_for("connection.start-ok").response == b"guest"
        leg.send(0, "connection.secure", challenge=b"your password?")
        assert client.wait_for("connection.secure").challenge == b"your password?"
        client.send(0, "connection.secure-ok", response=b"My password is guest")
        assert leg.wait_for("connection.secure-ok").response == b"My password is guest"
        leg.send(0, "connection.tune", **leg.tune_values)
        client.tune()
        client.tune_ok()
        opening = background(client.open)
        leg.send_open_ok()
        opening.result(15)
        client.abort()


def test_bellhops_own_login_needs_plain(start):
    with ScriptedBroker(mechanisms="EXTERNAL") as fake:
        daemon = start(fake, {"broker": {"username": "me", "password": "my-own-secret"}})
        fake.accept(handshake=False).abort()  # bellhop tries its login at start
        client = amqp.Client(daemon.socket)
        client.send_header()
        fake.accept(handshake=False).send_start()
        client.start()
        client.start_ok()
        client.expect_close(541)
        assert "my-own-secret" not in daemon.log


@pytest.mark.parametrize("stage", ["start", "tune", "open"])
def test_a_broker_that_ends_in_the_handshake_ends_the_client_too(start, stage):
    with ScriptedBroker() as fake:
        daemon = start(fake)
        client = amqp.Client(daemon.socket)
        client.send_header()
        leg = fake.accept(handshake=False)
        leg.send_start()
        client.start()
        if stage in ("tune", "open"):
            client.start_ok()
            leg.send_tune()
            client.tune()
        if stage == "open":
            client.tune_ok()
            client.send(0, "connection.open", virtual_host="/")
            leg.wait_for("connection.open", 0)
        leg.abort()
        assert client.expect_closed() == []
        daemon.wait_log("broker ended the connection during the handshake")


def test_a_broker_that_ends_before_its_start_was_not_reached_and_is_tried_again(start):
    """A node that is starting, or a balancer with no node behind it."""
    with ScriptedBroker() as fake:
        daemon = start(fake)
        client = amqp.Client(daemon.socket)
        client.send_header()
        for _ in range(2):
            fake.accept(handshake=False).abort()
        leg = fake.accept(handshake=False)
        leg.send_start()
        client.start()
        daemon.wait_log("no broker reached yet, bellhop retries reason=.*no connection.start came")
        client.abort()


def test_a_broker_that_always_ends_before_its_start_is_given_up_in_time(start):
    with ScriptedBroker() as fake:
        daemon = start(fake, {"broker": {"connect_timeout": "1s"}})
        client = amqp.Client(daemon.socket)
        began = time.monotonic()
        client.send_header()
        while True:
            try:
                fake.accept(handshake=False, timeout=1).abort()
            except amqp.Timeout:
                break
        assert client.expect_closed() == []
        assert 0.5 < time.monotonic() - began
        daemon.wait_log("session closed session=")


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"AMQP\x00\x01\x00\x00", b"\x01\x00\x00\xff\xff\xff\xff" * 4])
def test_a_broker_that_is_none_gives_the_client_a_clear_end(start, answer):
    with ScriptedBroker() as fake:
        daemon = start(fake)
        client = amqp.Client(daemon.socket)
        client.send_header()
        leg = fake.accept(handshake=False)
        leg.send_raw(answer)
        client.expect_close(541)
        daemon.wait_log("the broker broke the protocol")


def test_without_a_broker_the_client_waits_and_then_the_socket_closes(start):
    with ScriptedBroker() as fake:
        fake.listener.close()  # the port is free: connections to it are refused
        daemon = start(fake, {"broker": {"connect_timeout": "1s"}})
        client = amqp.Client(daemon.socket)
        began = time.monotonic()
        client.send_header()
        assert client.expect_closed() == []
        assert 0.8 < time.monotonic() - began
        assert fake.address in daemon.wait_log(r"no broker could be reached.*").group(0)


def test_a_broker_that_comes_in_time_serves_the_waiting_client(start):
    with ScriptedBroker() as fake:
        fake.listener.close()
        daemon = start(fake)
        client = amqp.Client(daemon.socket)
        client.send_header()
        # The first attempts failed, and the operator can see for what a client waits.
        assert fake.address in daemon.wait_log(r"no broker reached yet, bellhop retries.*", timeout=2).group(0)
        fake.listener = socket.create_server(("127.0.0.1", fake.port))
        leg = fake.accept(handshake=False)
        leg.send_start()
        assert client.start().server_properties["platform"] == "scripted"
        client.abort()


@pytest.mark.parametrize("said", [b"", b"AM", b"AMQP\x00\x00\x09\x01"])
def test_a_client_that_falls_silent_in_the_handshake_is_cut(start, said):
    with ScriptedBroker() as fake:
        daemon = start(fake, {"broker": {"connect_timeout": "300ms"}, "limits": {"handshake_timeout": "600ms"}})
        client = amqp.Client(daemon.socket)
        client.send_raw(said)
        if len(said) == 8:
            fake.accept(handshake=False).send_start()
            client.start()
        client.expect_closed()
        daemon.wait_log("handshake_timeout")


@pytest.mark.parametrize("code, said", [
    (503, amqp.method_frame(1, "channel.open")),
    (503, amqp.method_frame(0, "connection.open", virtual_host="/")),
    (503, amqp.method_frame(0, "connection.tune-ok", channel_max=1, frame_max=4096)),
    (505, amqp.frame(3, 0, b"body")),
])
def test_what_does_not_belong_into_the_handshake_is_refused(start, code, said):
    with ScriptedBroker() as fake:
        client = amqp.Client(start(fake).socket)
        client.send_header()
        fake.accept(handshake=False).send_start()
        client.start()
        client.send_raw(said)
        client.expect_close(code)


def test_a_close_by_the_client_in_the_handshake_is_answered(start):
    with ScriptedBroker() as fake:
        client = amqp.Client(start(fake).socket)
        client.send_header()
        fake.accept(handshake=False).send_start()
        client.start()
        client.send(0, "connection.close", reply_code=200, reply_text="changed my mind")
        client.wait_for("connection.close-ok", 0)


def test_a_client_that_says_the_whole_opening_in_one_go_is_served(start):
    """The protocol lets it: each part waits for its turn."""
    with ScriptedBroker() as fake:
        client = amqp.Client(start(fake).socket)
        client.send_raw(amqp.PROTOCOL_HEADER
                        + amqp.method_frame(0, "connection.start-ok", mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US")
                        + amqp.method_frame(0, "connection.tune-ok", channel_max=10, frame_max=4096, heartbeat=0)
                        + amqp.method_frame(0, "connection.open", virtual_host="/")
                        + amqp.method_frame(1, "channel.open")
                        + b"".join(client.publish_frames(1, "", "q", b"at once")))
        leg = fake.accept()
        assert (leg.tuned.channel_max, leg.tuned.frame_max) == (11, 131072)
        leg.serve_channel(1)
        assert leg.published(1).body == b"at once"
        client.wait_for("channel.open-ok", 1)
        client.abort()
