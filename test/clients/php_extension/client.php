<?php
// The client steps with PHP's amqp extension (test/clients/README.md, "The tests"). Arguments: host:port, a prefix, a queue type.

require __DIR__ . '/../php_common.php';

[, $address, $prefix, $queueType] = $argv;

function connect(): AMQPConnection
{
    global $address;
    [$host, $port] = explode(':', $address);
    $connection = new AMQPConnection(['host' => $host, 'port' => $port, 'login' => 'guest', 'password' => 'guest', 'read_timeout' => 20]);
    $connection->connect();
    return $connection;
}

function show($m): string
{
    return "content_type={$m->getContentType()} delivery_mode={$m->getDeliveryMode()} message_id={$m->getMessageId()} " .
        "correlation_id={$m->getCorrelationId()} type={$m->getType()}";
}

function queue(AMQPChannel $ch, string $name, array $arguments = []): AMQPQueue
{
    $queue = new AMQPQueue($ch);
    $queue->setName($name);
    $queue->setArguments($arguments);
    return $queue;
}

function exchange(AMQPChannel $ch, ?string $name = null): AMQPExchange
{
    $exchange = new AMQPExchange($ch);
    if ($name !== null) {
        $exchange->setName($name);
    }
    return $exchange;
}

function properties(string $id, array $more = []): array
{
    return ['content_type' => 'text/plain', 'delivery_mode' => 2, 'message_id' => $id] + $more;
}

/** A publish in confirm mode, and its outcome. */
function publish(AMQPExchange $exchange, string $body, string $key, array $properties, int $flags = AMQP_NOPARAM): string
{
    $outcome = '-';
    $exchange->getChannel()->setConfirmCallback(function () use (&$outcome) { $outcome = 'ack'; return false; },
        function () use (&$outcome) { $outcome = 'nack'; return false; });
    $exchange->publish($body, $key, $flags, $properties);
    $exchange->getChannel()->waitForConfirm(20);
    return $outcome;
}

/** Hands each delivery to $enough, until that is true. */
function consume(AMQPQueue $queue, callable $enough): void
{
    $queue->consume(fn ($m) => !$enough($m));
    $queue->cancel();
}

function refused(AMQPChannel $ch, string $name, string $shownAs): void
{
    try {
        $queue = queue($ch, $name);
        $queue->setFlags(AMQP_PASSIVE);
        $queue->declareQueue();
    } catch (AMQPQueueException $e) {
        line('refused: ' . $e->getCode() . ' ' . str_replace($name, $shownAs, $e->getMessage()));
    }
}

$connection = connect();
line('connect: open');
line("limits: channel_max={$connection->getMaxChannels()} frame_max={$connection->getMaxFrameSize()}");

$ch = new AMQPChannel($connection);
$events = exchange($ch, "$prefix.events");
$events->setType(AMQP_EX_TYPE_TOPIC);
$events->setFlags(AMQP_DURABLE);
$events->declareExchange();
$queue = queue($ch, "$prefix.q", ['x-queue-type' => $queueType]);
$queue->setFlags(AMQP_DURABLE);
$messages = $queue->declareQueue();
$queue->bind("$prefix.events", 'order.#');
$ch->confirmSelect();
line("declare: {$queue->getName()} messages=$messages");

foreach (['small' => SMALL, 'binary' => BINARY, 'large' => LARGE] as $word => $body) {
    $outcome = publish($events, $body, "order.$word", properties("m-$word", ['correlation_id' => 'c', 'type' => 'order']));
    line("publish: $word " . seen($body) . " $outcome");
}

$ch->setPrefetchCount(2);
consume($queue, function (AMQPEnvelope $m) use ($queue) {
    line("consume: key={$m->getRoutingKey()} tag={$m->getDeliveryTag()} redelivered=" . yes($m->isRedelivery()) . ' ' . seen($m->getBody()) . ' ' . show($m));
    $queue->ack($m->getDeliveryTag());
    return $m->getRoutingKey() === 'order.large';
});

$default = exchange($ch);
publish($default, SMALL, $queue->getName(), []);
$m = $queue->get(AMQP_AUTOACK);
// The extension shows a missing delivery mode as 1.
line('bare: delivery_mode=' . ($m->getDeliveryMode() === 1 ? '-' : $m->getDeliveryMode()) . ' message_id=' . ($m->getMessageId() ?: '-'));

publish($events, SMALL, 'order.headers', properties('m-headers', ['headers' => ['string' => 'grüß', 'true' => true, 'int' => -70000,
    'double' => 2.25, 'time' => new AMQPTimestamp(1715947200), 'decimal' => new AMQPDecimal(2, 314), 'table' => ['a' => ['b' => 'c']],
    'array' => [1, 'two', ['three' => 3]], 'void' => null]]));
$found = $queue->get(AMQP_AUTOACK)->getHeaders();
ksort($found);
foreach ($found as $name => $value) {
    line("headers: $name=" . get_debug_type($value) . ' ' . str_replace("\n", '', print_r($value, true)));
}

$returningChannel = new AMQPChannel($connection);
$returningChannel->confirmSelect();
$returned = null;
$returningChannel->setReturnCallback(function (...$arguments) use (&$returned) { $returned = $arguments; return true; });
$outcome = publish(exchange($returningChannel, "$prefix.events"), substr(LARGE, 0, 70000), 'nobody.wants.this', properties('m-return'), AMQP_MANDATORY);
[$code, $text, $from, $key, $m, $body] = $returned;
line("return: code=$code text=$text exchange=$from key=$key " . seen($body) . ' ' . show($m) . " then $outcome");
$returningChannel->close();

publish($default, substr(LARGE, 0, 80000), $queue->getName(), properties('m-nack'));
consume($queue, function (AMQPEnvelope $m) use ($queue) {
    line('nack: redelivered=' . yes($m->isRedelivery()) . ' ' . seen($m->getBody()));
    $m->isRedelivery() ? $queue->ack($m->getDeliveryTag()) : $queue->nack($m->getDeliveryTag(), AMQP_REQUEUE);
    return $m->isRedelivery();
});

publish($default, substr(LARGE, 0, 90000), $queue->getName(), properties('m-get'));
$m = $queue->get();
line('get: redelivered=' . yes($m->isRedelivery()) . ' ' . seen($m->getBody()) . ' ' . show($m));
$queue->ack($m->getDeliveryTag());
line('get: empty=' . yes(!$queue->get()));

$tx = new AMQPChannel($connection);
$tx->startTransaction();
$transactional = exchange($tx);
$transactional->publish(SMALL, $queue->getName(), AMQP_NOPARAM, properties('m-tx-1'));
$transactional->publish(substr(LARGE, 0, 100000), $queue->getName(), AMQP_NOPARAM, properties('m-tx-2'));
line('transaction: before the commit empty=' . yes(!$queue->get()));
$tx->commitTransaction();
for ($i = 0; $i < 2; $i++) {
    $m = $queue->get(AMQP_AUTOACK);
    line("transaction: committed {$m->getMessageId()} " . seen($m->getBody()));
}
$transactional->publish(SMALL, $queue->getName(), AMQP_NOPARAM, properties('m-tx-3'));
$transactional->publish(substr(LARGE, 0, 100000), $queue->getName(), AMQP_NOPARAM, properties('m-tx-4'));
$tx->rollbackTransaction();
line('transaction: rolled back empty=' . yes(!$queue->get()));
$tx->close();

$rpc = new AMQPChannel($connection);
$replies = queue($rpc, 'amq.rabbitmq.reply-to');
$replies->consume(null, AMQP_AUTOACK);
exchange($rpc)->publish('question', $queue->getName(), AMQP_NOPARAM, properties('m-rpc', ['reply_to' => 'amq.rabbitmq.reply-to', 'correlation_id' => 'rpc-1']));
do { // published without a confirm: it may still be on its way
    $question = $queue->get();
} while (!$question);
// Not with publish(): while the extension waits for a confirm, a delivery of another channel is an error to it.
exchange($rpc)->publish("answer to {$question->getBody()}", $question->getReplyTo(), AMQP_NOPARAM, ['correlation_id' => $question->getCorrelationId()]);
$queue->ack($question->getDeliveryTag());
$replies->consume(function ($m) {
    line("rpc: correlation_id={$m->getCorrelationId()} {$m->getBody()}");
    return false;
}, AMQP_JUST_CONSUME);
$rpc->close();

$exclusive = queue($ch, "$prefix.exclusive");
$exclusive->setFlags(AMQP_EXCLUSIVE);
$exclusive->declareQueue();
$other = connect();
refused(new AMQPChannel($other), $exclusive->getName(), 'EXCLUSIVE');
$other->disconnect();
refused(new AMQPChannel($connection), "$prefix.missing", "$prefix.missing");

publish($default, substr(LARGE, 0, 110000), $queue->getName(), properties('m-kept'));
line('ready for restart');
fgets(STDIN);
try {
    $queue->get();
} catch (AMQPException $e) {
    line('lost: ' . ($e->getCode() ?: '-'));
}
fgets(STDIN);
$connection = connect();
$ch = new AMQPChannel($connection);
$ch->confirmSelect();
$queue = queue($ch, "$prefix.q");
$m = $queue->get(AMQP_AUTOACK);
line("restart: kept {$m->getMessageId()} " . seen($m->getBody()));
publish(exchange($ch), substr(LARGE, 0, 120000), $queue->getName(), properties('m-after'));
consume($queue, function (AMQPEnvelope $m) use ($queue) {
    line("restart: consumed {$m->getMessageId()} " . seen($m->getBody()));
    $queue->ack($m->getDeliveryTag());
    return true;
});
$queue->delete();
$connection->disconnect();
line('close: clean');
