"""Twenty clients do random things at once for a while, some of them rudely. Seeded: BELLHOP_TEST_SEED repeats a run."""

import os
import random
import threading
import time

from support import amqp
from support.rabbitmq import wait_until

SESSIONS, SECONDS = 20, 8


class Guest(threading.Thread):
    """One client and its own queue. Every body is unique, so that at the end each confirmed one is looked for."""

    def __init__(self, index, address, queue, seed, end):
        super().__init__(daemon=True)
        self.index, self.address, self.queue, self.end = index, address, queue, end
        self.dice = random.Random(f"{seed}/{index}")
        self.confirmed, self.seen, self.published = set(), set(), 0
        self.failure = None

    def run(self):
        try:
            while time.monotonic() < self.end:
                client = amqp.connect(self.address)
                try:
                    self.visit(client)
                finally:
                    self.dice.choice([client.abort, client.reset])()
        except BaseException as error:  # noqa: BLE001 - it is told by the test
            self.failure = error

    def visit(self, client):
        channel = client.channel()
        channel.call("confirm.select")
        channel.call("basic.qos", prefetch_count=20)
        waiting, deliveries, consuming = {}, [], False

        def pump():
            while client._pump(0):
                pass
            while client.inbox:
                take(client.inbox.popleft())

        def take(event):
            if event.name == "basic.ack":
                tags = [t for t in waiting if t <= event.delivery_tag] if event.multiple else [event.delivery_tag]
                self.confirmed.update(waiting.pop(tag) for tag in tags)
            elif event.name == "basic.deliver":
                assert event.body.count(event.body[-1:]) > 0
                deliveries.append((event.delivery_tag, event.body.split(b" ", 1)[0]))
            else:
                assert event.name in ("basic.consume-ok", "basic.cancel-ok"), event

        tag = 0
        for _ in range(self.dice.randrange(20, 200)):
            if time.monotonic() > self.end:
                break
            action = self.dice.random()
            if action < 0.5:
                self.published += 1
                tag += 1
                word = b"%d.%d" % (self.index, self.published)
                size = self.dice.choice([0, 10, 1000, 70000, 140000])
                waiting[tag] = word
                channel.publish("", self.queue, word + b" " + b"." * size)
            elif action < 0.6 and not consuming:
                consuming = True
                channel.call("basic.consume", queue=self.queue, consumer_tag="c")
            elif action < 0.75 and deliveries:
                number, word = deliveries.pop(0)
                channel.ack(number)
                self.seen.add(word)
            elif action < 0.8 and deliveries:
                number, word = deliveries[-1]
                self.seen.update(w for _, w in deliveries)
                channel.ack(number, multiple=True)
                deliveries.clear()
            elif action < 0.85 and deliveries:
                channel.send("basic.nack", delivery_tag=deliveries.pop()[0], requeue=True)
            elif action < 0.88:
                other = client.channel()
                other.send("queue.declare", queue="no.such.queue", passive=True)
                other.expect_close(404)
            elif action < 0.9:
                return  # the connection breaks off here
            pump()
        deadline = time.monotonic() + 30 * amqp.TIME_FACTOR
        while waiting and time.monotonic() < deadline:
            take(client.next_event())
        assert not waiting


def test_random_sessions_lose_nothing_that_was_confirmed(bellhop, broker, name):
    seed = os.environ.get("BELLHOP_TEST_SEED") or str(time.time_ns())
    print("BELLHOP_TEST_SEED =", seed)
    daemon = bellhop()
    direct = broker.channel()
    queues = [name(f"q{index}") for index in range(SESSIONS)]
    for queue in queues:
        direct.declare(queue)
    end = time.monotonic() + SECONDS
    guests = [Guest(index, daemon.socket, queue, seed, end) for index, queue in enumerate(queues)]
    for guest in guests:
        guest.start()
    for guest in guests:
        guest.join(120 * amqp.TIME_FACTOR)
        assert not guest.is_alive()
        assert guest.failure is None, repr(guest.failure)
    wait_until(lambda: daemon.log.count("session opened session=") == daemon.log.count("session closed session="), what="the end of all sessions")

    reader = amqp.connect(daemon.socket).channel()
    for guest, queue in zip(guests, queues):
        while (event := reader.get(queue, no_ack=True)) is not None:
            guest.seen.add(event.body.split(b" ", 1)[0])
        assert guest.confirmed <= guest.seen, guest.confirmed - guest.seen
        direct.call("queue.delete", queue=queue)
    assert sum(len(guest.confirmed) for guest in guests) > SESSIONS
    # Each session gave back its thread and descriptors: what is left is the reader's.
    assert daemon.threads() < 40 and daemon.descriptors() < 60
