"""Runs the bench client, which exits non-zero unless every message arrived."""

import itertools
import json
import subprocess

_queue_numbers = itertools.count(1)


def fresh_queue():
    return f"bench-{next(_queue_numbers)}"


class Client:
    def __init__(self, binary):
        self.binary = binary

    def command(self, mode, endpoints, **options):
        words = [self.binary, mode]
        for endpoint in [endpoints] if isinstance(endpoints, str) else endpoints:
            words += ["--endpoint", endpoint]
        for name, value in options.items():
            flag = "--" + name.replace("_", "-")
            words += [flag] if value is True else [] if value is None else [flag, str(value)]
        return words

    def run(self, mode, endpoints, **options):
        command = self.command(mode, endpoints, **options)
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
        return json.loads(done.stdout)

    def publish(self, endpoint, **options):
        options.setdefault("queue", fresh_queue())
        return self.run("publish", endpoint, **options)
