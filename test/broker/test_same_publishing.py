"""What RabbitMQ does with a publish: returns, copies, alternate exchanges, expiry, priorities, dead letters, limits."""

import pytest

from support import amqp
from support.publishing import pattern

SIZES = [3, 200_000]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("confirm", [True, False])
def test_mandatory_publishes_come_back_in_order(same, size, confirm):
    @same
    def program(run):
        ch = run.channel()
        queue = ch.declare(run.name("q"), exclusive=True)
        if confirm:
            ch.call("confirm.select")
        for n in range(4):
            ch.publish("amq.topic", run.name(f"nobody{n}"), pattern(size, n), mandatory=True, headers={"n": n}, priority=n)
            ch.publish("", queue, pattern(size, n + 100), mandatory=True)
        for _ in range(4):
            ch.wait_for("basic.return")
        if confirm:
            ch.confirms(8)
        for _ in range(4):
            ch.get_wait(queue)


def test_returns_of_publishes_that_look_alike_are_told_apart(same):
    """One exchange, one key, no message id; some are routed, and their confirms are still out when the others come back."""
    @same
    def program(run):
        ch = run.channel()
        queue = ch.declare(run.name("q"), exclusive=True)
        ch.call("queue.bind", queue=queue, exchange="amq.headers", arguments={"x-match": "all", "routed": True})
        ch.call("confirm.select")
        for n in range(40):
            ch.publish("amq.headers", "", b"x" * (n % 3), mandatory=True, headers={"routed": n % 4 == 0, "n": n}, priority=n % 2, message_id="" if n % 5 == 0 else None)
        for n in range(30):
            ch.wait_for("basic.return")
        ch.confirms(40)


@pytest.mark.parametrize("size", SIZES)
def test_copies_by_header_and_alternate_exchanges(same, size):
    @same
    def program(run):
        ch = run.channel()
        to, cc, bcc, lost = (ch.declare(run.name(word), exclusive=True) for word in ("to", "cc", "bcc", "lost"))
        ch.call("exchange.declare", exchange=run.name("alternate"), type="fanout", auto_delete=True)
        ch.call("queue.bind", queue=lost, exchange=run.name("alternate"))
        ch.call("exchange.declare", exchange=run.name("main"), type="direct", arguments={"alternate-exchange": run.name("alternate")})
        ch.call("queue.bind", queue=to, exchange=run.name("main"), routing_key="to")
        ch.call("confirm.select")
        ch.publish("", to, pattern(size), headers={"CC": [cc, cc], "BCC": [bcc, "nobody"], "a": 1})
        ch.publish("", "nobody", pattern(size), mandatory=True, headers={"CC": [cc], "BCC": []})
        ch.publish("", "nobody", pattern(size), mandatory=True, headers={"CC": ["nobody"], "BCC": ["nobody else"]})
        ch.publish(run.name("main"), "elsewhere", pattern(size), mandatory=True)
        ch.publish(run.name("main"), "to", pattern(size), mandatory=True)
        ch.confirms(5)
        for queue in (to, cc, bcc, lost):
            while ch.get(queue, no_ack=True) is not None:
                pass
        ch.call("exchange.delete", exchange=run.name("main"))


@pytest.mark.parametrize("size", SIZES)
def test_expiry_rejection_and_overflow_lead_to_the_dead_letters(same, size):
    @same
    def program(run):
        ch = run.channel()
        dead = ch.declare(run.name("dead"), exclusive=True)
        ch.call("queue.bind", queue=dead, exchange="amq.fanout")
        ch.call("queue.unbind", queue=dead, exchange="amq.fanout")
        ch.call("exchange.declare", exchange=run.name("dlx"), type="fanout", auto_delete=True)
        ch.call("queue.bind", queue=dead, exchange=run.name("dlx"))
        to_dead = {"x-dead-letter-exchange": run.name("dlx")}
        short = ch.declare(run.name("short"), exclusive=True, arguments={**to_dead, "x-max-length": 1})
        brief = ch.declare(run.name("brief"), exclusive=True, arguments={**to_dead, "x-message-ttl": 1, "x-dead-letter-routing-key": "ttl"})
        plain = ch.declare(run.name("plain"), exclusive=True, arguments=to_dead)
        refusing = ch.declare(run.name("refusing"), exclusive=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
        ch.call("confirm.select")
        sent = 0

        def publish(queue, **properties):
            nonlocal sent
            sent += 1
            ch.publish("", queue, pattern(size, sent), **properties)
            ch.confirms(sent)

        publish(short)
        publish(short)
        ch.get_wait(dead)
        publish(brief)
        ch.get_wait(dead)
        publish(plain, expiration="1", headers={"CC": [run.name("nobody")], "a": [1]})
        ch.get_wait(dead)
        publish(plain)
        ch.send("basic.reject", delivery_tag=ch.get_wait(plain, no_ack=False).delivery_tag)
        ch.get_wait(dead)
        publish(refusing)
        publish(refusing)
        run.transcript.apart(ch, "basic.get-empty", keep=False)


@pytest.mark.parametrize("size", SIZES)
def test_priorities_of_messages(same, size):
    @same
    def program(run):
        ch = run.channel()
        queue = ch.declare(run.name("q"), exclusive=True, arguments={"x-max-priority": amqp.Typed("B", 5)})
        ch.call("confirm.select")
        for n, priority in enumerate((1, 0, 5, None, 200, 3, 3)):
            ch.publish("", queue, pattern(size, n), **({} if priority is None else {"priority": priority}))
        ch.confirms(7)
        ch.call("basic.consume", queue=queue, consumer_tag="c")
        for _ in range(7):
            ch.deliver()


def test_small_and_large_publishes_of_one_channel_keep_their_order(same):
    @same
    def program(run):
        ch = run.channel()
        queue = ch.declare(run.name("q"), exclusive=True)
        ch.call("confirm.select")
        for n in range(30):
            ch.publish("", queue, pattern((n % 4) * 40_000, n))
        ch.confirms(30)
        ch.call("basic.consume", queue=queue, consumer_tag="c", no_ack=True)
        for _ in range(30):
            ch.deliver()


def test_bodies_that_look_framed_come_back_as_they_were(same):
    @same
    def program(run):
        ch = run.channel()
        queue = ch.declare(run.name("q"), exclusive=True)
        ch.call("confirm.select")
        bodies = [b"\xac", b"\xac\x01", b"\xac\x01\x00", b"\xac\x01\x01", b"\xac\x01\x02", b"\xac\x01\x00x", b"\xac\x01\x01key", b"\xac\x01\x00" * 40_000]
        for body in bodies:
            ch.publish("", queue, body, mandatory=True)
            ch.publish("", run.name("nobody"), body, mandatory=True)
        for _ in bodies:
            ch.wait_for("basic.return")
        ch.confirms(2 * len(bodies))
        for _ in bodies:
            ch.get_wait(queue)
