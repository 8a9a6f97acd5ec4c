# The client steps with AnyEvent::RabbitMQ (test/clients/README.md, "The tests"). Arguments: an address (host:port, or a Unix socket's path), a prefix, a queue type.
use strict;
use warnings;

use AnyEvent;
use AnyEvent::RabbitMQ;
use Digest::MD5 qw(md5_hex);

my ($address, $prefix, $queue_type) = @ARGV;
my ($exchange, $queue) = ("$prefix.events", "$prefix.q");
$| = 1;

my $SMALL = 'hello bellhop';
my $BINARY = "\xac\x01\x01" . join '', map { chr } 0 .. 255;         # looks like a claim check, and is none
my $LARGE = join '', map { sprintf '%08d', $_ } 0 .. 655359;         # 5 MiB

# Calls a method of the library with callbacks, and waits for the outcome.
sub call {
    my ($object, $method, %arguments) = @_;
    my $done = AnyEvent->condvar;
    $object->$method(%arguments, on_success => sub { $done->send(@_) }, on_failure => sub { $done->croak("$method failed") });
    my $late = AnyEvent->timer(after => 20, cb => sub { $done->croak("no answer to $method within 20 s") });
    return scalar $done->recv;
}

# AnyEvent's own notation for a Unix socket is the host "unix/" with the path as the port.
sub connect_to_broker {
    my ($on_close) = @_;
    my ($host, $port) = $address =~ m{^/} ? ('unix/', $address) : split /:/, $address;
    return call(AnyEvent::RabbitMQ->new->load_xml_spec, 'connect', host => $host, port => $port, user => 'guest', pass => 'guest', vhost => '/',
        on_close => $on_close // sub { });
}

sub seen { my ($body) = @_; return 'bytes=' . length($body) . ' md5=' . md5_hex($body) }
sub yes { return $_[0] ? 'yes' : 'no' }

sub show {
    my ($header) = @_;
    return join ' ', map { "$_=" . ($header->$_ // '-') } qw(content_type delivery_mode message_id correlation_id type);
}

sub properties { my ($id, %more) = @_; return { content_type => 'text/plain', delivery_mode => 2, message_id => $id, %more } }

# A publish in confirm mode, and its outcome.
sub publish {
    my ($ch, %arguments) = @_;
    my $outcome = AnyEvent->condvar;
    $ch->publish(%arguments, on_ack => sub { $outcome->send('ack') }, on_nack => sub { $outcome->send('nack') });
    return $outcome->recv;
}

sub send_to_queue { my ($ch, $id, $body) = @_; return publish($ch, exchange => '', routing_key => $queue, header => properties($id), body => $body) }

# Hands each delivery over, until that is enough.
sub consume {
    my ($ch, $enough) = @_;
    my $done = AnyEvent->condvar;
    call($ch, 'consume', queue => $queue, consumer_tag => 'consumer', no_ack => 0, on_consume => sub { $done->send if $enough->(@_) });
    my $late = AnyEvent->timer(after => 20, cb => sub { $done->croak('no delivery within 20 s') });
    $done->recv;
    call($ch, 'cancel', consumer_tag => 'consumer');
}

sub get { my ($ch, $no_ack) = @_; return call($ch, 'get', queue => $queue, no_ack => $no_ack) }
sub is_empty { my ($ch) = @_; return yes(get($ch, 0)->{empty}) }

# A passive declare that the broker refuses by closing the channel.
sub refused {
    my ($connection, $name, $shown_as) = @_;
    my $closed = AnyEvent->condvar;
    my $ch = call($connection, 'open_channel', on_close => sub { $closed->send($_[0]->method_frame) });
    $ch->declare_queue(queue => $name, passive => 1, on_success => sub { $closed->croak('not refused') }, on_failure => sub { });
    my $close = $closed->recv;
    print 'refused: ', $close->reply_code, ' ', $close->reply_text =~ s/\Q$name/$shown_as/r, "\n";
}

my $lost = AnyEvent->condvar;
my $connection = connect_to_broker(sub { my ($why) = @_; $lost->send(ref $why ? $why->method_frame->reply_code : '-') });
print "connect: open\n";
print "limits: channel_max=$connection->{_channel_max} frame_max=@{[ $connection->{_body_max} + 8 ]}\n";

my $ch = call($connection, 'open_channel');
call($ch, 'declare_exchange', exchange => $exchange, type => 'topic', durable => 1);
my $declared = call($ch, 'declare_queue', queue => $queue, durable => 1, auto_delete => 0, arguments => { 'x-queue-type' => $queue_type })->method_frame;
call($ch, 'bind_queue', queue => $queue, exchange => $exchange, routing_key => 'order.#');
call($ch, 'confirm');
print 'declare: ', $declared->queue, ' messages=', $declared->message_count, ' consumers=', $declared->consumer_count, "\n";

for (['small', $SMALL], ['binary', $BINARY], ['large', $LARGE]) {
    my ($word, $body) = @$_;
    my $outcome = publish($ch, exchange => $exchange, routing_key => "order.$word", header => properties("m-$word", correlation_id => 'c', type => 'order'),
        body => $body);
    print "publish: $word ", seen($body), " $outcome\n";
}

call($ch, 'qos', prefetch_count => 2);
consume($ch, sub {
    my ($m) = @_;
    my $d = $m->{deliver}->method_frame;
    print 'consume: key=', $d->routing_key, ' tag=', $d->delivery_tag, ' redelivered=', yes($d->redelivered), ' ', seen($m->{body}->payload), ' ',
        show($m->{header}), "\n";
    $ch->ack(delivery_tag => $d->delivery_tag);
    return $d->routing_key eq 'order.large';
});

# The library writes a delivery mode of its own when it is given none.
publish($ch, exchange => '', routing_key => $queue, header => { delivery_mode => undef }, body => $SMALL);
my $m = get($ch, 1);
print 'bare: delivery_mode=', $m->{header}->delivery_mode // '-', ' message_id=', $m->{header}->message_id // '-', "\n";

# Its reader knows no 64-bit integers, no floats, no bytes, and stops at a void.
publish($ch, exchange => $exchange, routing_key => 'order.headers', body => $SMALL, header => properties('m-headers', headers => {
    string => "gr\xc3\xbc\xc3\x9f", true => Net::AMQP::Value::Boolean->new(1), int => Net::AMQP::Value::Integer->new(-70000),
    time => Net::AMQP::Value::Timestamp->new(1715947200), table => { a => { b => 'c' } }, array => [1, 'two', { three => 3 }] }));
my $headers = get($ch, 1)->{header}->headers;
for my $name (sort keys %$headers) {
    my $value = $headers->{$name};
    my $text = $name eq 'table' ? $value->{a}{b} : $name eq 'array' ? join('|', @$value[0, 1], $value->[2]{three}) : $value;
    print "headers: $name=", ref $value || 'scalar', " $text\n";
}

my $returning = call($connection, 'open_channel');
call($returning, 'confirm');
my $returned = AnyEvent->condvar;
my $outcome = publish($returning, exchange => $exchange, routing_key => 'nobody.wants.this', mandatory => 1, header => properties('m-return'),
    body => substr($LARGE, 0, 70000), on_return => sub { $returned->send(@_) });
my $r = $returned->recv->method_frame;    # the library hands over the method, not the message
print 'return: code=', $r->reply_code, ' text=', $r->reply_text, ' exchange=', $r->exchange, ' key=', $r->routing_key, " then $outcome\n";
call($returning, 'close');

send_to_queue($ch, 'm-nack', substr $LARGE, 0, 80000);
consume($ch, sub {
    my ($m) = @_;
    my $d = $m->{deliver}->method_frame;
    print 'nack: redelivered=', yes($d->redelivered), ' ', seen($m->{body}->payload), "\n";
    # The library has basic.reject; basic.nack it has not.
    $d->redelivered ? $ch->ack(delivery_tag => $d->delivery_tag) : $ch->reject(delivery_tag => $d->delivery_tag, requeue => 1);
    return $d->redelivered;
});

send_to_queue($ch, 'm-get', substr $LARGE, 0, 90000);
$m = get($ch, 0);
my $ok = $m->{ok}->method_frame;
print 'get: redelivered=', yes($ok->redelivered), ' left=', $ok->message_count, ' ', seen($m->{body}->payload), ' ', show($m->{header}), "\n";
$ch->ack(delivery_tag => $ok->delivery_tag);
print 'get: empty=', is_empty($ch), "\n";

my $tx = call($connection, 'open_channel');
call($tx, 'select_tx');
sub in_transaction { my ($id, $body) = @_; $tx->publish(exchange => '', routing_key => $queue, header => properties($id), body => $body) }
in_transaction('m-tx-1', $SMALL);
in_transaction('m-tx-2', substr $LARGE, 0, 100000);
print 'transaction: before the commit empty=', is_empty($ch), "\n";
call($tx, 'commit_tx');
for (1, 2) {
    $m = get($ch, 1);
    print 'transaction: committed ', $m->{header}->message_id, ' ', seen($m->{body}->payload), "\n";
}
in_transaction('m-tx-3', $SMALL);
in_transaction('m-tx-4', substr $LARGE, 0, 100000);
call($tx, 'rollback_tx');
print 'transaction: rolled back empty=', is_empty($ch), "\n";
call($tx, 'close');

my $rpc = call($connection, 'open_channel');
my $reply = AnyEvent->condvar;
call($rpc, 'consume', queue => 'amq.rabbitmq.reply-to', no_ack => 1, on_consume => sub { $reply->send(@_) });
$rpc->publish(exchange => '', routing_key => $queue, header => properties('m-rpc', reply_to => 'amq.rabbitmq.reply-to', correlation_id => 'rpc-1'),
    body => 'question');
my $question;
do { $question = get($ch, 0) } while $question->{empty};    # published without a confirm: it may still be on its way
publish($ch, exchange => '', routing_key => $question->{header}->reply_to, header => { correlation_id => $question->{header}->correlation_id },
    body => 'answer to ' . $question->{body}->payload);
$ch->ack(delivery_tag => $question->{ok}->method_frame->delivery_tag);
$m = $reply->recv;
print 'rpc: correlation_id=', $m->{header}->correlation_id, ' ', $m->{body}->payload, "\n";
call($rpc, 'close');

my $exclusive = call($ch, 'declare_queue', queue => '', exclusive => 1)->method_frame->queue;
my $other = connect_to_broker();
refused($other, $exclusive, 'EXCLUSIVE');
call($other, 'close');
refused($connection, "$prefix.missing", "$prefix.missing");

send_to_queue($ch, 'm-kept', substr $LARGE, 0, 110000);
print "ready for restart\n";
<STDIN>;
print 'lost: ', $lost->recv, "\n";
<STDIN>;
$connection = connect_to_broker();
$ch = call($connection, 'open_channel');
call($ch, 'confirm');
$m = get($ch, 1);
print 'restart: kept ', $m->{header}->message_id, ' ', seen($m->{body}->payload), "\n";
send_to_queue($ch, 'm-after', substr $LARGE, 0, 120000);
consume($ch, sub {
    my ($m) = @_;
    print 'restart: consumed ', $m->{header}->message_id, ' ', seen($m->{body}->payload), "\n";
    $ch->ack(delivery_tag => $m->{deliver}->method_frame->delivery_tag);
    return 1;
});
call($ch, 'delete_queue', queue => $queue);
call($connection, 'close');
print "close: clean\n";
