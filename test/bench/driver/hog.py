"""The session of P12 that is handed very large bodies: reads them as fast as it can and drops them, again and again until stdin ends.

    hog.py SOCKET QUEUE COUNT BYTES      prints "consuming", at the end how many bytes it took
"""

import os
import select
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from support import amqp  # noqa: E402


def main(socket, queue, count, size_bytes):
    taken_bytes = 0
    space = bytearray(4 << 20)
    while True:
        client = amqp.connect(socket, heartbeat=0)
        channel = client.channel()
        channel.call("basic.qos", prefetch_count=count)
        channel.send("basic.consume", queue=queue)
        if taken_bytes == 0:
            print("consuming", flush=True)
        round_bytes = 0
        client.sock.setblocking(False)
        while round_bytes < count * size_bytes:
            readable, _, _ = select.select([client.sock, sys.stdin], [], [])
            if sys.stdin in readable:
                print(taken_bytes, flush=True)
                client.abort()
                return
            round_bytes += (got := client.sock.recv_into(space))
            taken_bytes += got
            if got == 0:
                sys.exit("bellhop closed the session")
        client.abort()  # what was not acknowledged comes again


main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
