#!/bin/bash
# The client steps with the commands of amqp-tools (test/clients/README.md, "The tests"). Arguments: host:port, a prefix, a queue type (they declare classic queues only).
# Each command opens a connection of its own. They show bodies only, and know no confirms.
set -eu -o pipefail
export AMQP="amqp://guest:guest@$1"
prefix=$2
exchange=$prefix.events # the test declares it: there is no command for that
queue=$prefix.q
work=$(mktemp -d)
trap 'rm -rf "$work"; kill $(jobs -p) 2>/dev/null || true' EXIT

seen() { tee "$work/body" | md5sum | { read -r md5 _; echo "bytes=$(stat -c %s "$work/body") md5=$md5"; }; }
publish() { amqp-publish -u "$AMQP" -p -C text/plain "$@" <"$work/message"; }
get() { amqp-get -u "$AMQP" -q "$queue"; }
empty() { if get >/dev/null; then echo no; else echo yes; fi; }

# What consume runs for each message: the body is its standard input.
cat >"$work/show" <<'SHOW'
#!/bin/bash
cat >"$1/shown"
read -r md5 _ < <(md5sum "$1/shown")
echo "$2 bytes=$(stat -c %s "$1/shown") md5=$md5"
SHOW
# The same, but it fails: the message is not acknowledged.
cat >"$work/refuse" <<'REFUSE'
#!/bin/bash
"$1/show" "$1" "$2"
exit 1
REFUSE
chmod +x "$work/show" "$work/refuse"
consume() { amqp-consume -u "$AMQP" -q "$queue" "$@"; }

printf 'hello bellhop' >"$work/small"
{ printf '\254\001\001'; for ((i = 0; i < 256; i++)); do printf "\\x$(printf %02x "$i")"; done; } >"$work/binary" # looks like a claim check, and is none
seq -f %08.0f 0 655359 | tr -d '\n' >"$work/large" # 5 MiB
part() { head -c "$1" "$work/large" >"$work/message"; }

declared=$(amqp-declare-queue -u "$AMQP" -q "$queue" -d)
echo "connect: open"
echo "limits: not in this library"
echo "declare: $declared"

# consume binds a queue of its own; that is done when a message through the exchange arrives.
amqp-consume -u "$AMQP" -x -q "$prefix.bound" -e "$exchange" -r 'order.#' -p 2 "$work/show" "$work" consume: >"$work/consumed" &
consumer=$!
printf ready >"$work/message"
until grep -q 'bytes=5 ' "$work/consumed"; do publish -e "$exchange" -r order.ready; done
for word in small binary large; do
  cp "$work/$word" "$work/message"
  publish -e "$exchange" -r "order.$word"
  echo "publish: $word $(seen <"$work/$word")"
done
until grep -q 'bytes=5242880 ' "$work/consumed"; do kill -0 $consumer; done
grep -v 'bytes=5 ' "$work/consumed"
kill $consumer
wait $consumer 2>/dev/null || true
echo "bare: not in this library"
cp "$work/small" "$work/message"
publish -e "$exchange" -r order.headers -H 'string: grüß' -H 'number: 7'
echo "headers: two strings; there is no command that shows them"
echo "return: not in this library"

part 80000
publish -r "$queue"
consume -c 1 "$work/refuse" "$work" "nack: refused"
consume -c 1 "$work/show" "$work" "nack: again"

part 90000
publish -r "$queue"
echo "get: $(get | seen)"
echo "get: empty=$(empty)"
echo "transaction: not in this library"
echo "rpc: not in this library"

# An exclusive queue lives as long as the command that declares it.
refused() { amqp-get -u "$AMQP" -q "$1" 2>&1 >/dev/null | sed "s/$1/$2/; s/^/refused: /" || true; }
amqp-consume -u "$AMQP" -x -q "$prefix.exclusive" cat >/dev/null &
other=$!
until refused "$prefix.exclusive" EXCLUSIVE >"$work/refusal"; grep -q RESOURCE_LOCKED "$work/refusal"; do :; done
cat "$work/refusal"
kill $other
wait $other 2>/dev/null || true
refused "$prefix.missing" "$prefix.missing"

# A command that runs while bellhop is restarted ends with an error; the next one connects anew.
amqp-declare-queue -u "$AMQP" -q "$prefix.idle" -d >/dev/null
amqp-consume -u "$AMQP" -q "$prefix.idle" cat >"$work/running" 2>"$work/loss" &
waiting=$!
cp "$work/small" "$work/message"
publish -r "$prefix.idle"
until [ -s "$work/running" ]; do kill -0 $waiting; done
part 110000
publish -r "$queue"
echo "ready for restart"
read -r _
wait $waiting || true
[ -s "$work/loss" ] # amqp-consume says that it lost its connection, but not why
echo "lost: -"
read -r _
echo "restart: kept m-kept $(get | seen)"
part 120000
publish -r "$queue"
consume -c 1 "$work/show" "$work" "restart: consumed m-after"
amqp-delete-queue -u "$AMQP" -q "$queue" >/dev/null
amqp-delete-queue -u "$AMQP" -q "$prefix.idle" >/dev/null
echo "close: clean"
