"""Every method a client may say, in both nowait forms: the same answers as from RabbitMQ itself."""

import pytest

from support import amqp


def settled(channel):
    """An answered method: what was said before it without wanting an answer has been done."""
    channel.call("exchange.declare", exchange="amq.direct", type="direct", passive=True)


def confirmed(channel, count):
    channel.confirms(count)


@pytest.mark.parametrize("nowait", [False, True])
def test_exchanges(same, nowait):
    @same
    def program(run):
        ch = run.channel()
        say = ch.send if nowait else ch.call
        kinds = ("direct", "fanout", "topic", "headers")
        for kind in kinds:
            say("exchange.declare", exchange=run.name(kind), type=kind, durable=kind == "topic", auto_delete=kind == "fanout",
                internal=kind == "headers", nowait=nowait)
        for kind in kinds:
            say("exchange.declare", exchange=run.name(kind), passive=True, nowait=nowait)
            ch.call("exchange.declare", exchange=run.name(kind), passive=True)
        say("exchange.bind", destination=run.name("fanout"), source=run.name("topic"), routing_key="a.#", nowait=nowait)
        say("exchange.bind", destination=run.name("direct"), source=run.name("fanout"), routing_key="", nowait=nowait)
        queue = ch.declare(run.name("end"), exclusive=True)
        ch.call("queue.bind", queue=queue, exchange=run.name("direct"), routing_key="a.b")
        ch.call("confirm.select")
        ch.publish(run.name("topic"), "a.b", b"through three exchanges")
        ch.publish(run.name("topic"), "b.a", b"nowhere", mandatory=True)
        confirmed(ch, 2)
        ch.get(queue)
        ch.get(queue)
        say("exchange.unbind", destination=run.name("direct"), source=run.name("fanout"), routing_key="", nowait=nowait)
        ch.publish(run.name("topic"), "a.b", b"cut off", mandatory=True)
        confirmed(ch, 3)
        say("exchange.delete", exchange=run.name("topic"), nowait=nowait)
        say("exchange.delete", exchange=run.name("headers"), if_unused=True, nowait=nowait)
        say("exchange.delete", exchange=run.name("missing"), nowait=nowait)
        settled(ch)


@pytest.mark.parametrize("nowait", [False, True])
def test_queues(same, nowait):
    @same
    def program(run):
        ch = run.channel()
        say = ch.send if nowait else ch.call
        queue, other = run.name("q"), run.name("other")
        say("queue.declare", queue=queue, durable=True, nowait=nowait, arguments={"x-expires": 60000})
        say("queue.declare", queue=other, auto_delete=True, exclusive=True, nowait=nowait)
        say("queue.declare", queue=queue, passive=True, nowait=nowait)
        ch.call("queue.declare", queue=queue, passive=True)
        say("queue.bind", queue=queue, exchange="amq.topic", routing_key=run.name("k") + ".#", nowait=nowait)
        say("queue.bind", queue=queue, exchange="amq.topic", routing_key=run.name("k") + ".#", nowait=nowait)
        ch.call("confirm.select")
        for n in range(3):
            ch.publish("amq.topic", run.name("k") + ".x", b"%d" % n)
        confirmed(ch, 3)
        ch.call("queue.declare", queue=queue, passive=True)
        ch.get(queue)
        say("queue.purge", queue=queue, nowait=nowait)
        ch.call("queue.declare", queue=queue, passive=True)
        ch.call("queue.unbind", queue=queue, exchange="amq.topic", routing_key=run.name("k") + ".#")
        ch.call("queue.unbind", queue=queue, exchange="amq.topic", routing_key="was never bound")
        ch.publish("amq.topic", run.name("k") + ".x", b"unbound", mandatory=True)
        ch.publish("", queue, b"left", mandatory=True)
        confirmed(ch, 5)
        say("queue.delete", queue=queue, nowait=nowait)
        say("queue.delete", queue=run.name("missing"), nowait=nowait)
        say("queue.delete", queue=other, if_unused=True, if_empty=True, nowait=nowait)
        settled(ch)


def test_queues_that_the_broker_names(same):
    @same
    def program(run):
        ch = run.channel()
        first = ch.declare("", exclusive=True)
        ch.call("confirm.select")
        ch.publish("", first, b"one")
        confirmed(ch, 1)
        # An empty name stands for the queue that was declared last on this channel.
        ch.call("queue.bind", queue="", exchange="amq.direct", routing_key="")
        ch.call("queue.bind", queue="", exchange="amq.direct", routing_key=run.name("key"))
        ch.publish("amq.direct", run.name("key"), b"two", mandatory=True)
        confirmed(ch, 2)
        ch.get("")
        ch.call("basic.consume", queue="", consumer_tag="c")
        ch.ack(ch.deliver().delivery_tag)
        ch.call("queue.purge", queue="")
        ch.call("queue.delete", queue="")
        ch.send("queue.declare", queue="", passive=True)
        ch.expect_close(404)


def test_an_empty_name_without_a_queue(same):
    @same
    def program(run):
        client = run.connect()
        for number, (method, arguments) in enumerate((("basic.get", {}), ("basic.consume", {}), ("queue.purge", {}), ("queue.delete", {}),
                                                      ("queue.bind", {"exchange": "amq.direct"})), 1):
            ch = client.channel(number)
            ch.send(method, queue="", **arguments)
            ch.expect_close()


@pytest.mark.parametrize("method, arguments", [
    ("exchange.declare", {"exchange": "amq.mine", "type": "direct"}),
    ("exchange.declare", {"exchange": "amq.direct", "type": "fanout"}),
    ("exchange.declare", {"exchange": "{x}", "type": "no-such-type"}),
    ("exchange.declare", {"exchange": "{missing}", "passive": True}),
    ("exchange.declare", {"exchange": "", "type": "direct"}),
    ("exchange.delete", {"exchange": "amq.direct"}),
    ("exchange.delete", {"exchange": ""}),
    ("exchange.bind", {"destination": "{missing}", "source": "amq.direct"}),
    ("exchange.bind", {"destination": "amq.direct", "source": "{missing}"}),
    ("exchange.bind", {"destination": "amq.direct", "source": ""}),
    ("exchange.unbind", {"destination": "{missing}", "source": "amq.direct"}),
    ("queue.declare", {"queue": "amq.mine"}),
    ("queue.declare", {"queue": "{missing}", "passive": True}),
    ("queue.declare", {"queue": "{q}", "durable": True}),
    ("queue.declare", {"queue": "{q}", "auto_delete": True}),
    ("queue.declare", {"queue": "{q}", "arguments": {"x-expires": 1}}),
    ("queue.declare", {"queue": "{new}", "arguments": {"x-expires": "soon"}}),
    ("queue.declare", {"queue": "{new}", "arguments": {"x-queue-type": "none such"}}),
    ("queue.declare", {"queue": "{new}", "arguments": {"x-max-length": -1}}),
    ("queue.bind", {"queue": "{missing}", "exchange": "amq.direct"}),
    ("queue.bind", {"queue": "{q}", "exchange": "{missing}"}),
    ("queue.bind", {"queue": "{q}", "exchange": ""}),
    ("queue.bind", {"queue": "{q}", "exchange": "amq.headers", "arguments": {"x-match": "some"}}),
    ("queue.unbind", {"queue": "{missing}", "exchange": "amq.direct"}),
    ("queue.unbind", {"queue": "{q}", "exchange": "{missing}"}),
    ("queue.purge", {"queue": "{missing}"}),
    ("queue.delete", {"queue": "{q}", "if_empty": True}),
    ("queue.delete", {"queue": "{q}", "if_unused": True}),
    ("basic.qos", {"prefetch_size": 1}),
    ("basic.consume", {"queue": "{missing}"}),
    ("basic.consume", {"queue": "{q}", "exclusive": True}),
    ("basic.consume", {"queue": "{q}", "consumer_tag": "used"}),
    ("basic.consume", {"queue": "{q}", "arguments": {"x-priority": "high"}}),
    ("basic.get", {"queue": "{missing}"}),
    ("basic.ack", {"delivery_tag": 9}),
    ("basic.ack", {"delivery_tag": 0}),
    ("basic.nack", {"delivery_tag": 9, "multiple": True}),
    ("basic.reject", {"delivery_tag": 9}),
    ("basic.reject", {"delivery_tag": 0}),
    ("basic.recover", {"requeue": False}),
    ("channel.flow", {"active": False}),
    ("channel.open", {}),
    ("tx.commit", {}),
    ("tx.rollback", {}),
], ids=lambda v: v if isinstance(v, str) else ",".join(f"{k}={w}" for k, w in v.items()))
def test_what_the_broker_refuses_reaches_the_one_that_asked(same, method, arguments):
    """Code, text, class and method are the broker's; another channel and another client do not notice; the channel's id serves again."""
    @same
    def program(run):
        by, ch = run.channel(), run.channel()
        other = ch.client.channel()
        names = {word: run.name(word) for word in ("x", "q", "new", "missing")}
        ch.call("queue.declare", queue=names["q"], arguments={"x-expires": 60000})
        ch.call("confirm.select")
        ch.publish("", names["q"], b"with the consumer")
        ch.publish("", names["q"], b"not empty")
        confirmed(ch, 2)
        other.call("basic.qos", prefetch_count=1)
        other.call("basic.consume", queue=names["q"], consumer_tag="used")
        other.deliver()
        if "used" in arguments.values():
            ch.call("basic.consume", queue=names["q"], consumer_tag="used")
            ch.deliver()
        ch.send(method, **{k: v.format(**names) if isinstance(v, str) and "{" in v else v for k, v in arguments.items()})
        try:
            settled(ch)
        except amqp.ChannelClosed:
            ch.client.channel(ch.number)
            settled(other)
        except amqp.ConnectionClosed:
            ch.client.until_closed()
        settled(by)


def test_confirms_and_transactions_are_selected_once_and_not_together(same):
    @same
    def program(run):
        client = run.connect()
        for nowait in (False, True):
            for first, second in (("confirm.select", "confirm.select"), ("confirm.select", "tx.select"), ("tx.select", "tx.select"),
                                  ("tx.select", "confirm.select")):
                ch = client.channel()
                for method in (first, second):
                    ch.send(method, **({"nowait": nowait} if method == "confirm.select" else {}))
                ch.publish("", run.name("nobody"), b"unroutable", mandatory=True)
                try:
                    if "tx.select" in (first, second):
                        ch.call("tx.commit")
                    else:
                        ch.wait_for("basic.return")
                        confirmed(ch, 1)
                except amqp.ChannelClosed as closed:
                    run.note("closed", closed.code)


def test_channel_flow_and_channel_ends(same):
    @same
    def program(run):
        client = run.connect()
        ch = client.channel(5)
        ch.call("channel.flow", active=True)
        ch.call("channel.flow", active=True)
        ch.close()
        client.channel(5).close()
        client.channel(1).call("channel.close", reply_code=320, reply_text="with a reason", class_id=50, method_id=10)
        client.send(0, "connection.close", reply_code=541, reply_text="with a reason", class_id=60, method_id=40)
        client.wait_for("connection.close-ok", 0)
        client.abort()


@pytest.mark.parametrize("code, publish", [
    (540, {"immediate": True}),
    (404, {"exchange": "{missing}"}),
    (403, {"exchange": "{internal}"}),
    (403, {"exchange": "{internal}", "body": b"L" * 200_000}),
    (404, {"exchange": "{missing}", "body": b"L" * 200_000}),
    (404, {"exchange": "{missing}", "mandatory": True}),
    (406, {"user_id": "somebody else"}),
    (406, {"expiration": "soon"}),
    (406, {"expiration": "-1"}),
    (406, {"expiration": ""}),
    (406, {"expiration": "10", "body": b"L" * 200_000, "to": "{q}"}),
    (406, {"delivery_mode": 0}),
    (406, {"delivery_mode": 7, "body": b"L" * 200_000}),
    (406, {"headers": {"CC": "no list"}}),
    (406, {"headers": {"BCC": [1, 2]}}),
], ids=str)
@pytest.mark.parametrize("confirm", [True, False])
def test_a_publish_that_the_broker_refuses(same, code, publish, confirm):
    """Wherever the broker ends the channel over a publish: with the same words, and what was published before stays published."""
    @same
    def program(run):
        by = run.channel()
        ch = run.channel()
        names = {word: run.name(word) for word in ("missing", "internal", "q")}
        ch.call("exchange.declare", exchange=names["internal"], type="direct", internal=True, auto_delete=True)
        ch.call("queue.declare", queue=names["q"], arguments={"x-expires": 60000})
        if confirm:
            ch.call("confirm.select")
        arguments = {k: v.format(**names) if isinstance(v, str) else v for k, v in publish.items()}
        ch.publish("", names["q"], b"before")
        if confirm:
            confirmed(ch, 1)
        method = amqp.encode_method("basic.publish", exchange=arguments.pop("exchange", ""), routing_key=arguments.pop("to", names["q"]),
                                    immediate=arguments.pop("immediate", False), mandatory=arguments.get("mandatory", False))
        ch.publish("", "", arguments.pop("body", b"refused"), method=method, **arguments)
        try:
            settled(ch)
        except (amqp.ChannelClosed, amqp.ConnectionClosed) as closed:
            run.note("closed", closed.code)
            if isinstance(closed, amqp.ConnectionClosed):
                ch.client.until_closed()
        if confirm:  # without, it may still be on its way to the queue when another channel looks
            by.call("queue.declare", queue=names["q"], passive=True)
