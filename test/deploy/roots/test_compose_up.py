"""deploy/compose.yaml, brought up by docker-compose and a container engine that answers as Docker's does. bellhop's image is the one that
deploy/image builds; those of RabbitMQ and Python, which come from a registry, are stood in for by Debian with the same programs."""

import os
import subprocess
import threading

import pytest

from support.bellhop import ROOT
from support.built_image import NAME
from support.container import Engine
from support.debian_root import DebianRoot
from support.rabbitmq import wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may run containers here")

COMPOSE = ROOT / "deploy" / "compose.yaml"
# What the image rabbitmq does with its environment.
RABBITMQ = """#!/bin/sh
export HOME=/var/lib/rabbitmq RABBITMQ_CONFIG_FILE=/tmp/rabbitmq.conf RABBITMQ_CONF_ENV_FILE=/dev/null RABBITMQ_PID_FILE=/tmp/pid RABBITMQ_LOGS=-
if [ "${0##*/}" = start-rabbitmq ]; then
  printf 'default_user = %s\\ndefault_pass = %s\\n' "$RABBITMQ_DEFAULT_USER" "$RABBITMQ_DEFAULT_PASS" >/tmp/rabbitmq.conf
  exec /usr/lib/rabbitmq/bin/rabbitmq-server
fi
exec "/usr/lib/rabbitmq/bin/${0##*/}" "$@"
"""


def stand_in(archive):
    """A Debian that has RabbitMQ and Python with pika, as an archive. `pip install` finds all that it wants there."""
    with DebianRoot() as debian:
        def program(path, text):
            (debian.folder / path).write_text(text)
            (debian.folder / path).chmod(0o755)

        program("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n")
        debian.apt("rabbitmq-server", "python3-pika")
        for name in ("start-rabbitmq", "rabbitmq-diagnostics"):
            program(f"usr/local/bin/{name}", RABBITMQ)
        program("usr/local/bin/pip", "#!/bin/sh\n")
        os.symlink("python3", debian.folder / "usr/bin/python")
        subprocess.run(["tar", "-C", debian.folder, "-cf", archive, "."], check=True)


class Stack:
    """docker-compose, asking podman's service. podman leaves the time of its health checks to systemd; here a thread has it."""

    def __init__(self, engine):
        self.engine, self.socket = engine, engine.folder / "docker.sock"
        self.service = subprocess.Popen([*engine.inside, "podman", "system", "service", "--time=0", f"unix://{self.socket}"], env=engine.env,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self.socket.exists, 20, "podman's service")
        self.ended = threading.Event()
        self.checks = threading.Thread(target=self._check_health, daemon=True)
        self.checks.start()

    def _check_health(self):
        while not self.ended.wait(1):
            for name in self.engine.podman("ps", "--quiet", check=False).stdout.split():
                self.engine.podman("healthcheck", "run", name, check=False)

    def compose(self, *words, check=True):
        return self.engine.run(["env", f"DOCKER_HOST=unix://{self.socket}", "docker-compose", "-p", "stack", "-f", COMPOSE, *words], timeout=300, check=check)

    SERVICES = ("rabbitmq", "bellhop", "orders")

    def container(self, service):
        return f"stack_{service}_1"

    def log(self, service):
        done = self.engine.podman("logs", self.container(service))
        return done.stdout + done.stderr

    def inspect(self, service, what):
        return self.engine.podman("inspect", f"--format={{{{{what}}}}}", self.container(service)).stdout.strip()

    def close(self):
        self.ended.set()
        self.checks.join(60)
        self.service.terminate()
        self.service.wait(20)


@pytest.fixture(scope="module")
def stack(archive):
    with Engine(own_network=True) as engine:
        tar = engine.folder / "debian.tar"
        stand_in(tar)
        engine.podman("import", "-q", tar, "docker.io/library/python:3.11-slim")
        engine.podman("import", "-q", "--change", 'CMD ["start-rabbitmq"]', tar, "docker.io/library/rabbitmq:4")
        engine.podman("load", "--input", archive)
        engine.podman("tag", NAME, "docker.io/library/bellhop:latest")
        # What `up` would build, but with buildah's isolation, which needs no cgroups.
        engine.run(["buildah", "build", "-q", "--format=docker", "--tag=docker.io/library/stack_orders:latest",
                    f"--file={ROOT}/deploy/compose/Dockerfile", ROOT / "deploy"], timeout=300)
        stack = Stack(engine)
        yield stack
        for service in stack.SERVICES:
            print(f"---- {service} ----\n{stack.log(service)[-3000:]}")
        stack.compose("down", "--volumes", check=False)
        stack.close()


def test_it_comes_up_in_order_sends_orders_through_bellhop_and_stops_in_order(stack):
    stack.compose("up", "--detach", "--no-build")
    assert stack.inspect("rabbitmq", ".State.Health.Status") == stack.inspect("bellhop", ".State.Health.Status") == "healthy"
    began = [stack.inspect(service, ".State.StartedAt") for service in stack.SERVICES]
    assert began == sorted(began)

    wait_until(lambda: stack.log("orders").count("dispatch: 1048576 bytes") >= 2, 60, "two orders that were dispatched")
    assert stack.inspect("orders", ".RestartCount") == stack.inspect("bellhop", ".RestartCount") == "0", stack.log("orders")
    status = stack.compose("exec", "-T", "bellhop", "/usr/bin/bellhop", "status").stdout
    assert "orders" in status
    mounts = stack.engine.run(["cat", f"/proc/{stack.inspect('bellhop', '.State.Pid')}/mounts"]).stdout
    assert " /tmp tmpfs rw" in mounts and "size=524288k" in mounts, mounts
    assert [line.split()[3].split(",")[0] for line in mounts.splitlines() if line.split()[1] == "/"] == ["ro"]

    stack.compose("stop")
    assert [stack.inspect(service, ".State.ExitCode") for service in ("orders", "bellhop")] == ["0", "0"]
    ended = [stack.inspect(service, ".State.FinishedAt") for service in reversed(stack.SERVICES)]
    assert ended == sorted(ended)
