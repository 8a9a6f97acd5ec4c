"""The log: a line for each event of a connection's life, as text or JSON, and never a password or a payload."""

import json
import re

import pytest

from support import amqp

SECRET, PAYLOAD = "hunter2-secret", "the-payload-of-a-customer"


def live_through(daemon, tcp, name):
    """Logs in well and badly, publishes, and makes all kinds of errors with the payload near."""
    client = amqp.connect(tcp, username="app", password=SECRET)
    channel = client.channel()
    queue = channel.declare(name(), exclusive=True)
    channel.call("confirm.select")
    channel.publish("", queue, PAYLOAD.encode(), headers={"note": PAYLOAD})
    channel.publish("", queue, PAYLOAD.encode() * 5000)
    channel.confirms(2)
    for _ in range(2):
        channel.get_wait(queue)
    channel.publish("", queue, b"\xac\x01\x01no-such-key")
    closing = client.channel()
    closing.publish("bellhop.route", "no\nsuch \"route\"", PAYLOAD.encode())
    closing.expect_close(404)
    client.send_raw(PAYLOAD.encode() * 10)
    client.expect_close(501)
    for mechanism in ("PLAIN", "AMQPLAIN"):
        with pytest.raises(amqp.ConnectionClosed):
            amqp.connect(tcp, username="app", password=SECRET + "x", mechanism=mechanism)
    rude = amqp.Client(daemon.socket)
    rude.send_raw(PAYLOAD.encode())
    rude.read_exactly(8)
    daemon.wait_log("another protocol")


@pytest.mark.parametrize("form", ["text", "json"])
def test_every_line_is_whole_and_tells_no_secret(bellhop, rabbit, name, form):
    daemon = bellhop({"broker": {"url": f"amqp://guest:guest@{rabbit.upstream}"}, "log": {"level": "trace", "format": form}, "service": "shop",
                      "listen": [{"unix": "{socket}"}, {"tcp": "127.0.0.1:0", "users": {"app": SECRET}}]})
    tcp = daemon.wait_log(r'listening.*tcp:([0-9.:]+)').group(1)
    live_through(daemon, tcp, name)
    daemon.sigterm()
    assert daemon.wait() == 0
    assert "hunter2" not in daemon.log and PAYLOAD not in daemon.log and "guest:guest" not in daemon.log
    lines = daemon.log.splitlines()
    if form == "json":
        entries = [json.loads(line) for line in lines]
        assert all(e["service"] == "shop" and {"time", "level", "message"} < set(e) for e in entries)
        shown = [{key: str(value) for key, value in e.items()} for e in entries]
    else:
        assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (trace|debug|info|warn|error) \S", line) for line in lines), lines
        shown = lines
    for message, field, value in (("starting", "version", ""), ("listening", "address", "unix:"), ("session opened", "peer", ""),
                                  ("channel closed by bellhop", "code", "404"), ("login refused", "user", "app"),
                                  ("session closed", "reason", ""), ("draining", "sessions", ""), ("stopped", "", "")):
        if form == "json":
            assert any(e["message"] == message and value in e.get(field, "") for e in shown), message
        else:
            pattern = f" {message}.* {field}=\"?{value}" if field else f" {message}$"
            assert any(re.search(pattern, line) for line in shown), message


def test_the_level_leaves_out_what_is_below_it(bellhop):
    daemon = bellhop({"log": {"level": "warn"}}, start=False)
    daemon.start(wait=False)
    client = None
    while client is None:
        try:
            client = amqp.connect(daemon.socket)
        except OSError:
            pass
    client.send_raw(b"nonsense" * 10)
    client.expect_close(501)
    daemon.wait_log("code=501")
    daemon.sigterm()
    assert daemon.wait() == 0
    assert " info " not in daemon.log
