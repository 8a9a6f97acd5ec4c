"""One message of 2 GiB through a RabbitMQ that takes none above 16 MiB: client, bellhop and broker all stay small."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from support import rabbitmq
from support.rabbitmq import TIME_FACTOR

MIB = 1 << 20
GIB = 1 << 30
BROKER_MAX_BYTES = 16 * MIB
PROGRAM = pathlib.Path(os.environ.get("BELLHOP_TEST_CLIENTS_DIR", rabbitmq.__file__ + "/../../../build/dev/test/clients")) / "c_librabbitmq_large_body"


@pytest.fixture(scope="module")
def own_rabbit():
    node = rabbitmq.Node.start(config=f"max_message_size = {BROKER_MAX_BYTES}")
    yield node
    node.stop()


def large_body(action, address, queue, size):
    done = subprocess.run([PROGRAM.resolve(), action, address, queue, str(size)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120 * TIME_FACTOR)
    return done.stdout.strip()


class Watched:
    """The broker's memory at its highest, and what it has on disk, from here on."""

    def __init__(self, node):
        self.node = node
        pathlib.Path(f"/proc/{node.pid}/clear_refs").write_text("5")  # the peak begins anew
        self.peak_before, self.disk_before = self._peak_mib(), self._disk_mib()

    def _peak_mib(self):
        status = pathlib.Path(f"/proc/{self.node.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def _disk_mib(self):
        files = [p for p in (self.node.folder / "mnesia").rglob("*")]
        return sum(p.stat().st_blocks * 512 for p in files if p.exists()) / MIB

    def grown_mib(self):
        return self._peak_mib() - self.peak_before, self._disk_mib() - self.disk_before


def test_2_gib_through_a_broker_that_takes_16_mib(own_rabbit, bellhop, name):
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < 2.2 * GIB:
        pytest.skip(f"needs 2.2 GiB in {tempfile.gettempdir()}, {free / GIB:.1f} GiB are free")
    queue = name()
    refused = large_body("publish", own_rabbit.address, queue, BROKER_MAX_BYTES + 1)
    assert refused.startswith("refused 406 PRECONDITION_FAILED"), refused

    daemon = bellhop()
    watched = Watched(own_rabbit)
    assert large_body("publish", daemon.socket, queue, 2 * GIB) == "ack"
    assert own_rabbit.queues()[queue] == 1
    held_memory, held_disk = watched.grown_mib()
    assert large_body("consume", daemon.socket, queue, 2 * GIB) == f"same {2 * GIB}"
    assert own_rabbit.queues()[queue] == 0

    # Pieces of the object that are mapped for the client are in VmHWM too, with the cached pages they show.
    print(f"bellhop: peak {daemon.memory_kib('VmHWM') / 1024:.1f} MiB")
    daemon.assert_memory_below(64 * 1024, "VmHWM")
    memory, disk = watched.grown_mib()
    print(f"broker: memory +{held_memory:.1f} MiB, disk +{held_disk:.1f} MiB with the message in its queue; +{memory:.1f}, +{disk:.1f} in the end")
    assert memory < 64 and max(disk, held_disk) < 16
