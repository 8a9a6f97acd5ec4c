"""The tests' own RabbitMQ node, which deploy/demo uses too: nothing of it is left behind."""

import signal
import subprocess
import sys

from support.bellhop import ROOT
from support.rabbitmq import Node, alive, free_port, wait_until

START = """
import sys
sys.path.insert(0, "test")
from support.rabbitmq import Node
node = Node(sys.argv[1])
node.port, node.epmd_port, node.dist_port, node.tls_port = map(int, sys.argv[2:])
import atexit
atexit.register(node.stop)
node.launch()
"""


def ports(node):
    node.port, node.epmd_port, node.dist_port, node.tls_port = (free_port() for _ in range(4))
    return node


def test_a_start_that_is_interrupted_leaves_no_epmd(tmp_path):
    node = ports(Node(tmp_path))
    starting = subprocess.Popen([sys.executable, "-B", "-c", START, str(tmp_path), *map(str, (node.port, node.epmd_port, node.dist_port, node.tls_port))],
                                cwd=ROOT, stderr=subprocess.DEVNULL)
    epmd = wait_until(node._find_epmd, 60, what="epmd's start")
    starting.send_signal(signal.SIGINT)
    starting.wait(60)
    wait_until(lambda: not alive(epmd), 60, what="the end of epmd")
    assert node._find_epmd() is None
