"""The client programs, and how one is run: its lines, with the other side restarted when it says that it is ready for that."""

import os
import pathlib
import subprocess
import tempfile
import threading
from typing import NamedTuple

from support.rabbitmq import TIME_FACTOR

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BELLHOP_TEST_CLIENTS_DIR", HERE.parents[1] / "build" / "dev" / "test" / "clients"))
NODE_MODULES = pathlib.Path(os.environ.get("BELLHOP_TEST_NODE_MODULES", HERE.parents[1] / "build" / "node" / "node_modules"))
JAVA_CLASSES = ":".join([str(BUILD / "java_amqp_client"), *(f"/usr/share/java/{jar}.jar" for jar in ("amqp-client", "slf4j-api", "slf4j-nop"))])


class Program(NamedTuple):
    command: list  # what is run; address, prefix and queue type are added
    transport: str = "unix"  # how it reaches bellhop; straight at the broker it is TCP for all
    told: str = "320"  # how its library tells the application of the connection.close of a restart ("-": not at all)
    lacks: tuple = ()  # the steps that its library cannot do: there the program prints "STEP: not in this library"
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
    "c-librabbitmq": Program([BUILD / "c_librabbitmq_client"]),
}


def run(command, address, prefix, *more, end=None, begin=lambda: None, timeout=60):
    """Runs a program to its end and returns its lines, the prefix in them written PREFIX.

    When it prints "ready for restart", `end` ends the other side, and the program is told so by a line on its standard input. When it
    has seen that ("lost: ..."), `begin` starts the other side again, and the program gets another line."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen([*map(str, command), address, prefix, *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                   text=True, env={**os.environ, "NODE_PATH": str(NODE_MODULES), "LC_ALL": "C.UTF-8"})
        watch = threading.Timer(timeout * TIME_FACTOR, process.kill)
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
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
        errors.seek(0)
        assert code == 0, f"{command[-1]} at {address}: exit {code}\n" + "\n".join(lines) + f"\n{errors.read()[-4000:]}"
    return lines
