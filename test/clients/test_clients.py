"""Real client libraries, unchanged, straight at RabbitMQ and through bellhop: both must print the same."""

import os
import pathlib
import socket
import subprocess

import pytest

from support import amqp
from support.rabbitmq import TIME_FACTOR, free_port, wait_until

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BELLHOP_TEST_CLIENTS_DIR", HERE.parents[1] / "build" / "dev" / "test" / "clients"))
NODE_MODULES = pathlib.Path(os.environ.get("BELLHOP_TEST_NODE_MODULES", HERE.parents[1] / "build" / "node" / "node_modules"))

LARGE = bytes(range(256)) * 4096
THRESHOLD = 65536

PROGRAMS = {
    "python-pika": (["/usr/bin/python3", HERE / "python_pika" / "client.py"], "tcp"),
    "node-amqplib": (["node", HERE / "node_amqplib" / "client.js"], "unix"),
    "ruby-bunny": (["ruby", HERE / "ruby_bunny" / "client.rb"], "tcp"),
    "c-librabbitmq": ([BUILD / "c_librabbitmq_client"], "unix"),
}


def run(command, address, prefix, timeout=120):
    done = subprocess.run([*map(str, command), address, prefix], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=timeout * TIME_FACTOR, env={**os.environ, "NODE_PATH": str(NODE_MODULES)})
    assert done.returncode == 0, f"{command[-1]} at {address}:\n{done.stdout}\n{done.stderr[-4000:]}"
    return done.stdout.replace(prefix, "PREFIX").splitlines()


def daemon_with_both_doors(bellhop):
    """A bellhop with a Unix socket and a TCP listener; clients' own credentials go to the broker."""
    port = free_port()
    daemon = bellhop({"listen": [{"unix": "{socket}"}, {"tcp": f"127.0.0.1:{port}"}]})
    return daemon


def address_of(daemon, transport):
    return daemon.socket if transport == "unix" else daemon.tcp


def tap(broker, prefix):
    """A queue beside the application's that shows what really is on the broker."""
    ch = broker.channel()
    ch.call("exchange.declare", exchange=f"{prefix}.events", type="topic", durable=True)
    queue = ch.declare("", exclusive=True)
    ch.call("queue.bind", queue=queue, exchange=f"{prefix}.events", routing_key="order.#")
    return ch, queue


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_client_cannot_tell_bellhop_from_the_broker(program, rabbit, broker, bellhop, name):
    command, transport = PROGRAMS[program]
    daemon = daemon_with_both_doors(bellhop)

    direct = run(command, rabbit.address, name("direct"))
    assert direct[-1] == "closed" and not any("same=no" in line for line in direct), direct

    prefix = name("bellhop")
    ch, queue = tap(broker, prefix)
    through = run(command, address_of(daemon, transport), prefix)
    assert through == direct

    small, large = ch.get(queue, no_ack=True), ch.get(queue, no_ack=True)
    assert small.routing_key == "order.small" and small.body == b"hello bellhop"
    assert large.routing_key == "order.large"
    assert large.body[:3] == b"\xac\x01\x01", "the large message is not a claim check on the broker"
    key = large.body[3:].decode()
    assert daemon.object(key) == LARGE
    assert large.headers["bellhop-claim-key"] == key
    assert large.headers["bellhop-claim-size"] == len(LARGE)
    assert large.properties["delivery_mode"] == 2 and large.properties["message_id"] == "m-large"

    # The returned message and the rolled-back one are in no queue: their objects are gone. What was consumed stays for retention.
    wait_until(lambda: sorted(len(daemon.object(k)) for k in daemon.objects()) == [100000, len(LARGE)],
               what=f"exactly two objects in the store ({daemon.objects()})")
    assert daemon.debris() == []
    ch.call("exchange.delete", exchange=f"{prefix}.events")


def test_bunny_takes_50_mib_with_a_heartbeat_of_one_second_and_a_busy_channel(rabbit, bellhop, name):
    command = ["ruby", HERE / "ruby_bunny" / "large_with_heartbeat.rb"]
    daemon = daemon_with_both_doors(bellhop)
    direct = run(command, rabbit.address, name("direct"), timeout=300)
    through = run(command, daemon.tcp, name("bellhop"), timeout=300)
    assert through == direct
    assert [len(daemon.object(k)) for k in daemon.objects()] == [50 << 20]


def test_the_unix_socket_of_a_daemon_takes_a_raw_client_too(rabbit, bellhop):
    daemon = bellhop()
    with amqp.connect(daemon.socket) as client:
        ch = client.channel()
        queue = ch.declare("", exclusive=True)
        ch.publish("", queue, LARGE[:THRESHOLD], message_id="m")
        assert ch.get_wait(queue).body == LARGE[:THRESHOLD]
        client.close()
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(daemon.socket)
