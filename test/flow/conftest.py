"""What the tests of flow share: a daemon in front of a broker that the test plays.

    stage    a factory: stage({...}, channels=(1, 2), heartbeat=3) -> .fake, .daemon, and .client and .leg, a session with these channels open
    session  (client, leg) of a stage with channels 1 and 2
"""

import contextlib
import types

import pytest

from support.bellhop import Bellhop
from support.scripted_broker import ScriptedBroker


@pytest.fixture
def stage(request):
    """`fake`: a broker that was made already; `env` is the daemon's; other options are the client's."""
    def tell(daemon):
        if getattr(request.node, "failed", False):
            print(f"---- bellhop's log ----\n{daemon.log[-8000:]}")

    with contextlib.ExitStack() as ends:
        def run(config=None, channels=(1, 2), fake=None, env=None, **options):
            fake = ends.enter_context(fake or ScriptedBroker())
            config = {"broker": {"url": fake.url}, "limits": {}, **(config or {})}
            config["limits"] = {"drain_timeout": "2s", **config["limits"]}
            daemon = ends.enter_context(Bellhop(config, env=env))
            ends.callback(fake.close)  # before the daemon ends: a broker that is gone is not waited for
            client, leg = fake.connect(daemon.socket, channels=channels, **options)
            ends.callback(client.abort)
            ends.callback(tell, daemon)
            return types.SimpleNamespace(fake=fake, daemon=daemon, client=client, leg=leg)

        yield run


@pytest.fixture
def session(stage):
    here = stage()
    return here.client, here.leg
