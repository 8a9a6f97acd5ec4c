"""Publishes one message through bellhop, and returns when it is confirmed. It needs pika.

    python3 deploy/publish.py /run/bellhop/bellhop.sock bellhop-trial "a scan"     declares the queue, which stays
    head -c 1M /dev/zero | python3 deploy/publish.py /run/bellhop/bellhop.sock bellhop-trial -
"""

import sys


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    try:
        import pika_unix
    except ModuleNotFoundError as error:
        sys.exit(f"{error}: install it, on Debian by apt-get install python3-pika")
    path, queue, text = sys.argv[1:]
    body = sys.stdin.buffer.read() if text == "-" else text.encode()
    connection = pika_unix.connect(path)
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare(queue, durable=True)
    channel.basic_publish("", queue, body, mandatory=True)
    print(f"confirmed: {len(body)} bytes in queue {queue}")
    connection.close()


if __name__ == "__main__":
    main()
