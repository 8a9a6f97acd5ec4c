"""A store that a test can hold up: the daemon's fsync, or its reading, waits while the gate is closed.

    gate = Gate(tmp_path)
    daemon = bellhop(config, env=gate.env)
    gate.close()                # uploads do not finish; gate.close(1 << 20): those of 1 MiB and more
    gate.close(call="pread")    # objects are not read
    gate.delay("pread", 1000)   # each takes a second longer
    gate.open()
"""

import os
import pathlib
import subprocess

SUPPORT = pathlib.Path(__file__).parent
SOURCE = SUPPORT / "gated_disk.c"


def preloaded(source, folder):
    """The environment with which a daemon loads the C file, compiled into the folder."""
    library = pathlib.Path(folder) / (source.stem + ".so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
    asan = os.environ.get("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0:halt_on_error=1")
    return {"LD_PRELOAD": str(library), "ASAN_OPTIONS": asan + ":verify_asan_link_order=0"}


class Gate:
    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "gate"
        self.env = {**preloaded(SOURCE, folder), "BELLHOP_TEST_GATE": str(self.path)}

    def close(self, from_bytes=0, call="fsync"):
        new = self.path.with_suffix(".new")
        new.write_text(f"{from_bytes} {call}")
        new.rename(self.path)

    def delay(self, call, milliseconds):
        new = self.path.with_suffix(".new")
        new.write_text(f"0 {call} {milliseconds}")
        new.rename(self.path)

    def open(self):
        self.path.unlink(missing_ok=True)
