"""What a client does wrong: the specification's codes, never a hang or a silent close, and nobody else notices. Where RabbitMQ answers with
the specification's code, so does bellhop; where it does not, the table below says what it does and why bellhop answers otherwise."""

import pytest

from support import amqp
from support.malformed import WRONG

WAITS, NOT_ASKED = "waits", "not asked"
# {what: (RabbitMQ's code, or None: it just closes the socket; why)}
OTHERWISE_AT_THE_BROKER = {
    **{what: (541, "RabbitMQ fails over it; 502 says whose fault it is") for what in (
        "a header whose properties are cut", "a header with more flags than there are", "a header table that is longer than its frame")},
    **{what: (WAITS, "RabbitMQ takes the bytes and waits for ever for an end of the body") for what in (
        "a body longer than announced", "a body longer than announced, in pieces", "a large body longer than announced")},
    "a channel above channel_max": (WAITS, "RabbitMQ opens it: it counts channels, and does not look at numbers"),
    **{what: (NOT_ASKED, "RabbitMQ takes any depth; bellhop has to understand these methods, and bounds what it looks into") for what in WRONG
       if "nested too deep" in what},
}


def outcome(client, timeout):
    """Code, class and method with which the connection, or a channel of it, was closed; None for a socket that closed without."""
    deadline = client._deadline(timeout)
    said = None
    try:
        while True:
            if not client._pump(deadline):
                return said or WAITS
            event = client.inbox.pop()
            if event.name in ("connection.close", "channel.close"):
                said = (event.reply_code, event.class_id, event.method_id)
                client._answer(event.name + "-ok", event.channel)
                if event.name == "channel.close":
                    return said
    except amqp.SocketClosed:
        return said


@pytest.mark.parametrize("what", WRONG)
def test_a_malformed_frame_is_answered_with_the_brokers_code_or_with_the_specifications(same, rabbit, what):
    code, said = WRONG[what]
    otherwise = OTHERWISE_AT_THE_BROKER.get(what, (None,))[0]
    answers = {}
    for place, address in (("broker", rabbit.address), ("bellhop", same.daemon("stamping").socket)):
        if place == "broker" and otherwise == NOT_ASKED:
            continue
        by = amqp.connect(address).channel()
        client = amqp.connect(address)
        client.channel(1)
        client.channel(2)
        try:
            client.send_raw(said)
        except amqp.SocketClosed:
            pass
        answers[place] = outcome(client, 0.2 if place == "broker" and otherwise == WAITS else 10)
        by.declare("", exclusive=True)
        by.client.close()
        client.abort()
    assert answers["bellhop"][0] == code
    if otherwise is None:
        assert answers["broker"] == answers["bellhop"]
    elif otherwise != NOT_ASKED:
        # (A later RabbitMQ may have come round to the specification: 4.3 does with bodies that are too long.)
        assert answers["broker"] in (otherwise, answers["bellhop"]) or answers["broker"][0] == otherwise
