"""What the tests of faults share.

    session   a factory: daemon, client, channel, queue = session({...}) -> a daemon, and a client of it with a channel and a queue of its own
"""

import pytest

from support import amqp


@pytest.fixture
def session(bellhop, name):
    def run(config=None, **options):
        daemon = bellhop(config, **options)
        client = amqp.connect(daemon.socket)
        channel = client.channel()
        return daemon, client, channel, channel.declare(name())

    return run
