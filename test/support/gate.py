"""A store that a test can hold up: the daemon's fsync waits while the gate is closed.

    gate = Gate(tmp_path)
    daemon = bellhop(config, env=gate.env)
    gate.close()                # uploads do not finish; gate.close(1 << 20): those of 1 MiB and more
    gate.open()
"""

import os
import pathlib
import subprocess

SOURCE = pathlib.Path(__file__).with_name("gated_fsync.c")


class Gate:
    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "gate"
        library = pathlib.Path(folder) / "gated_fsync.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"], check=True)
        asan = os.environ.get("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0:halt_on_error=1")
        self.env = {"LD_PRELOAD": str(library), "BELLHOP_TEST_GATE": str(self.path),
                    "ASAN_OPTIONS": asan + ":verify_asan_link_order=0"}

    def close(self, from_bytes=0):
        new = self.path.with_suffix(".new")
        new.write_text(str(from_bytes))
        new.rename(self.path)

    def open(self):
        self.path.unlink(missing_ok=True)
