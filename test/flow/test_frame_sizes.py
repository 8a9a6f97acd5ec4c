"""A client that chose a smaller frame_max than the broker's, with a broker that the test plays: every frame is looked at byte for byte."""

import pytest

from support import amqp

KEEP = {"stamp": {"message_id": "keep", "delivery_mode": "keep"}, "claim_check": {"threshold": "1MiB"}}
SIZES = [0, 1, 4088, 4089, 131064, 131065, 300_001]


def body_of(size):
    return bytes(n * 31 % 251 for n in range(size))


def test_the_clients_frames_go_up_as_they_are(stage):
    here = stage(KEEP, channels=(1,), frame_max=4096)
    assert here.leg.tuned.frame_max == 131072
    for size in SIZES:
        sent = here.client.publish_frames(1, "e", "k", body_of(size), headers={"h": "x" * 3000})
        assert max(map(len, sent)) <= 4096
        here.client.send_raw(b"".join(sent))
        for frame in sent:
            assert amqp.frame(*here.leg.read_frame()) == frame


@pytest.mark.parametrize("split", [[], [131064, 5, 1, 4088], [3, 131064], [1, 1, 4087, 131064]])
def test_the_brokers_frames_go_down_in_the_clients_size(stage, split):
    """However the broker cuts them."""
    here = stage(KEEP, channels=(1,), frame_max=4096)
    headers = {"h": "x" * 9000}
    for tag, size in enumerate(SIZES, 1):
        method = amqp.encode_method("basic.deliver", consumer_tag="c", delivery_tag=tag, exchange="", routing_key="q")
        here.leg.deliver(1, "c", tag, body_of(size), routing_key="q", split=split, headers=headers)
        wanted = amqp.content_frames(1, method, body_of(size), {"headers": headers}, 4096)
        if size > 4088:  # what fits one frame of the client's passes as it came
            assert [amqp.frame(*here.client.read_frame()) for _ in wanted] == wanted
        else:
            assert here.client.wait_for("basic.deliver", 1).body == body_of(size)


def test_a_client_is_kept_to_the_frame_max_that_it_chose(stage):
    here = stage(KEEP, channels=(1,), frame_max=4096)
    here.client.send_raw(b"".join(here.client.publish_frames(1, "e", "k", body_of(9000), split=[4097])))
    here.client.expect_close(501)
