"""What every client program prints, and how its lines through bellhop may differ from those straight at the broker."""

import hashlib
import re

BINARY = b"\xac\x01\x01" + bytes(range(256))
LARGE = b"".join(b"%08d" % i for i in range(655360))

# Each step, and how many lines it has (None: one or more).
STEPS = {"connect": 1, "limits": 1, "declare": 1, "publish": 3, "consume": 3, "bare": 1, "headers": None, "return": 1, "nack": 2, "get": 2,
         "transaction": 4, "rpc": 1, "refused": 2, "ready for restart": 1, "lost": 1, "restart": 2, "close": 1}

UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def body(size):
    return f"bytes={size} md5={hashlib.md5(LARGE[:size]).hexdigest()}"


# What must be in a step's lines, in this order, whatever the language.
EXPECTED = {
    "publish": ["small bytes=13", f"binary bytes=259 md5={hashlib.md5(BINARY).hexdigest()}", f"large {body(5 << 20)}"],
    "consume": ["bytes=13", f"bytes=259 md5={hashlib.md5(BINARY).hexdigest()}", body(5 << 20)],
    "return": ["NO_ROUTE"],
    "nack": [body(80000), body(80000)],
    "get": [body(90000), "empty=yes"],
    "transaction": ["before the commit empty=yes", "committed m-tx-1 bytes=13", f"committed m-tx-2 {body(100000)}", "rolled back empty=yes"],
    "rpc": ["correlation_id=rpc-1 answer to question"],
    "refused": ["RESOURCE_LOCKED - ", "NOT_FOUND - "],
    "restart": [f"kept m-kept {body(110000)}", f"consumed m-after {body(120000)}"],
    "close": ["clean"],
    "celery": [f"SUCCESS {body(5)}", f"SUCCESS {body(5 << 20)}", "worker ended 0"],
}


def check_steps(lines, lacks=(), own=None):
    """Every step is there, in order and with its outcome; those in `lacks` say that their library cannot do them, and no other does.
    `own`: steps that only this program has, with the numbers of their lines."""
    own = own or {}
    by_step = {}
    for line in lines:
        by_step.setdefault(line.partition(": ")[0], []).append(line)
    assert [step for step in by_step if step not in own] == list(STEPS), lines
    for step, count in {**STEPS, **own}.items():
        mine = by_step[step]
        if step in lacks:
            assert mine == [f"{step}: not in this library"], mine
            continue
        assert count is None or len(mine) == count, mine
        for line, part in zip(mine, EXPECTED.get(step, [])):
            assert part in line, (line, part)
    assert all(body(70000) in line for line in by_step["return"] if "bytes=" in line), by_step["return"]


def permitted(direct, through, told):
    """Whether a line through bellhop may differ so from the line straight at the broker: the whole list."""
    step = through.partition(":")[0]
    if step == "limits":
        # One channel fewer is offered.
        offered = re.search(r"channel_max=(\d+)", direct)
        return offered and through == direct.replace(offered[0], f"channel_max={int(offered[1]) - 1}")
    if step == "bare":
        # A missing delivery mode and a missing message id are filled in.
        filled = re.escape(direct).replace("delivery_mode=\\-", "delivery_mode=2").replace("message_id=\\-", f"message_id={UUID}")
        return re.fullmatch(filled, through)
    if step == "lost":
        # Straight at the broker the test cuts the connection; bellhop, told to end, says why.
        return direct == "lost: -" and through == f"lost: {told}"
    return False


def compare(direct, through, told):
    assert len(through) == len(direct), (direct, through)
    for one, other in zip(direct, through):
        assert one == other or permitted(one, other, told), f"at the broker: {one}\nat bellhop:    {other}"
    assert f"lost: {told}" in through, through
    bare = next(line for line in through if line.startswith("bare: "))
    assert "not in this library" in bare or re.fullmatch("bare: delivery_mode=[12] message_id=[^-].*", bare), bare
