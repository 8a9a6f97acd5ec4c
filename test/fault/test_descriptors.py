"""Descriptors run out: whoever finds no place is turned away, nobody else notices, and there is room again later."""

import subprocess

import pytest

from support import amqp
from support.bellhop import binary
from support.rabbitmq import wait_until


# Without a descriptor the sanitizer cannot check a virtual call, and takes the object for a wrong one.
@pytest.mark.skipif("libubsan" in subprocess.run(["ldd", binary()], stdout=subprocess.PIPE, text=True).stdout,
                    reason="the sanitizer needs descriptors itself")
def test_a_daemon_without_descriptors_turns_clients_away_and_lives(bellhop):
    daemon = bellhop(wrapper=["prlimit", "--nofile=64:64"])
    served, refused = [], 0
    while refused < 4:
        try:
            served.append(amqp.connect(daemon.socket, timeout=1))
        except amqp.AmqpError:  # closed, or left to wait in the backlog until there is a descriptor
            refused += 1
    assert 1 < len(served) < 20
    served[0].channel()
    for client in served[1:]:
        client.close()
    wait_until(lambda: daemon.log.count("session closed session=") >= len(served) - 1, what="the end of the closed sessions")

    def again():
        try:
            return amqp.connect(daemon.socket, timeout=5)
        except amqp.AmqpError:
            return None

    wait_until(again, what="a place that was left").close()
    served[0].channel()


def test_the_soft_limit_is_raised_as_far_as_it_may_be(bellhop):
    daemon = bellhop(wrapper=["prlimit", "--nofile=64:1000"])
    clients = [amqp.connect(daemon.socket) for _ in range(30)]
    assert daemon.descriptors() > 64
    for client in clients:
        client.close()
