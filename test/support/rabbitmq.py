"""A private RabbitMQ node for tests: own name, cookie, data folder, epmd and loopback ports. Nothing of it is left behind.

    node = Node.start()
    node.address                       # "127.0.0.1:34567"
    node.ctl("list_queues", "name")    # rabbitmqctl, its standard output
    node.stop()

Run as a program (`python3 rabbitmq.py DIR [--tls]`) it starts a node, prints its address, and ends it when its standard input closes.

A node with TLS listens on two ports: `address`, where tests talk to it directly, and `tls_address`. `upstream` and `url` are where
the daemons under test are sent: to the second with BELLHOP_TEST_TLS=1, which makes every node one with TLS.
"""

import atexit
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid

TIME_FACTOR = float(os.environ.get("BELLHOP_TEST_TIME_FACTOR", "1"))
TLS = os.environ.get("BELLHOP_TEST_TLS") == "1"
SCRIPTS = pathlib.Path("/usr/lib/rabbitmq/bin")

# A folder with another Debian, whose RabbitMQ is run in it by chroot (test/run --rabbitmq makes one); else the system's own is run.
ROOT = pathlib.Path(os.environ.get("BELLHOP_TEST_RABBITMQ_ROOT") or "/").resolve()
# Its /proc is mounted for the process alone.
CHROOT = [] if ROOT == pathlib.Path("/") else ["unshare", "--mount", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', str(ROOT)]


def version():
    """The broker's version: (3, 10), (4, 0), (4, 3). What a version does not allow by its own rules is not asked of it."""
    server = next((ROOT / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-*"), None)
    if server is None:
        return (0, 0)  # not installed: only tests that need none can run
    return tuple(int(part) for part in server.name.partition("-")[2].split(".")[:2])

# Ends a node whose test was killed: it waits for the end of its standard input, which the dying process closes. A line on it means
# that all is well. Arguments: process group, epmd's process id, folder to remove (may be empty).
GUARD = """
read -r _ && exit 0
kill -s CONT -- -$1; kill -s TERM -- -$1
for _ in 1 2 3 4 5 6 7 8 9 10; do kill -s 0 -- -$1 || break; sleep 0.5; done
kill -s KILL -- -$1; kill -s TERM $2
if [ -n "$3" ]; then rm -rf -- "$3"; fi
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def alive(pid):
    """Whether the process exists and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _erlang(text):
    """A string as an Erlang binary."""
    return "<<" + ",".join(map(str, text.encode())) + ">>"


def wait_until(condition, timeout=30, what="the condition"):
    """Polls until condition() is true and returns its value."""
    deadline = time.monotonic() + timeout * TIME_FACTOR
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not so after {timeout} s")
        time.sleep(0.02)


# The smallest frame_max that a client may ask for: 4.3 ends connections below 8192.
SMALLEST_FRAME_MAX = 4096 if version() < (4, 3) else 8192


def as_kept(table):
    """An encoded header table as the broker has it in a message: from 4.0 on in the order of the names."""
    if version() < (4, 0):
        return table
    from .amqp import sorted_table
    return sorted_table(table)


class Node:
    def __init__(self, folder, config="", tls=TLS, plugins=()):
        self.folder = pathlib.Path(folder)
        self.extra_config = config
        self.tls, self.plugins = tls, plugins
        self.tls_port = None
        self.port = self.epmd_port = self.dist_port = None
        self.name = f"bellhop-{uuid.uuid4().hex[:8]}@localhost"
        self.process = self.epmd = self._guard = None
        self._owns_folder = False

    @classmethod
    def start(cls, folder=None, config="", tls=TLS, plugins=()):
        """A running node. `config`: more lines of rabbitmq.conf. Without a folder its data goes to a temporary one."""
        own = folder is None
        node = cls(folder or tempfile.mkdtemp(prefix="bellhop-rabbit-", dir=ROOT / "tmp" if CHROOT else None), config, tls, plugins)
        node._owns_folder = own
        atexit.register(node.stop)
        for attempt in range(3):
            node.port, node.epmd_port, node.dist_port, node.tls_port = free_port(), free_port(), free_port(), free_port()
            try:
                node.launch()
                return node
            except RuntimeError as error:
                # Between choosing a port and RabbitMQ's listening on it, somebody else may take it.
                node.kill()
                node._end_epmd()
                if attempt == 2 or "eaddrinuse" not in str(error):
                    node.stop()
                    raise

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def tls_address(self):
        return f"127.0.0.1:{self.tls_port}"

    @property
    def upstream(self):
        return self.tls_address if TLS else self.address

    @property
    def url(self):
        return f"{'amqps' if TLS else 'amqp'}://{self.upstream}"

    @property
    def log_path(self):
        return self.folder / "console.log"

    @staticmethod
    def _inside(path):
        """A path as the node sees it."""
        return pathlib.Path("/") / pathlib.Path(path).relative_to(ROOT)

    def env(self):
        f = self._inside(self.folder)
        e = {k: v for k, v in os.environ.items() if not k.startswith(("RABBITMQ_", "ERL_"))}
        e.update(HOME=str(f / "home"), RABBITMQ_NODENAME=self.name, RABBITMQ_CONFIG_FILE=str(f / "rabbitmq.conf"),
                 RABBITMQ_CONF_ENV_FILE="/dev/null", RABBITMQ_MNESIA_BASE=str(f / "mnesia"), RABBITMQ_LOG_BASE=str(f / "log"),
                 RABBITMQ_ENABLED_PLUGINS_FILE=str(f / "enabled_plugins"), RABBITMQ_PID_FILE=str(f / "pid"), LANG="C.UTF-8",
                 RABBITMQ_DIST_PORT=str(self.dist_port), ERL_EPMD_ADDRESS="127.0.0.1", ERL_EPMD_PORT=str(self.epmd_port),
                 RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1} "
                                                     "+sbwt none +sbwtdcpu none +sbwtdio none")
        return e

    def launch(self):
        """Starts the node (again, on the same ports and data) and waits for it."""
        f = self.folder
        for sub in ("home", "mnesia", "log"):
            (f / sub).mkdir(parents=True, exist_ok=True)
        cookie = f / "home" / ".erlang.cookie"
        if not cookie.exists():
            cookie.write_text(uuid.uuid4().hex)
            cookie.chmod(0o400)
        (f / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{self.port}\nmax_message_size = 134217728\nlog.console = true\nlog.file = false\n"
                                         f"{self._tls_config()}{self.extra_config}\n")
        (f / "enabled_plugins").write_text(f"[{','.join(self.plugins)}].\n")
        (f / "pid").unlink(missing_ok=True)
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen([*CHROOT, str(SCRIPTS / "rabbitmq-server")], env=self.env(), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT, start_new_session=True, cwd=str(f))
        deadline = time.monotonic() + 90 * TIME_FACTOR
        while b"Server startup complete" not in self.log_path.read_bytes():
            if self.process.poll() is not None or time.monotonic() > deadline:
                tail = self.log_path.read_text(errors="replace")[-3000:]
                raise RuntimeError(f"RabbitMQ did not start:\n{tail}")
            time.sleep(0.05)
        self.epmd = self._find_epmd()
        self._guard = subprocess.Popen(["sh", "-c", GUARD, "sh", str(self.process.pid), str(self.epmd or ""),
                                        str(f) if self._owns_folder else ""], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, start_new_session=True)

    def _tls_config(self):
        """Clients without a certificate are let in, those with one must have it from the same authority."""
        if not self.tls:
            return ""
        if __package__:
            from .certificates import shared_authority
            authority = shared_authority()
        else:  # the shared node: its folder is where shared_authority() looks
            from certificates import Authority
            authority = Authority(self.folder / "tls")
        own = authority.issue("broker")
        ca, cert, key = (self._inside(shutil.copy(path, self.folder)) for path in (authority.ca, own.cert, own.key))
        return (f"listeners.ssl.1 = 127.0.0.1:{self.tls_port}\nssl_options.cacertfile = {ca}\n"
                f"ssl_options.certfile = {cert}\nssl_options.keyfile = {key}\n"
                "ssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = false\n")

    def _dismiss_guard(self):
        if self._guard is not None:
            self._guard.communicate(b"done\n")
            self._guard = None

    @property
    def pid(self):
        """The Erlang VM's process id."""
        try:
            return int((self.folder / "pid").read_text())
        except (OSError, ValueError):
            return self.process.pid

    def _signal(self, number):
        # The node leads a session of its own: the signal goes to it and its helper processes, to nobody else.
        try:
            os.killpg(self.process.pid, number)
        except (OSError, AttributeError):
            pass

    def freeze(self):
        """SIGSTOP: connections stay open, nothing is answered."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self):
        os.kill(self.pid, signal.SIGCONT)

    def wait_on_disk(self, queue):
        """Until the queue's declaration is in the node's files: it is written a moment after declare-ok, and a kill loses it."""
        def is_there():
            return any(queue.encode() in file.read_bytes() for file in (self.folder / "mnesia").rglob("*")
                       if file.is_file() and "msg_stores" not in file.parts)  # messages name it as well
        wait_until(is_there, 20, f"{queue} in the node's files")

    def kill(self):
        """kill -9. Data stays; launch() starts the node again on it."""
        if self.process is None:
            return
        pid = self.pid
        self._signal(signal.SIGKILL)
        self._dismiss_guard()
        if pid != self.process.pid and alive(pid):
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        wait_until(lambda: not alive(pid), what="the end of the killed node")

    def shutdown(self):
        """A clean end, data kept."""
        if self.process is None or self.process.poll() is not None:
            return
        pid = self.pid
        try:
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGTERM)
            self.process.wait(30)
        except (OSError, subprocess.TimeoutExpired):
            self.kill()
        self._dismiss_guard()

    def restart(self):
        self.shutdown()
        self.launch()

    def _find_epmd(self):
        """epmd is a daemon that outlives its node. Ours is the one with our port in its environment."""
        wanted = f"ERL_EPMD_PORT={self.epmd_port}".encode()
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "comm").read_text().strip() == "epmd" and \
                        wanted in (entry / "environ").read_bytes().split(b"\0"):
                    return int(entry.name)
            except OSError:
                continue
        return None

    def _end_epmd(self):
        """Also that of a node which did not come up, or whose start was interrupted."""
        epmd = self.epmd or self._find_epmd()
        if epmd is not None and alive(epmd):
            os.kill(epmd, signal.SIGTERM)
        self.epmd = None

    def stop(self):
        """Ends the node and its epmd, and removes the temporary data folder."""
        if self.process is not None:
            self.shutdown()
            self._end_epmd()
            self.process = None
        if self._owns_folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.stop)

    # -- rabbitmqctl

    def ctl(self, *args, check=True):
        """Runs rabbitmqctl quietly and returns what it printed. It takes seconds to start, on a busy machine a minute: see eval."""
        done = subprocess.run([*CHROOT, str(SCRIPTS / "rabbitmqctl"), "-q", *map(str, args)], env=self.env(), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=180 * TIME_FACTOR)
        if check and done.returncode != 0:
            raise AssertionError(f"rabbitmqctl {' '.join(map(str, args))}: {done.stdout}")
        return done.stdout

    def eval(self, expression):
        """Evaluates Erlang in the node, without the seconds that rabbitmqctl takes to start; returns what it gives, as text."""
        cookie = (self.folder / "home" / ".erlang.cookie").read_text()
        done = subprocess.run([*CHROOT, "erl_call", "-sname", self.name, "-c", cookie, "-e"], env=self.env(), input=f"{expression.strip()}\n",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60 * TIME_FACTOR)
        match = re.fullmatch(r"\{ok, (.*)\}\s*", done.stdout, re.DOTALL)
        assert match, f"{expression}: {done.stdout}"
        return match[1]

    def add_user(self, user, password, configure=".*", write=".*", read=".*", vhost="/"):
        """A user with these rights in a virtual host, without tags. A password of None: none at all."""
        self.eval(f"ok = rabbit_auth_backend_internal:add_user({_erlang(user)}, {_erlang(password or 'unused')}, {_erlang('test')}).")
        if password is None:
            self.eval(f"ok = rabbit_auth_backend_internal:clear_password({_erlang(user)}, {_erlang('test')}).")
        self.set_permissions(user, configure, write, read, vhost)

    def set_permissions(self, user, configure=".*", write=".*", read=".*", vhost="/"):
        rights = ", ".join(map(_erlang, (user, vhost, configure, write, read, "test")))
        self.eval(f"ok = rabbit_auth_backend_internal:set_permissions({rights}).")

    def delete_user(self, user):
        self.eval(f"ok = rabbit_auth_backend_internal:delete_user({_erlang(user)}, {_erlang('test')}).")

    def add_vhost(self, vhost):
        self.eval(f"ok = rabbit_vhost:add({_erlang(vhost)}, {_erlang('test')}).")

    def delete_vhost(self, vhost):
        self.eval(f"ok = rabbit_vhost:delete({_erlang(vhost)}, {_erlang('test')}).")

    def rows(self, *args):
        """A listing as a list of lists of strings."""
        return [line.split("\t") for line in self.ctl(*args, "--no-table-headers").splitlines()]

    def queues(self, vhost="/"):
        """{name: messages}"""
        return {r[0]: int(r[1]) for r in self.rows("list_queues", "-p", vhost, "name", "messages")}

    def block(self):
        """A memory alarm: connections that publish are blocked at once."""
        self.eval("vm_memory_monitor:set_vm_memory_high_watermark(0.00001).")

    def unblock(self):
        self.eval("vm_memory_monitor:set_vm_memory_high_watermark(0.4).")

    def close_all_connections(self, reason="closed by the test"):
        self.ctl("close_all_connections", reason)


class SharedNode(Node):
    """A node that somebody else started and will end. BELLHOP_TEST_AMQP_DIR says where its files are, so that ctl works."""

    def __init__(self, address, folder):
        super().__init__(folder)
        self.port = int(address.rpartition(":")[2])
        self.name, epmd, dist, *tls = (self.folder / "identity").read_text().split()
        self.epmd_port, self.dist_port = int(epmd), int(dist)
        self.tls_port = int(tls[0]) if tls else None
        assert self.tls_port or not TLS, "the shared node has no TLS listener"

    def _no(self, *_):
        raise AssertionError("this node is shared: a test that ends or freezes the broker takes the fixture `own_rabbit`")

    launch = kill = shutdown = restart = freeze = thaw = block = close_all_connections = _no

    def stop(self):
        pass


def main():
    arguments = [each for each in sys.argv[1:] if each != "--tls"]
    folder = arguments[0] if arguments else None
    tls = "--tls" in sys.argv
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    node = Node.start(folder, tls=tls)
    (node.folder / "identity").write_text(f"{node.name} {node.epmd_port} {node.dist_port} {node.tls_port if tls else ''}\n")
    print(node.address, flush=True)
    try:
        sys.stdin.read()
    finally:
        node.stop()


if __name__ == "__main__":
    main()
