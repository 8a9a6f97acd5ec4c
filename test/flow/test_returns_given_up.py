"""A returned message whose payload cannot be had: the publish is nacked, the payload stays where it is, and the channel goes on."""

import pytest

from support.bellhop import Bellhop
from support.scripted_broker import ScriptedBroker

LARGE = b"r" * 100_000


@pytest.fixture
def session():
    """(client, leg, daemon) with channel 1 open."""
    with ScriptedBroker() as fake, Bellhop({"broker": {"url": fake.url}, "consume": {"hold_max": "1s"}, "limits": {"drain_timeout": "100ms"}}) as daemon:
        client, leg = fake.connect(daemon.socket)
        client.send(1, "channel.open")
        leg.serve_channel(1)
        client.wait_for("channel.open-ok", 1)
        yield client, leg, daemon
        client.abort()
        leg.abort()


def return_without_payload(client, leg, daemon, store_is_away):
    """The key of a publish that comes back when its payload is gone."""
    client.publish(1, "", "nobody", LARGE, mandatory=True)
    published = leg.published(1)
    key = published.body[3:].decode()
    if store_is_away:
        (daemon.store_path / ".bellhop-store").unlink()
    (daemon.store_path / key).rename(daemon.folder / key)
    leg.send_return(1, "", "nobody", published.body, header=published.header)
    return key


@pytest.mark.parametrize("store_is_away", [True, False], ids=["store-away", "missing"])
@pytest.mark.parametrize("answer", ["before", "after"])
def test_with_confirms_it_is_nacked_whatever_the_broker_says(session, store_is_away, answer):
    client, leg, daemon = session
    client.send(1, "confirm.select")
    leg.answer("confirm.select", 1)
    client.expect("confirm.select-ok", 1)
    key = return_without_payload(client, leg, daemon, store_is_away)
    if answer == "before":
        leg.send(1, "basic.ack", delivery_tag=1)
    assert client.expect("basic.nack", 1, timeout=20).delivery_tag == 1
    if answer == "after":
        leg.send(1, "basic.ack", delivery_tag=1)
    daemon.wait_log(f"a returned message is not handed over, its payload stays in the store, its publish is nacked session=.* key={key} ")
    client.publish(1, "", "q", b"small")
    leg.published(1)
    leg.send(1, "basic.ack", delivery_tag=2)
    assert client.expect("basic.ack", 1).delivery_tag == 2


@pytest.mark.parametrize("store_is_away", [True, False], ids=["store-away", "missing"])
def test_without_confirms_the_log_says_so_and_the_channel_goes_on(session, store_is_away):
    client, leg, daemon = session
    key = return_without_payload(client, leg, daemon, store_is_away)
    daemon.wait_log(f"a returned message is not handed over, its payload stays in the store session=.* key={key} reason=")
    client.publish(1, "", "nobody", b"small", mandatory=True)
    published = leg.published(1)
    leg.send_return(1, "", "nobody", published.body, header=published.header)
    assert client.expect("basic.return", 1).body == b"small"
