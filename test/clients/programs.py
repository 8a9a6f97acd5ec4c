"""The client programs, and how one is run: its lines, with the other side restarted when it says that it is ready for that."""

import os
import pathlib
import signal
import subprocess
import tempfile
import threading
from typing import NamedTuple

from support.rabbitmq import TIME_FACTOR

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BELLHOP_TEST_CLIENTS_DIR", HERE.parents[1] / "build" / "dev" / "test" / "clients"))
NODE_MODULES = pathlib.Path(os.environ.get("BELLHOP_TEST_NODE_MODULES", HERE.parents[1] / "build" / "node" / "node_modules"))
PLUGINS = next(pathlib.Path("/usr/lib/rabbitmq/lib").glob("*/plugins"), None)  # where the broker's package has Erlang's client
JAVA_CLASSES = ":".join([str(BUILD / "java_amqp_client"), *(f"/usr/share/java/{jar}.jar" for jar in ("amqp-client", "slf4j-api", "slf4j-nop"))])


class Program(NamedTuple):
    command: list  # what is run; address, prefix and queue type are added
    transport: str = "unix"  # how it reaches bellhop; straight at the broker it is TCP for all
    told: str = "320"  # how its library tells the application of the connection.close of a restart ("-": not at all)
    lacks: tuple = ()  # the steps that its library cannot do: there the program prints "STEP: not in this library"
    queue_types: tuple = ("classic", "quorum")
    own: dict = {}  # steps that only this program has, with the numbers of their lines


PROGRAMS = {
    "python-pika": Program(["/usr/bin/python3", HERE / "python_pika" / "client.py"]),
    "python-aio-pika": Program(["/usr/bin/python3", HERE / "python_aio_pika" / "client.py"]),
    "python-kombu": Program(["/usr/bin/python3", HERE / "python_kombu" / "client.py"], own={"celery": 3}),
    "node-amqplib": Program(["node", HERE / "node_amqplib" / "client.js"]),
    "node-rabbitmq-client": Program(["node", HERE / "node_rabbitmq_client" / "client.js"], told="CONNECTION_FORCED", lacks=("limits",)),
    "node-cloudamqp": Program(["node", HERE / "node_cloudamqp" / "client.js"]),
    "ruby-bunny": Program(["ruby", HERE / "ruby_bunny" / "client.rb"], told="-"),
    "php-amqplib": Program(["php", HERE / "php_amqplib" / "client.php"]),
    "php-extension": Program(["php", HERE / "php_extension" / "client.php"], transport="tcp"),
    "go-amqp091": Program([BUILD / "go_amqp091_client"]),
    "java-amqp-client": Program(["java", "-cp", JAVA_CLASSES, "Client"]),
    # Its reader of tables knows no 64-bit integers: it cannot take a message from a quorum queue (x-delivery-count).
    "perl-anyevent": Program(["perl", HERE / "perl_anyevent" / "client.pl"], queue_types=("classic",)),
    "erlang-amqp-client": Program(["env", f"ERL_LIBS={PLUGINS}", "escript", HERE / "erlang_amqp_client" / "client.escript"], transport="tcp"),
    "amqp-tools": Program([HERE / "amqp_tools" / "client.sh"], transport="tcp", told="-", queue_types=("classic",),
                          lacks=("limits", "bare", "return", "transaction", "rpc")),
    "c-librabbitmq": Program([BUILD / "c_librabbitmq_client"]),
}


def run(command, address, prefix, *more, end=None, begin=lambda: None, timeout=60):
    """Runs a program to its end and returns its lines, the prefix in them written PREFIX.

    When it prints "ready for restart", `end` ends the other side, and the program is told so by a line on its standard input. When it
    has seen that ("lost: ..."), `begin` starts the other side again, and the program gets another line."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen([*map(str, command), address, prefix, *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                   text=True, start_new_session=True, env={**os.environ, "NODE_PATH": str(NODE_MODULES), "LC_ALL": "C.UTF-8"})

        def kill():  # and whatever it has started
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

        watch = threading.Timer(timeout * TIME_FACTOR, kill)
        watch.start()
        lines = []
        try:
            for line in process.stdout:
                lines.append(line.rstrip("\n").replace(prefix, "PREFIX"))
                act = end if lines[-1] == "ready for restart" else begin if lines[-1].startswith("lost: ") else None
                if act is not None:
                    act()
                    process.stdin.write("go on\n")
                    process.stdin.flush()
            code = process.wait()
        finally:
            watch.cancel()
            kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
        errors.seek(0)
        assert code == 0, f"{command[-1]} at {address}: exit {code}\n" + "\n".join(lines) + f"\n{errors.read()[-4000:]}"
    return lines
