"""I: the instructions that bellhop itself takes for a message, counted by callgrind. A count hardly depends on the machine. What starting,
connecting and the log take falls out: two runs of different lengths are compared."""

import os
import re
import subprocess
from collections import Counter

from .report import line, verdict
from .services import Bellhop

FEW, MANY = 1000, 11000
SHOWN = 12  # functions
SETTING = "unix, batching, classic"


def count(bench, stamps, messages, options):
    """Instructions by function of a whole run that publishes so many messages."""
    profile = os.path.join(bench.folder, f"callgrind-{stamps}-{messages}")
    bellhop = Bellhop(bench.folder, bench.broker, bench.bellhop_binary, stamps, f"bellhop-counted-{stamps}-{messages}",
                      wrapper=["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}"])
    bench.client.publish(bellhop.unix, count=messages, window=256, **options)
    bellhop.stop()
    text = subprocess.run(["callgrind_annotate", "--threshold=100", profile], capture_output=True, text=True, errors="replace",
                          check=True).stdout
    functions = Counter()
    for row in re.finditer(r"^ *([\d,]+) \( *[\d.]+%\) +\S*?:(.+?)(?: \[\S+\])?$", text, re.M):
        functions[re.sub(r"\(.*", "", row[2])] += int(row[1].replace(",", ""))
    return functions


def instructions(bench, slip):
    """`slip`: the options of the bench client with which a publish gets a slip. A count above its target fails the bench."""
    if not bench.bellhop_binary:
        return
    for stamps, what, at_most, options in (("forward", "forwarded as it is", 1000, {}), ("slip", "with slip, id, mode stamped", 1800, slip)):
        few, many = (count(bench, stamps, messages, options) for messages in (FEW, MANY))
        each = Counter({name: (many[name] - few[name]) / (MANY - FEW) for name in many})
        total = sum(each.values())
        bench.failed = bench.failed or total > at_most
        line("I", SETTING, f"instructions a publish and confirm, {what}", f"{total:,.0f}", verdict(total <= at_most, f"<= {at_most:,}"))
        for name, instructions_each in each.most_common(SHOWN):
            line("I", SETTING, f"  {name[:60]}", f"{instructions_each:.0f}")
