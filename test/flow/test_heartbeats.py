"""Heartbeats on each leg by timers of their own: who is alive is kept, who is silent is cut, and one leg's trouble does not starve the other."""

import socket
import time

import pytest

from support import amqp
from support.scripted_broker import ScriptedBroker


@pytest.fixture
def pair(stage):
    """pair(client's heartbeat, broker's heartbeat) -> (client, leg) with channel 1 open."""
    def run(client_s, broker_s, receive_buffer=None):
        fake = ScriptedBroker(heartbeat=broker_s)
        if receive_buffer:
            fake.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        here = stage(fake=fake, channels=(1,), heartbeat=client_s)
        here.leg.daemon = here.daemon
        return here.client, here.leg

    return run


def beat(seconds, *alive):
    """Lets time pass; these peers send heartbeats, and all that comes is read."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for peer in alive:
            peer.send_heartbeat()
            peer.expect_nothing(0.2 / len(alive))


def passes(client, leg):
    """A message goes up, another comes down."""
    client.publish(1, "", "q", b"up")
    assert leg.published(1).body == b"up"
    leg.deliver(1, "c", 1, b"down")
    assert client.wait_for("basic.deliver").body == b"down"


def test_peers_that_only_send_heartbeats_are_kept_and_get_some(pair):
    client, leg = pair(1, 1)
    leg.deliver(1, "c", 1, b"work")  # a consumer that acknowledges nothing for a long time
    client.wait_for("basic.deliver")
    beat(3.5, client, leg)
    assert client.heartbeats_seen >= 3 and leg.heartbeats_seen >= 3
    client.publish(1, "", "q", b"still here")
    assert leg.published(1).body == b"still here"


def test_traffic_counts_as_life(pair):
    client, leg = pair(1, 1)
    end = time.monotonic() + 3.5
    while time.monotonic() < end:
        client.publish(1, "", "q", b"up")
        leg.published(1)
        leg.deliver(1, "c", 1, b"down")
        client.wait_for("basic.deliver")
        time.sleep(0.1)


def test_a_silent_client_is_cut(pair):
    client, leg = pair(1, 0)
    began = time.monotonic()
    client.expect_closed(5)
    assert 1.5 < time.monotonic() - began
    leg.wait_for("connection.close", 0)
    leg.daemon.wait_log("missed heartbeats")


def test_a_silent_broker_is_cut_and_the_client_told(pair):
    client, leg = pair(0, 1)
    began = time.monotonic()
    assert "heartbeat" in client.expect_close(320, timeout=5).reply_text
    assert 1.5 < time.monotonic() - began
    leg.expect_closed(5)


def test_without_heartbeats_nobody_is_cut(pair):
    client, leg = pair(0, 0)
    leg.daemon.wait_log("opened")
    client.expect_nothing(2.5)
    passes(client, leg)


@pytest.mark.parametrize("cut_at", [3, 7, 1000, 59900])
def test_a_client_that_stalls_inside_a_frame_stops_nobody_elses_heartbeats(pair, cut_at):
    """The half frame is not sent up: behind it the broker would take a heartbeat for the rest of the body."""
    client, leg = pair(0, 1)
    *others, last = client.publish_frames(1, "", "q", b"x" * 60000, split=[100])
    client.send_raw(b"".join(others) + last[:cut_at])
    end = time.monotonic() + 3
    while time.monotonic() < end:
        leg.send_heartbeat()
        leg.expect_nothing(0.2)
    assert leg.heartbeats_seen >= 3
    client.send_raw(last[cut_at:])
    assert leg.published(1).body == b"x" * 60000


def test_a_broker_that_stalls_inside_a_frame_stops_nobody_elses_heartbeats(pair):
    client, leg = pair(1, 0)
    method = amqp.encode_method("basic.deliver", consumer_tag="c", delivery_tag=1)
    frames = b"".join(amqp.content_frames(1, method, b"y" * 5000))
    leg.send_raw(frames[:3000])
    beat(3, client)
    assert client.heartbeats_seen >= 3
    leg.send_raw(frames[3000:])
    assert client.wait_for("basic.deliver").body == b"y" * 5000


def test_while_a_client_is_not_read_its_silence_is_not_counted(pair):
    """A broker that takes nothing makes bellhop stop reading the client: its heartbeats wait in the socket."""
    client, leg = pair(1, 0, receive_buffer=4096)
    client.sock.setblocking(False)
    flood = b"".join(client.publish_frames(1, "", "q", b"z" * 50000)) * 20
    sent = 0
    end = time.monotonic() + 4
    while time.monotonic() < end:  # the broker reads nothing meanwhile, the client's own writes get stuck
        try:
            sent += client.sock.send(flood[sent % len(flood):])
        except BlockingIOError:
            time.sleep(0.05)
        try:
            client.read_frame(0.01)
        except amqp.Timeout:
            pass
    assert sent < 100_000_000
    whole, rest = divmod(sent, len(flood))
    sending = client
    leg.sock.settimeout(15)
    for _ in range(whole * 20 + rest * 20 // len(flood)):
        assert leg.published(1).body == b"z" * 50000
        sending.send_heartbeat() if rest == 0 else None


def test_while_a_broker_is_not_read_its_silence_is_not_counted(pair):
    """A client that takes nothing makes bellhop stop reading the broker."""
    client, leg = pair(0, 1)
    frames = b"".join(amqp.content_frames(1, amqp.encode_method("basic.deliver", consumer_tag="c", delivery_tag=1), b"w" * 50000))
    leg.sock.setblocking(False)
    sent, end = 0, time.monotonic() + 4
    while time.monotonic() < end:
        try:
            sent += leg.sock.send(frames[sent % len(frames):])
        except BlockingIOError:
            time.sleep(0.05)
    leg.sock.setblocking(True)
    for _ in range(sent // len(frames)):
        assert client.wait_for("basic.deliver").body == b"w" * 50000
