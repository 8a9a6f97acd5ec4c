"""bellhop's command line, as `bellhop --help` and each command's own --help show it: what man page and completions are made of."""

import re
import subprocess
from dataclasses import dataclass, field

COLUMN = 30  # where a help's explanations begin


@dataclass
class Argument:
    """An option, with names like ["-h", "--help"], or without names a positional. `value` stands for its value: FILE, or "" for none."""
    names: list
    value: str
    explanation: str
    required: bool = False
    choices: list = field(default_factory=list)
    bounds: str = ""   # as in "1 - 1000000"
    default: str = ""


@dataclass
class Command:
    name: str
    summary: str
    usage: str
    arguments: list
    footer: list  # paragraphs, each a list of lines

    @property
    def options(self):
        return [argument for argument in self.arguments if argument.names]

    @property
    def positionals(self):
        return [argument for argument in self.arguments if not argument.names]


def _sections(text):
    """A help's summary, usage, lists ({heading: [[left, explanation]]}) and footer."""
    lines = text.rstrip("\n").split("\n")
    usage = next(number for number, line in enumerate(lines) if line.startswith("Usage: "))
    lists, footer, heading = {}, [], None
    for line in lines[usage + 1:]:
        if re.fullmatch(r"[A-Z]\w+:", line):
            heading = line[:-1]
            lists[heading] = []
        elif line == "":
            heading = None
            footer.append([])
        elif heading is None:
            footer[-1].append(line)
        elif line.startswith(" " * COLUMN):  # the left was longer than its column, or the explanation is than its line
            entry = lists[heading][-1]
            entry[1] = f"{entry[1]} {line.strip()}".strip()
        else:
            cut = COLUMN if line[COLUMN - 1:COLUMN] == " " else len(line)
            lists[heading].append([line[:cut].strip(), line[cut:].strip()])
    return " ".join(lines[:usage]), lines[usage].removeprefix("Usage: "), lists, [paragraph for paragraph in footer if paragraph]


def _argument(left, explanation):
    """As in `-n N:UINT in [1 - 1000000]=1`, `--config FILE REQUIRED`, `--offset OFFSET:({first,last,next}) OR (NUMBER)`, `[KEY]`."""
    names, value, rest = re.match(r"(-[\w-]+(?:,-[\w-]+)*)? ?(N/s|[A-Z][A-Z=/]*)?(.*)$", left).groups(default="")
    choices = re.search(r"\{([\w,]+)\}", rest)
    bounds = re.search(r" in \[(.*?)\]", rest)
    default = re.search(r"\]=(\S+)", rest)
    argument = Argument(names.split(",") if names else [], value, explanation, "REQUIRED" in rest.split(),
                        choices[1].split(",") if choices else [], bounds[1] if bounds else "", default[1] if default else "")
    words = re.fullmatch(r"(\w+(?:, \w+)+) or (\w+)", explanation)
    if words and not argument.choices:  # the explanation is the list: trace, debug, info, warn or error
        argument.choices = [*words[1].split(", "), words[2]]
    return argument


def _command(name, text, common_footer):
    summary, usage, lists, footer = _sections(text)
    arguments = [_argument(*entry) for heading in ("Positionals", "Options") for entry in lists.get(heading, [])]
    # `(check FILE)` at a summary's end says no more than the usage does.
    return Command(name, re.sub(rf" \({name or '-'} [^()]*\)$", "", summary), usage, arguments,
                   [paragraph for paragraph in footer if paragraph not in common_footer])


def read(program):
    """The program itself, as a Command without a name, and its commands by name."""
    def help_of(*words):
        return subprocess.run([program, *words, "--help"], check=True, capture_output=True, text=True, timeout=60).stdout

    text = help_of()
    _, _, lists, footer = _sections(text)
    return _command("", text, []), {name: _command(name, help_of(name), footer) for name, _ in lists["Subcommands"]}
