"""Completions in the shells themselves: each offers what the program has, and nothing else."""

import os
import pty
import re
import select
import shlex
import subprocess
import time

import pytest

from support.documents import ROOT
from support.help import commands, options
from support.rabbitmq import TIME_FACTOR

FOLDER = ROOT / "deploy" / "completions"
# Lists are shown at once, without explanations.
ZSHRC = """
PS1='READY> '
fpath=($HOME/functions $fpath)
autoload -Uz compinit
compinit -u -D
unsetopt prompt_sp
zstyle ':completion:*' verbose no
LISTMAX=999
bindkey -e
"""
LEVELS = {"trace", "debug", "info", "warn", "error"}


def bash(*words, cwd=None):
    """What bash offers for the last word: COMPREPLY of the function that `complete` names."""
    script = f"""source {FOLDER}/bellhop.bash
      read -r _ _ function _ <<<"$(complete -p bellhop)"
      COMP_WORDS=({shlex.join(words)}) COMP_CWORD={len(words) - 1}
      $function && printf '%s\\n' "${{COMPREPLY[@]}}"
      """
    done = subprocess.run(["bash", "--norc", "-c", script], cwd=cwd, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.splitlines()) - {""}


def fish(line, cwd=None):
    done = subprocess.run(["fish", "--no-config", "-c", f"source {FOLDER}/bellhop.fish; complete -C {shlex.quote(line)}"], cwd=cwd,
                          capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return {text.split("\t")[0] for text in done.stdout.splitlines()}


class Zsh:
    """A zsh at a terminal of its own, in which the completion's key is pressed."""

    def __init__(self, home):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(home)
            os.environ.update(TERM="dumb", HOME=str(home), ZDOTDIR=str(home), COLUMNS="200", LINES="60")
            os.execvp("zsh", ["zsh", "-d", "-i"])
        self.read_until(r"READY> ")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, end, timeout=20):
        seen, deadline = "", time.monotonic() + timeout * TIME_FACTOR
        while not re.search(end, seen):
            left = deadline - time.monotonic()
            ready = left > 0 and select.select([self.terminal], [], [], left)[0]
            assert ready, f"zsh showed no {end!r}, but: {seen!r}"
            seen += os.read(self.terminal, 65536).decode(errors="replace")
        return seen

    def offered(self, line):
        """The words that it lists for a line that could go on in several ways, or the one way in which it goes on."""
        self.type(line + "\t\x15echo d''one\n")  # the line is put away before the last command
        shown = self.read_until(r"done\r\n\s*READY> ")
        return set(re.findall(r"(?<![\w'-])--?[\w-]+|(?<![\w-])[\w./-]+", shown.split("echo d''one")[0]))

    def end(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


@pytest.fixture(scope="module")
def zsh(tmp_path_factory):
    home = tmp_path_factory.mktemp("zsh")
    (home / "functions").mkdir()
    (home / "functions" / "_bellhop").write_text((FOLDER / "bellhop.zsh").read_text())
    (home / "orders.yaml").write_text("")
    (home / ".zshrc").write_text(ZSHRC)
    shell = Zsh(home)
    yield shell
    shell.end()


def test_bash_offers_the_commands_and_the_options():
    assert bash("bellhop", "") == set(commands())
    assert bash("bellhop", "-") == options()


@pytest.mark.parametrize("command", commands())
def test_bash_offers_the_options_of_a_command(command):
    assert bash("bellhop", command, "-") == options(command)


def test_bash_offers_values(tmp_path):
    (tmp_path / "my orders.yaml").write_text("")
    (tmp_path / "folder").mkdir()
    assert bash("bellhop", "log-level", "") == LEVELS
    assert bash("bellhop", "peek", "orders", "--offset", "") == {"first", "last", "next"}
    assert bash("bellhop", "check", "m", cwd=tmp_path) == {"my orders.yaml"}
    assert bash("bellhop", "run", "--config", "", cwd=tmp_path) == {"my orders.yaml", "folder"}
    assert bash("bellhop", "run", "--config", "=", "m", cwd=tmp_path) == {"my orders.yaml"}
    assert bash("bellhop", "peek", "orders", "--save", "", cwd=tmp_path) == {"folder"}
    assert bash("bellhop", "peek", "", cwd=tmp_path) == set()


def test_fish_offers_the_commands_and_values(tmp_path):
    (tmp_path / "orders.yaml").write_text("")
    assert fish("bellhop ", cwd=tmp_path) == set(commands())
    assert fish("bellhop log-level ", cwd=tmp_path) == LEVELS
    assert fish("bellhop peek orders --offset ", cwd=tmp_path) == {"first", "last", "next"}
    assert fish("bellhop check o", cwd=tmp_path) == {"orders.yaml"}
    assert fish("bellhop run --config o", cwd=tmp_path) == {"orders.yaml"}


@pytest.mark.parametrize("command", commands())
def test_fish_offers_the_options_of_a_command(command, tmp_path):
    assert fish(f"bellhop {command} -", cwd=tmp_path) == options(command)


def test_zsh_offers_the_commands_and_values(zsh):
    assert set(commands()) <= zsh.offered("bellhop ")
    assert LEVELS <= zsh.offered("bellhop log-level ")
    assert {"first", "last", "next"} <= zsh.offered("bellhop peek orders --offset ")
    assert "orders.yaml" in zsh.offered("bellhop check o")
    assert "orders.yaml" in zsh.offered("bellhop run --config o")


@pytest.mark.parametrize("command", commands())
def test_zsh_offers_the_options_of_a_command(command, zsh):
    found = zsh.offered(f"bellhop {command} -")
    assert {name for name in found if name.startswith("-")} - {"-"} == options(command)
