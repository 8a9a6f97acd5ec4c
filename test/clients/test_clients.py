"""Real client libraries, unchanged, straight at RabbitMQ and through bellhop: both must print the same."""

import pytest
from programs import HERE, PROGRAMS, run
from steps import LARGE, check_steps, compare

from support import amqp
from support.proxy import Proxy
from support.rabbitmq import free_port, version, wait_until


def daemon_with_both_doors(bellhop):
    """A bellhop with a Unix socket and a TCP listener; clients' own credentials go to the broker."""
    return bellhop({"listen": [{"unix": "{socket}"}, {"tcp": f"127.0.0.1:{free_port()}"}]})


class Tap:
    """A queue beside the application's that shows what really is on the broker."""

    def __init__(self, broker, prefix):
        self.ch, self.exchange = broker.channel(), f"{prefix}.events"
        self.ch.call("exchange.declare", exchange=self.exchange, type="topic", durable=True)
        self.queue = self.ch.declare("", exclusive=True)
        self.ch.call("queue.bind", queue=self.queue, exchange=self.exchange, routing_key="order.#")

    def end(self):
        """The messages by the last word of their keys; the exchange is gone."""
        taken = {}
        while (m := self.ch.get(self.queue, no_ack=True)) is not None:
            taken[m.routing_key.rpartition(".")[2]] = m
        self.ch.call("exchange.delete", exchange=self.exchange)
        return taken


def what_it_is(payload):
    """A payload's size, or that it is Celery's: JSON around a large argument."""
    return "a task" if payload[:2] == b"[[" and LARGE in payload else len(payload)


def without_time(properties):
    """Some libraries write the time into each message."""
    return {k: v for k, v in properties.items() if k != "timestamp"}


def typed_headers(m):
    """Each header with its type on the wire. (Their order is that of the language's hash tables, in some by chance.)"""
    return amqp.decode_table(m.headers_raw, typed=True)


def end(daemon):
    """The daemon is told to end, and has told its clients."""
    begin = len(daemon.log)
    daemon.sigterm()
    daemon.wait_log("session closed by bellhop .* code=320", begin=begin)


def begin(daemon):
    daemon.wait()
    daemon.start()


@pytest.mark.parametrize("name_of_program, queue_type", [(name, kind) for name, p in PROGRAMS.items() for kind in p.queue_types])
def test_a_client_cannot_tell_bellhop_from_the_broker(name_of_program, queue_type, rabbit, broker, bellhop, name):
    program = PROGRAMS[name_of_program]

    prefix = name("direct")
    tap = Tap(broker, prefix)
    with Proxy(rabbit.address) as proxy:
        direct = run(program.command, proxy.address, prefix, queue_type, end=proxy.cut)
    on_broker_direct = tap.end()
    check_steps(direct, program.lacks, program.own)

    daemon = daemon_with_both_doors(bellhop)
    prefix = name("bellhop")
    tap = Tap(broker, prefix)
    address = daemon.socket if program.transport == "unix" else daemon.tcp
    through = run(program.command, address, prefix, queue_type, end=lambda: end(daemon), begin=lambda: begin(daemon))
    on_broker = tap.end()
    check_steps(through, program.lacks, program.own)
    compare(direct, through, program.told)

    # The small messages are on the broker as they would be without bellhop; what looks like a claim is escaped.
    assert on_broker["small"].body == b"hello bellhop" == on_broker_direct["small"].body
    small = without_time(on_broker["small"].properties)
    assert small == {"delivery_mode": 2, "message_id": small["message_id"], **without_time(on_broker_direct["small"].properties)}
    assert on_broker["binary"].body == b"\xac\x01\x00" + on_broker_direct["binary"].body
    if "headers" not in program.lacks:
        assert typed_headers(on_broker["headers"]) == typed_headers(on_broker_direct["headers"])
    large = on_broker["large"]
    assert large.body[:3] == b"\xac\x01\x01", "the large message is not a claim on the broker"
    key = large.body[3:].decode()
    assert daemon.object(key) == LARGE
    assert large.headers["bellhop-claim-key"] == key
    assert large.headers["bellhop-claim-size"] == len(LARGE)

    # The rolled-back message is in no queue: its object is gone. The returned one's exchange may have kept it, and what was consumed
    # stays for retention too.
    kept = [80000, 90000, 110000, 120000, len(LARGE)] + [70000] * ("return" not in program.lacks)
    kept += [100000] * ("transaction" not in program.lacks)
    task = ["a task"] * ("celery" in program.own)
    wait_until(lambda: sorted(map(what_it_is, map(daemon.object, daemon.objects())), key=str) == sorted(kept + task, key=str),
               what=f"exactly {kept + task} in the store ({daemon.objects()})")
    assert daemon.debris() == []


def test_bunny_takes_50_mib_with_a_heartbeat_of_one_second_and_a_busy_channel(rabbit, bellhop, name):
    command = ["ruby", HERE / "ruby_bunny" / "large_with_heartbeat.rb"]
    daemon = daemon_with_both_doors(bellhop)
    through = run(command, daemon.tcp, name("bellhop"), timeout=300)
    assert "busy channel: 2000 in order=yes" in through and through[-1] == "closed", through
    if version() < (4, 0):  # later ones refuse such a body (406): their max_message_size is 16 MiB
        assert through == run(command, rabbit.address, name("direct"), timeout=300)
    assert [len(daemon.object(k)) for k in daemon.objects()] == [50 << 20]
