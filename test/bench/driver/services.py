"""The broker and the two proxies that a run compares: each private to the run, on free loopback ports, in its own folder."""

import os
import shutil
import time

from . import processes

RABBITMQ_SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"


class Broker:
    """A RabbitMQ node of its own name, data folder and port mapper. Its schedulers do not spin, or they would take the CPU that is
    being measured."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "rabbitmq")
        self.port, epmd_port, distribution_port = processes.free_ports(3)
        self.endpoint = f"tcp:127.0.0.1:{self.port}"
        self.log_path = os.path.join(self.folder, "console.log")
        for name in ("home", "mnesia", "log"):
            os.makedirs(os.path.join(self.folder, name))
        environment = self._environment(epmd_port, distribution_port)
        # Started here rather than by the node, which would leave it behind.
        processes.start(["epmd", "-address", "127.0.0.1", "-port", str(epmd_port)],
                        os.path.join(self.folder, "epmd.log"), env=environment)
        processes.wait_until(lambda: processes.accepts(f"tcp:127.0.0.1:{epmd_port}"), "epmd")
        self.process = processes.start([RABBITMQ_SERVER], self.log_path, env=environment)
        processes.wait_until(self._is_up, "RabbitMQ", self.process, self.log_path)

    def _is_up(self):
        with open(self.log_path, errors="replace") as log:
            return "Server startup complete" in log.read()

    def _environment(self, epmd_port, distribution_port):
        def write(name, text):
            path = os.path.join(self.folder, name)
            with open(path, "w") as file:
                file.write(text)
            return path

        os.chmod(write("home/.erlang.cookie", "bellhopbench"), 0o400)
        quiet = "+sbwt none +sbwtdcpu none +sbwtdio none"
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": os.path.join(self.folder, "home"),
            "RABBITMQ_NODENAME": f"bench{os.getpid()}@localhost",
            "RABBITMQ_CONFIG_FILE": write(
                "rabbitmq.conf", f"listeners.tcp.1 = 127.0.0.1:{self.port}\nlog.console = true\nlog.file = false\n"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_MNESIA_BASE": os.path.join(self.folder, "mnesia"),
            "RABBITMQ_LOG_BASE": os.path.join(self.folder, "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": write("enabled_plugins", "[].\n"),
            "RABBITMQ_PID_FILE": os.path.join(self.folder, "pid"),
            "RABBITMQ_DIST_PORT": str(distribution_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(epmd_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"-kernel inet_dist_use_interface {{127,0,0,1}} {quiet}",
        }

    def version(self):
        with open(self.log_path, errors="replace") as log:
            for line in log:
                if "Starting RabbitMQ" in line:
                    return line.split("Starting RabbitMQ", 1)[1].split()[0]
        return "?"


class Proxy:
    """A program in front of the broker, with a Unix socket and a TCP port."""

    def __init__(self, folder, name):
        self.name = name
        self.folder = os.path.join(folder, name)
        os.makedirs(self.folder)
        self.log_path = os.path.join(self.folder, "log")
        self.unix = "unix:" + os.path.join(self.folder, "socket")
        self.tcp_port = processes.free_ports(1)[0]
        self.tcp = f"tcp:127.0.0.1:{self.tcp_port}"

    def launch(self, command):
        """Returns once a connection is taken on both sockets; `ready_ms` is the time to the first."""
        started = time.monotonic()
        self.process = processes.start(command, self.log_path)
        while not processes.accepts(self.unix):
            if self.process.poll() is not None or time.monotonic() > started + 20:
                with open(self.log_path, errors="replace") as log:
                    raise RuntimeError(f"{self.name} does not accept:\n{log.read()}")
            time.sleep(0.0005)
        self.ready_ms = (time.monotonic() - started) * 1000
        processes.wait_until(lambda: processes.accepts(self.tcp), self.name, self.process, self.log_path)

    @property
    def pid(self):
        return self.process.pid

    def stop(self):
        processes.stop(self.process)
        shutil.rmtree(self.folder)


class HAProxy(Proxy):
    """HAProxy in TCP mode, one process in the foreground, otherwise as Debian's package comes."""

    def __init__(self, folder, broker, name="haproxy"):
        super().__init__(folder, name)
        path = os.path.join(self.folder, "haproxy.cfg")
        with open(path, "w") as file:
            file.write(f"""\
defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
listen broker
  bind 127.0.0.1:{self.tcp_port}
  bind unix@{self.unix.removeprefix("unix:")}
  server broker 127.0.0.1:{broker.port}
""")
        self.launch(["haproxy", "-db", "-f", path])


BELLHOP_STAMPS = {
    # Every message is relayed as it came.
    "forward": "stamp: { delivery_mode: keep, message_id: keep }\n",
    # What a bellhop does when nothing is said: delivery mode and message id are filled in.
    "stamp": "",
    # A route stamps a routing slip as well.
    "slip": """\
pipelines:
  bench-pipeline:
    steps: [one, two, three]
routes:
  - name: bench
    match: { exchange: bench-start }
    slip: { pipeline: bench-pipeline }
""",
}


class Bellhop(Proxy):
    """A bellhop without store; `stamps` is a key of BELLHOP_STAMPS, `extra` more configuration, `wrapper` a command that runs it."""

    def __init__(self, folder, broker, binary, stamps, name=None, extra="", wrapper=()):
        super().__init__(folder, name or "bellhop-" + stamps)
        path = os.path.join(self.folder, "bellhop.yaml")
        with open(path, "w") as file:
            file.write(f"""\
listen:
  - unix: {self.unix.removeprefix("unix:")}
  - tcp: 127.0.0.1:{self.tcp_port}
broker:
  url: amqp://127.0.0.1:{broker.port}
{BELLHOP_STAMPS[stamps]}{extra}""")
        self.launch([*wrapper, binary, "run", "--config", path])


def bellhop_with_store(bench):
    """A fresh bellhop with a filesystem store, and the store's folder."""
    store = os.path.join(bench.folder, "store")
    os.mkdir(store)
    extra = f"stores:\n  claims: {{ type: filesystem, path: {store} }}\nclaim_check: {{ store: claims }}\n"
    return store, Bellhop(bench.folder, bench.broker, bench.bellhop_binary, "stamp", "bellhop-store", extra)
