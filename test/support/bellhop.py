"""Starts the built daemon for a test, and insists that it behaves.

    with Bellhop({"broker": {"url": node.url}}) as bellhop:
        client = amqp.connect(bellhop.socket)

What the configuration leaves out is filled in: a Unix socket in the test's own folder, and a `filesystem` store `claims` in it
(`store=None` leaves the store out). At the end the daemon gets SIGTERM and must exit 0; a sanitizer report in its log fails the
test. The daemon is the file that BELLHOP_BIN names, else build/dev/daemon/bellhop.
"""

import copy
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading

from .certificates import shared_authority
from .rabbitmq import TIME_FACTOR, TLS, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
SANITIZER = re.compile(r"(ERROR|WARNING): (Address|Thread|Leak|Memory)Sanitizer|runtime error:|UndefinedBehaviorSanitizer")


_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _die_with_parent():
    """Runs in the new process: a test that is killed takes its daemon with it."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def binary():
    return os.environ.get("BELLHOP_BIN") or str(ROOT / "build" / "dev" / "daemon" / "bellhop")


class Bellhop:
    """`config`: a dict, or the text of a YAML file ({dir} in it becomes the test's folder). JSON is YAML, so a dict is written
    as JSON; in its `listen` entries "{socket}" is the test's own socket. `expect_exit`: what it must exit with at the end (None: anything)."""

    def __init__(self, config=None, *, folder=None, store="filesystem", start=True, expect_exit=0, env=None, wrapper=(), pass_fds=()):
        self._owns_folder = folder is None
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="bellhop-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.expect_exit = expect_exit
        self.env, self.wrapper, self.pass_fds = env or {}, list(wrapper), pass_fds
        self.process = None
        self.told_to_end = None  # the process that got a SIGTERM
        self.log = ""
        self._log_lock = threading.Lock()
        self.store_path = self.folder / "claims"
        self.socket = str(self.folder / "bellhop.sock")
        self.tcp = None
        self.admin_socket = str(self.folder / "admin.sock")
        self.config_path = self.folder / "bellhop.yaml"
        if isinstance(config, str):
            self.config_path.write_text(config.replace("{dir}", str(self.folder)))
        else:
            self.config_path.write_text(json.dumps(self._fill(config or {}, store), indent=1))
        if start:
            try:
                self.start()
            except BaseException:
                self.kill()
                self._remove()
                raise

    def _fill(self, config, store):
        config = copy.deepcopy(config)
        if TLS:
            self._use_tls(config.get("broker", {}))
        listen = config.setdefault("listen", [{"unix": self.socket}])
        for entry in listen:
            if "unix" in entry:
                entry["unix"] = self.socket = entry["unix"].replace("{socket}", self.socket).replace("{dir}", str(self.folder))
            if "tcp" in entry:
                self.tcp = entry["tcp"]
        if store == "filesystem" and "stores" not in config:
            self.store_path.mkdir(exist_ok=True)
            config["stores"] = {"claims": {"type": "filesystem", "path": str(self.store_path)}}
        return config

    @staticmethod
    def _use_tls(broker):
        """BELLHOP_TEST_TLS=1: every amqp:// URL becomes an amqps:// one, and the nodes' authority is trusted."""
        urls = broker.get("url", [])
        urls = [re.sub("^amqp://", "amqps://", url) for url in ([urls] if isinstance(urls, str) else urls)]
        if urls and "tls" not in broker:
            broker["url"] = urls
            broker["tls"] = {"ca": shared_authority().ca}

    # -- life

    def start(self, wait=True):
        """Starts the daemon; returns when it accepts connections."""
        env = dict(os.environ)
        env.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0:halt_on_error=1")
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1")
        env.setdefault("TSAN_OPTIONS", f"halt_on_error=0:second_deadlock_stack=1:history_size=7:suppressions={ROOT}/test/support/tsan.supp")
        env.update(self.env)
        begin = len(self.log)
        self.process = subprocess.Popen([*self.wrapper, binary(), "run", "--config", str(self.config_path)], env=env,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        pass_fds=self.pass_fds, text=True, errors="replace",
                                        # The signal is tied to the thread that starts the process.
                                        preexec_fn=_die_with_parent if threading.current_thread() is threading.main_thread()
                                        else None)
        self._reader = threading.Thread(target=self._read_log, args=(self.process.stderr,), daemon=True)
        self._reader.start()
        if wait:
            self.wait_log(r"listening", begin=begin)
        return self

    def _read_log(self, stream):
        for line in stream:
            with self._log_lock:
                self.log += line
        stream.close()

    @property
    def pid(self):
        return self.process.pid

    def wait_log(self, pattern, timeout=20, begin=0):
        """Waits for a line in the log that matches, and returns the match."""
        def found():
            match = re.search(pattern, self.log[begin:])
            if match is None and self.process.poll() is not None:
                self._reader.join(5)
                match = re.search(pattern, self.log[begin:])
                assert match, f"bellhop ended ({self.process.returncode}) without logging {pattern!r}:\n{self.log}"
            return match
        return wait_until(found, timeout, f"{pattern!r} in bellhop's log; it has:\n{self.log[-4000:]}")

    def sigterm(self):
        self.told_to_end = self.process.pid
        self.process.send_signal(signal.SIGTERM)

    def kill(self):
        """kill -9."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
        if self.process is not None:
            self.process.wait()
            self.expect_exit = None

    def wait(self, timeout=30):
        """Waits for the end of the process; its exit code."""
        code = self.process.wait(timeout * TIME_FACTOR)
        self._reader.join(5)
        return code

    def restart(self, config=None):
        """Ends the daemon (if it still runs) and starts it again in the same folder."""
        if self.process.poll() is None:
            self.sigterm()
            self.wait()
        if config is not None:
            self.config_path.write_text(json.dumps(self._fill(config, "filesystem"), indent=1))
        return self.start()

    def stop(self, check=True):
        """SIGTERM, wait, and check the exit code and the log."""
        code = None
        if self.process is not None:
            # A second one would end it at once.
            if self.process.poll() is None and self.told_to_end != self.process.pid:
                self.sigterm()
            try:
                code = self.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                code = "no exit within 60 s of SIGTERM"
            self._reader.join(5)
        self._remove()
        if check:
            self.check_log()
            if self.process is not None and self.expect_exit is not None:
                assert code == self.expect_exit, f"bellhop's exit: {code}\n{self.log[-4000:]}"
        return code

    def _remove(self):
        if self._owns_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def check_log(self):
        match = SANITIZER.search(self.log)
        assert not match, f"a sanitizer report:\n{self.log[max(0, match.start() - 500):match.start() + 6000]}"

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            print(f"---- bellhop's log ({self.config_path}) ----\n{self.log[-8000:]}")
        self.stop(check=kind is None)

    # -- looking at it

    def objects(self):
        """The names of the objects in the store."""
        return sorted(p.name for p in self.store_path.iterdir() if not p.name.startswith("."))

    def debris(self):
        """What is in the store's folder and is neither an object nor the marker."""
        return sorted(p.name for p in self.store_path.iterdir() if p.name.startswith(".") and p.name != ".bellhop-store")

    def object(self, key):
        return (self.store_path / key).read_bytes()

    def assert_memory_below(self, kib, field="VmRSS", beyond=0):
        """Resident memory (VmHWM: its peak) of at most `kib` above `beyond`. A sanitizer's own memory says nothing of the daemon's."""
        if TIME_FACTOR == 1:
            assert self.memory_kib(field) - beyond < kib

    def memory_kib(self, field="VmRSS"):
        """VmRSS or VmHWM from /proc."""
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1])
        raise KeyError(field)

    def threads(self):
        return len(list(pathlib.Path(f"/proc/{self.pid}/task").iterdir()))

    def descriptors(self):
        return len(list(pathlib.Path(f"/proc/{self.pid}/fd").iterdir()))


def run_cli(*args, timeout=30, env=None, input=None):
    """Runs `bellhop ARGS` to its end: a CompletedProcess with returncode, stdout, stderr."""
    done = subprocess.run([binary(), *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, input=input,
                          timeout=timeout * TIME_FACTOR, env={**os.environ, **(env or {})})
    assert not SANITIZER.search(done.stderr), done.stderr
    return done
