"""Request and reply by amq.rabbitmq.reply-to: between two clients of one bellhop, and between a client of bellhop and one of the broker."""

import pytest

from support import amqp
from support.publishing import pattern

SIZES = [0, 3, 70_000, 300_000]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("asks, answers", [("bellhop", "bellhop"), ("bellhop", "broker"), ("broker", "bellhop")])
def test_a_conversation(same, size, asks, answers):
    # The one that is straight at the broker reads no claims: what it gets in a request must be small enough for none.
    request = size if asks == answers else min(size, 1000)

    def program(run):
        def client_of(which):
            return run.connect() if which == "bellhop" or not run.through else run.connect(address=run.node.address)

        server = client_of(answers).channel()
        queue = server.declare(run.name("rpc"), exclusive=True)
        server.call("basic.consume", queue=queue, consumer_tag="server", no_ack=True)
        asker = client_of(asks).channel()
        asker.call("basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True, consumer_tag="replies")
        asker.call("confirm.select")
        for n in range(3):
            asker.publish("", queue, pattern(request, n), reply_to="amq.rabbitmq.reply-to", correlation_id=f"{n}", mandatory=True)
            asked = server.deliver()
            server.call("queue.declare", queue=asked.properties["reply_to"], passive=True)
            server.publish("", asked.properties["reply_to"], pattern(size, n + 10), correlation_id=asked.properties["correlation_id"],
                           headers={"n": n}, type="reply")
            assert asker.deliver().body == pattern(size, n + 10)
            asker.confirms(n + 1)

    same(program, None if asks == answers else ["relaying", "stamping"])


def test_what_the_broker_refuses_about_it(same):
    @same
    def program(run):
        client = run.connect()
        for method, arguments in (("basic.consume", {"no_ack": False}), ("queue.declare", {"passive": True}), ("queue.delete", {}), ("basic.get", {})):
            ch = client.channel()
            ch.send(method, queue="amq.rabbitmq.reply-to", **arguments)
            try:
                ch.call("exchange.declare", exchange="amq.direct", passive=True)
            except amqp.ChannelClosed as closed:
                run.note(method, closed.code)
        ch = client.channel()
        ch.call("basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True, consumer_tag="one")
        ch.send("basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True, consumer_tag="two")
        ch.expect_close()
        ch = client.channel()
        ch.publish("", "q", b"asks without a consumer", reply_to="amq.rabbitmq.reply-to")
        ch.expect_close()


@pytest.mark.parametrize("size", SIZES)
def test_a_question_that_nobody_takes_comes_back_with_its_address(same, size):
    @same
    def program(run):
        ch = run.channel()
        ch.call("basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True, consumer_tag="replies")
        ch.call("confirm.select")
        for n in range(3):
            ch.publish("", run.name("nobody"), pattern(size, n), reply_to="amq.rabbitmq.reply-to", correlation_id=f"{n}", mandatory=True,
                       headers={"BCC": ["nobody"], "n": n})
            assert ch.wait_for("basic.return").body == pattern(size, n)
        ch.confirms(3)


@pytest.mark.parametrize("size", SIZES)
def test_a_reply_to_somebody_who_is_gone(same, size):
    @same
    def program(run):
        server, asker = run.channel(), run.channel()
        queue = server.declare(run.name("rpc"), exclusive=True)
        asker.call("basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True, consumer_tag="replies")
        asker.publish("", queue, b"question", reply_to="amq.rabbitmq.reply-to")
        asked = server.get_wait(queue)
        asker.client.close()
        server.call("confirm.select")
        server.publish("", asked.properties["reply_to"], pattern(size), mandatory=True)
        server.wait_for("basic.return")
        server.confirms(1)
        run.transcript.apart(server, "basic.get-empty", keep=False)
