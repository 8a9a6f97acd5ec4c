"""Style, as far as a machine can tell."""

import shutil
import subprocess

from tree import ROOT, sources

LINES_MAX = 400

# Files that are too long today. They get shorter and leave the list; none comes.
TOO_LONG = set()


def test_no_other_file_is_longer_than_400_lines():
    lengths = {str(path): len((ROOT / path).read_text().splitlines()) for path in sources("proto", "config", "daemon")}
    too_long = {path for path, lines in lengths.items() if lines > LINES_MAX}
    assert too_long - TOO_LONG == set(), "split them: one idea a file"
    assert TOO_LONG - too_long == set(), "no longer too long: take them off the list"


def test_every_file_is_formatted():
    """By clang-format 14, Debian 12's: another version breaks lines otherwise."""
    clang_format = shutil.which("clang-format-14")
    assert clang_format, "clang-format-14 is not installed (test/run installs it)"
    files = [str(path) for path in sources("proto", "config", "daemon", "test") if path.suffix != ".c"]
    done = subprocess.run([clang_format, "--dry-run", "-Werror", *files], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, f"clang-format-14 -i would change:\n{done.stderr[:4000]}"
