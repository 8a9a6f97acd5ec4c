"""What the Dockerfile says of the image, without building it.

    image = Image()
    image.user, image.entrypoint, image.command, image.health     # (10001, 10001), [...], [...], [...]
    image.own_folders                                             # those that belong to its user
"""

import json
import re

from .bellhop import ROOT


def _instructions(text):
    """(name, rest) of each instruction, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.M).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


class Image:
    def __init__(self, dockerfile=ROOT / "Dockerfile", root_script=ROOT / "deploy" / "image-root.sh"):
        last = []
        for name, rest in _instructions(dockerfile.read_text()):
            last = [] if name == "FROM" else [*last, (name, rest)]
        facts = dict(last)
        self.user = tuple(int(number) for number in facts["USER"].split(":"))
        self.entrypoint = json.loads(facts["ENTRYPOINT"])
        self.command = json.loads(facts["CMD"])
        self.health = json.loads(re.search(r"CMD (\[.*\])", facts["HEALTHCHECK"])[1])
        script = root_script.read_text()
        ids = re.search(r"^user=(\d+) group=(\d+)$", script, re.M)
        assert (int(ids[1]), int(ids[2])) == self.user, "image-root.sh makes another user's folders"
        self.own_folders = ["/" + folder for folder in re.search(r"^install -d -o \$user -g \$group \S+ \S+ (.+)$", script, re.M)[1].split()]
