<?php
// The client steps with php-amqplib (test/clients/README.md, "The tests"). Arguments: an address (host:port, or a Unix socket's path), a prefix, a queue type.

require 'PhpAmqpLib/autoload.php';
require __DIR__ . '/../php_common.php';
require __DIR__ . '/UnixConnection.php';

use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Exception\AMQPConnectionClosedException;
use PhpAmqpLib\Exception\AMQPIOException;
use PhpAmqpLib\Exception\AMQPProtocolChannelException;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPAbstractCollection as Type;
use PhpAmqpLib\Wire\AMQPTable;

[, $address, $prefix, $queueType] = $argv;
$exchange = "$prefix.events";
$queue = "$prefix.q";

function connect()
{
    global $address;
    if ($address[0] === '/') {
        return new UnixConnection($address, 'guest', 'guest');
    }
    [$host, $port] = explode(':', $address);
    return new AMQPStreamConnection($host, $port, 'guest', 'guest', read_write_timeout: 20);
}

function show(AMQPMessage $m): string
{
    $of = fn ($name) => $m->has($name) ? $m->get($name) : '-';
    return "content_type={$of('content_type')} delivery_mode={$of('delivery_mode')} message_id={$of('message_id')} " .
        "correlation_id={$of('correlation_id')} type={$of('type')}";
}

function message(string $body, string $id, array $more = []): AMQPMessage
{
    return new AMQPMessage($body, ['content_type' => 'text/plain', 'delivery_mode' => 2, 'message_id' => $id] + $more);
}

/** A publish in confirm mode, and its outcome. */
function publish($ch, AMQPMessage $m, string $exchange, string $key, bool $mandatory = false): string
{
    $outcome = '-';
    $ch->set_ack_handler(function () use (&$outcome) { $outcome = 'ack'; });
    $ch->set_nack_handler(function () use (&$outcome) { $outcome = 'nack'; });
    $ch->basic_publish($m, $exchange, $key, $mandatory);
    $ch->wait_for_pending_acks_returns(20);
    return $outcome;
}

/** Hands each delivery to $enough, until that is true. */
function consume($ch, callable $enough): void
{
    global $queue;
    $done = false;
    $tag = $ch->basic_consume($queue, callback: function ($m) use (&$done, $enough) { $done = $done || $enough($m); });
    while (!$done) {
        $ch->wait(null, false, 20);
    }
    $ch->basic_cancel($tag);
}

function refused($ch, string $name, string $shownAs): void
{
    try {
        $ch->queue_declare($name, true);
    } catch (AMQPProtocolChannelException $e) {
        line('refused: ' . $e->amqp_reply_code . ' ' . str_replace($name, $shownAs, $e->amqp_reply_text));
    }
}

/** Headers of every type that the library writes. */
function headers(): AMQPTable
{
    $table = new AMQPTable(['string' => 'grüß', 'true' => true, 'int' => -70000, 'long' => 2 ** 40, 'double' => 2.25,
        'time' => new DateTime('2024-05-17 12:00:00 UTC'), 'table' => ['a' => ['b' => 'c']], 'array' => [1, 'two', ['three' => 3]], 'void' => null]);
    $table->set('byte', -7, Type::T_INT_SHORTSHORT);
    $table->set('ubyte', 200, Type::T_INT_SHORTSHORT_U);
    $table->set('short', -300, Type::T_INT_SHORT);
    $table->set('ushort', 60000, Type::T_INT_SHORT_U);
    $table->set('uint', 4000000000, Type::T_INT_LONG_U);
    $table->set('bytes', "\x00\xff", Type::T_BYTES);
    $table->set('decimal', new PhpAmqpLib\Wire\AMQPDecimal(314, 2), Type::T_DECIMAL);
    return $table;
}

$connection = connect();
$tuned = fn ($name) => (new ReflectionProperty(PhpAmqpLib\Connection\AbstractConnection::class, $name))->getValue($connection);
line('connect: open');
line("limits: channel_max={$tuned('channel_max')} frame_max={$tuned('frame_max')}");

$ch = $connection->channel();
$ch->exchange_declare($exchange, 'topic', durable: true, auto_delete: false);
[$name, $messages, $consumers] = $ch->queue_declare($queue, durable: true, auto_delete: false, arguments: new AMQPTable(['x-queue-type' => $queueType]));
$ch->queue_bind($queue, $exchange, 'order.#');
$ch->confirm_select();
line("declare: $name messages=$messages consumers=$consumers");

foreach (['small' => SMALL, 'binary' => BINARY, 'large' => LARGE] as $word => $body) {
    $outcome = publish($ch, message($body, "m-$word", ['correlation_id' => 'c', 'type' => 'order']), $exchange, "order.$word");
    line("publish: $word " . seen($body) . " $outcome");
}

$ch->basic_qos(0, 2, false);
consume($ch, function (AMQPMessage $m) {
    line("consume: key={$m->getRoutingKey()} tag={$m->getDeliveryTag()} redelivered=" . yes($m->isRedelivered()) . ' ' . seen($m->getBody()) . ' ' . show($m));
    $m->ack();
    return $m->getRoutingKey() === 'order.large';
});

publish($ch, new AMQPMessage(SMALL), '', $queue);
$m = $ch->basic_get($queue, true);
line('bare: delivery_mode=' . ($m->has('delivery_mode') ? $m->get('delivery_mode') : '-') . ' message_id=' . ($m->has('message_id') ? $m->get('message_id') : '-'));

publish($ch, message(SMALL, 'm-headers', ['application_headers' => headers()]), $exchange, 'order.headers');
$found = $ch->basic_get($queue, true)->get('application_headers')->getNativeData();
ksort($found);
foreach ($found as $name => $value) {
    line("headers: $name=" . get_debug_type($value) . ' ' . json_encode($value instanceof DateTime ? $value->getTimestamp() : $value, JSON_INVALID_UTF8_SUBSTITUTE));
}

$returning = $connection->channel();
$returning->confirm_select();
$returned = null;
$returning->set_return_listener(function (...$arguments) use (&$returned) { $returned = $arguments; });
$outcome = publish($returning, message(substr(LARGE, 0, 70000), 'm-return'), $exchange, 'nobody.wants.this', true);
[$code, $text, $from, $key, $m] = $returned;
line("return: code=$code text=$text exchange=$from key=$key " . seen($m->getBody()) . ' ' . show($m) . " then $outcome");
$returning->close();

publish($ch, message(substr(LARGE, 0, 80000), 'm-nack'), '', $queue);
consume($ch, function (AMQPMessage $m) {
    line('nack: redelivered=' . yes($m->isRedelivered()) . ' ' . seen($m->getBody()));
    $m->isRedelivered() ? $m->ack() : $m->nack(true);
    return $m->isRedelivered();
});

publish($ch, message(substr(LARGE, 0, 90000), 'm-get'), '', $queue);
$m = $ch->basic_get($queue);
line('get: redelivered=' . yes($m->isRedelivered()) . " left={$m->getMessageCount()} " . seen($m->getBody()) . ' ' . show($m));
$m->ack();
line('get: empty=' . yes($ch->basic_get($queue) === null));

$tx = $connection->channel();
$tx->tx_select();
$tx->basic_publish(message(SMALL, 'm-tx-1'), '', $queue);
$tx->basic_publish(message(substr(LARGE, 0, 100000), 'm-tx-2'), '', $queue);
line('transaction: before the commit empty=' . yes($ch->basic_get($queue) === null));
$tx->tx_commit();
for ($i = 0; $i < 2; $i++) {
    $m = $ch->basic_get($queue, true);
    line("transaction: committed {$m->get('message_id')} " . seen($m->getBody()));
}
$tx->basic_publish(message(SMALL, 'm-tx-3'), '', $queue);
$tx->basic_publish(message(substr(LARGE, 0, 100000), 'm-tx-4'), '', $queue);
$tx->tx_rollback();
line('transaction: rolled back empty=' . yes($ch->basic_get($queue) === null));
$tx->close();

$rpc = $connection->channel();
$reply = null;
$rpc->basic_consume('amq.rabbitmq.reply-to', no_ack: true, callback: function ($m) use (&$reply) { $reply = $m; });
$rpc->basic_publish(message('question', 'm-rpc', ['reply_to' => 'amq.rabbitmq.reply-to', 'correlation_id' => 'rpc-1']), '', $queue);
do { // published without a confirm: it may still be on its way
    $question = $ch->basic_get($queue);
} while ($question === null);
publish($ch, new AMQPMessage("answer to {$question->getBody()}", ['correlation_id' => $question->get('correlation_id')]), '', $question->get('reply_to'));
$question->ack();
while ($reply === null) {
    $rpc->wait(null, false, 20);
}
line("rpc: correlation_id={$reply->get('correlation_id')} {$reply->getBody()}");
$rpc->close();

[$exclusive] = $ch->queue_declare('', exclusive: true);
$other = connect();
refused($other->channel(), $exclusive, 'EXCLUSIVE');
$other->close();
refused($connection->channel(), "$prefix.missing", "$prefix.missing");

publish($ch, message(substr(LARGE, 0, 110000), 'm-kept'), '', $queue);
line('ready for restart');
fgets(STDIN);
try {
    $ch->wait(null, false, 20);
} catch (AMQPConnectionClosedException $e) {
    line('lost: ' . ($e->getCode() ?: '-'));
}
fgets(STDIN);
$connection->reconnect();
$ch = $connection->channel();
$ch->confirm_select();
$m = $ch->basic_get($queue, true);
line("restart: kept {$m->get('message_id')} " . seen($m->getBody()));
publish($ch, message(substr(LARGE, 0, 120000), 'm-after'), '', $queue);
consume($ch, function (AMQPMessage $m) {
    line("restart: consumed {$m->get('message_id')} " . seen($m->getBody()));
    $m->ack();
    return true;
});
$ch->queue_delete($queue);
$connection->close();
line('close: clean');
