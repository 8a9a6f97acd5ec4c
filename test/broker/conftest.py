"""What the tests of publishing share.

    publishing   a factory: queue, direct, daemon, up = publishing({...}) -> a queue's name, a direct channel at the broker that declared it, a
                 daemon, and its client with a channel in confirm mode (support/publishing.py); confirm=False, env=...
    held_up      the same, with a daemon whose disk is behind `gate`
"""

import pytest

from support.publishing import declare, publisher


@pytest.fixture
def publishing(bellhop, broker, name):
    def run(config=None, confirm=True, **options):
        queue = name()
        direct = declare(broker, queue)
        daemon = bellhop(config, **options)
        return queue, direct, daemon, publisher(daemon, confirm=confirm)

    return run


@pytest.fixture
def held_up(publishing, gate):
    return lambda config=None, **options: publishing(config, env=gate.env, **options)
