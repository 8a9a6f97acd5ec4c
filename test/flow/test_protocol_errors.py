"""What a client may do wrong, each answered with the code of the specification, and nobody else notices."""

import random

import pytest

from support import amqp
from support.bellhop import Bellhop
from support.malformed import WRONG, method
from support.scripted_broker import ScriptedBroker


@pytest.fixture(scope="module")
def shared():
    """One daemon for all, as whoever errs must not hurt the others."""
    with ScriptedBroker() as fake, Bellhop({"broker": {"url": fake.url}, "limits": {"drain_timeout": "2s"}}) as daemon:
        yield fake, daemon
        fake.close()


@pytest.fixture
def bystander(shared):
    """Another session, which has to work all the time."""
    fake, daemon = shared
    client, leg = fake.connect(daemon.socket, channels=(1,))
    yield client
    client.publish(1, "", "q", b"still here")
    assert leg.published(1).body == b"still here"
    client.abort()


@pytest.fixture
def session(shared, bystander):
    fake, daemon = shared
    client, leg = fake.connect(daemon.socket, channels=(1, 2))
    yield client, leg
    client.abort()


def closed_above(leg):
    """The broker's side was closed properly too, wherever a content stood."""
    while True:
        f = leg.read_frame()
        if f.type == 1 and f.channel == 0:
            close = amqp.decode_method(0, f.payload)
            assert (close.name, close.reply_code) == ("connection.close", 200)
            return


# What bellhop does not look into it relays: the broker says what is wrong with it.
BROKERS_TO_SAY = {"a connection's method on a channel", "a method frame without a method", "a second open of a channel"}


@pytest.mark.parametrize("what", WRONG)
def test_an_error_is_answered_with_its_code(session, what):
    client, leg = session
    code, said = WRONG[what]
    client.send_raw(said)
    if what in BROKERS_TO_SAY:
        assert amqp.frame(*leg.read_frame()) == said
        return
    close = client.expect_close(code)
    assert close.reply_text
    client.expect_closed()
    closed_above(leg)


@pytest.mark.parametrize("what", ["a frame without its end octet", "a body longer than announced", "a channel's method on channel 0"])
def test_whoever_goes_on_talking_after_an_error_still_learns_of_it(session, what):
    """The client is in the middle of a long write: it must be able to finish, and then to read why it was closed."""
    client, _ = session
    code, said = WRONG[what]
    client.send_raw(said)
    for _ in range(200):
        try:
            client.send_raw(b"and more that nobody can make sense of " * 1000)
        except amqp.SocketClosed:
            break
    assert client.wait_for("connection.close", 0).reply_code == code


def test_the_other_channels_content_survives_a_slow_one(session):
    """Publishes of two channels whose frames alternate are no error."""
    client, leg = session
    one = client.publish_frames(1, "", "one", b"a" * 50, split=[20, 20, 10])
    two = client.publish_frames(2, "", "two", b"b" * 50, split=[10, 30, 10])
    for pair in zip(one, two):
        for each in pair:
            client.send_raw(each)
    seen = {}
    bodies = {1: b"", 2: b""}
    while sum(map(len, bodies.values())) < 100:
        f = leg.read_frame()
        if f.type == 3:
            bodies[f.channel] += f.payload
        seen[f.channel] = True
    assert bodies == {1: b"a" * 50, 2: b"b" * 50}


@pytest.mark.parametrize("seed", range(4))
def test_random_bytes_harm_nobody_else(shared, bystander, seed):
    """50 connections a seed: some talk nonsense from the first byte, some after a proper opening."""
    fake, daemon = shared
    dice = random.Random(seed)
    print("seed", seed)
    for index in range(50):
        if index % 5:
            client = amqp.Client(daemon.socket)
            leg = None
            if index % 5 == 1:
                client.send_header()
                fake.accept(handshake=False)
        else:
            client, leg = fake.connect(daemon.socket)
            client.send(1, "channel.open")
        said = bytearray(b"".join(client.publish_frames(1, "", "q", dice.randbytes(dice.randrange(300)), headers={"a": 1}))
                         + method(1, "basic.consume", queue="q") + amqp.HEARTBEAT)
        for _ in range(dice.randrange(1, 6)):
            said[dice.randrange(len(said))] = dice.randrange(256)
        if dice.random() < 0.3:
            said = dice.randbytes(dice.randrange(1, 2000))
        try:
            client.send_raw(bytes(said))
        except amqp.SocketClosed:
            pass
        client.reset() if dice.random() < 0.5 else client.abort()
