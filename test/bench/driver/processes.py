"""Processes that the bench starts: each is known by its pid and ended by it, whatever way the bench ends."""

import atexit
import os
import signal
import socket
import subprocess
import sys
import time

_running = []


def start(command, log_path, **options):
    """Starts a process of its own group (so that Ctrl-C reaches the bench alone), its output going to a file."""
    with open(log_path, "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                   start_new_session=True, **options)
    _running.append(process)
    return process


def stop(process, patience_s=15):
    if process in _running:
        _running.remove(process)
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def stop_all():
    for process in reversed(list(_running)):
        stop(process)


def stop_all_at_exit():
    atexit.register(stop_all)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))


def wait_until(condition, what, process=None, log_path=None, patience_s=60):
    """Polls a condition with a deadline; a process that ends meanwhile is an error with its log's last lines."""
    deadline = time.monotonic() + patience_s
    while not condition():
        died = process is not None and process.poll() is not None
        if died or time.monotonic() > deadline:
            tail = ""
            if log_path and os.path.exists(log_path):
                with open(log_path, errors="replace") as log:
                    tail = "".join(log.readlines()[-20:])
            raise RuntimeError(f"{what}: {'the process ended' if died else 'not in time'}\n{tail}")
        time.sleep(0.02)


def free_ports(count):
    """Ports that were free a moment ago on loopback, all different."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def accepts(endpoint):
    """Whether a connection to tcp:HOST:PORT or unix:PATH is taken."""
    kind, _, address = endpoint.partition(":")
    connection = socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET)
    try:
        if kind == "unix":
            connection.connect(address)
        else:
            host, port = address.rsplit(":", 1)
            connection.connect((host, int(port)))
        return True
    except OSError:
        return False
    finally:
        connection.close()


def resident_kib(pid, field="VmRSS"):
    """Resident memory now, or with VmHWM the most that it ever was."""
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1])
    raise RuntimeError(f"no resident size of process {pid}")
