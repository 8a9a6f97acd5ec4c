# The client steps with bunny (see ../README.md). Arguments: host:port prefix.
require 'bunny'
require 'timeout'

address, PREFIX = ARGV
host, port = address.split(':')
OPTIONS = { host: host, port: port.to_i, username: 'guest', password: 'guest', automatically_recover: false,
            log_level: Logger::FATAL }.freeze
$stdout.sync = true

SMALL = 'hello bellhop'.b
LARGE = ((0..255).to_a.pack('C*') * 4096)

def same(one, two)
  one.b == two.b ? 'yes' : 'no'
end

def show(properties)
  headers = properties[:headers]
  text = headers.nil? ? '-' : "{#{headers.sort.map { |k, v| "#{k}=#{v}" }.join(',')}}"
  "content_type=#{properties[:content_type]} headers=#{text} delivery_mode=#{properties[:delivery_mode]} " \
    "message_id=#{properties[:message_id]} correlation_id=#{properties[:correlation_id]} type=#{properties[:type]}"
end

def properties(message_id, more = {})
  { content_type: 'text/plain', persistent: true, message_id: message_id }.merge(more)
end

def take(queue)
  Timeout.timeout(20) { queue.pop }
end

connection = Bunny.new(OPTIONS)
connection.start
puts 'connected'

ch = connection.create_channel
exchange = ch.topic("#{PREFIX}.events", durable: true)
queue = ch.queue("#{PREFIX}.q", durable: true)
queue.bind(exchange, routing_key: 'order.#')
ch.confirm_select
puts 'declared'

[['small', SMALL, { headers: { 'region' => 'eu', 'count' => 7 } }], ['large', LARGE, {}]].each do |word, body, more|
  exchange.publish(body.dup, properties("m-#{word}", more.merge(routing_key: "order.#{word}", correlation_id: 'c', type: 'order')))
  puts "published #{word} size=#{body.bytesize} #{ch.wait_for_confirms ? 'ack' : 'nack'}"
end

ch.prefetch(10)
deliveries = Queue.new
consumer = queue.subscribe(manual_ack: true) do |info, props, body|
  ch.ack(info.delivery_tag)
  deliveries << [info, props, body]
end
2.times do
  info, props, body = take(deliveries)
  expected = info.routing_key == 'order.small' ? SMALL : LARGE
  puts "consumed key=#{info.routing_key} redelivered=#{info.redelivered} size=#{body.bytesize} same=#{same(body, expected)} #{show(props)}"
end
consumer.cancel

returning = connection.create_channel
returning.confirm_select
returns = Queue.new
same_exchange = returning.topic("#{PREFIX}.events", durable: true)
same_exchange.on_return { |info, props, body| returns << [info, props, body] }
same_exchange.publish(LARGE[0, 70_000], properties('m-return', routing_key: 'nobody.wants.this', mandatory: true, headers: { 'a' => 1 }))
outcome = returning.wait_for_confirms ? 'ack' : 'nack'
info, props, body = take(returns)
puts "return code=#{info.reply_code} text=#{info.reply_text} exchange=#{info.exchange == exchange.name} key=#{info.routing_key} " \
     "size=#{body.bytesize} same=#{same(body, LARGE[0, 70_000])} #{show(props)} then #{outcome}"
returning.close

default = ch.default_exchange
default.publish('to be got', properties('m-get', routing_key: queue.name))
ch.wait_for_confirms
info, props, body = queue.pop(manual_ack: true)
puts "get size=#{body.bytesize} same=#{same(body, 'to be got')} redelivered=#{info.redelivered} #{show(props)}"
ch.nack(info.delivery_tag, false, true)
info, _props, body = queue.pop(manual_ack: true)
puts "get size=#{body.bytesize} same=#{same(body, 'to be got')} redelivered=#{info.redelivered}"
ch.ack(info.delivery_tag)
puts "get empty=#{queue.pop[0].nil? ? 'yes' : 'no'}"

exclusive = ch.queue('', exclusive: true)
puts "exclusive named=#{exclusive.name.start_with?('amq.gen-') ? 'yes' : 'no'}"
other = Bunny.new(OPTIONS)
other.start
begin
  other.create_channel.queue(exclusive.name, passive: true)
  puts 'exclusive: the other connection may use it'
rescue Bunny::ResourceLocked => e
  puts "exclusive other connection: #{e.channel_close.reply_code}"
end
other.close

tx = connection.create_channel
tx.tx_select
count = -> { ch.queue_declare(queue.name, passive: true).message_count }
tx.default_exchange.publish(SMALL, properties('m-tx-1', routing_key: queue.name))
tx.default_exchange.publish(LARGE[0, 100_000], properties('m-tx-2', routing_key: queue.name))
puts "tx before commit count=#{count.call}"
tx.tx_commit
puts "tx committed count=#{count.call}"
[SMALL, LARGE[0, 100_000]].each do |expected|
  _info, props, body = queue.pop
  puts "tx got size=#{body.bytesize} same=#{same(body, expected)} message_id=#{props[:message_id]}"
end
tx.default_exchange.publish(SMALL, properties('m-tx-3', routing_key: queue.name))
tx.default_exchange.publish(LARGE[0, 100_000], properties('m-tx-4', routing_key: queue.name))
tx.tx_rollback
puts "tx rolled back count=#{count.call}"
tx.close

rpc = connection.create_channel
replies = Queue.new
rpc.basic_consume('amq.rabbitmq.reply-to', '', true) { |_info, p, b| replies << [p, b] }
rpc.default_exchange.publish('question', properties('m-rpc', routing_key: queue.name, reply_to: 'amq.rabbitmq.reply-to',
                                                             correlation_id: 'rpc-1'))
question = nil
Timeout.timeout(20) { question = queue.pop(manual_ack: true) until question && question[0] }
info, props, body = question
default.publish("answer to #{body}", routing_key: props[:reply_to], correlation_id: props[:correlation_id])
ch.ack(info.delivery_tag)
props, body = take(replies)
puts "rpc correlation_id=#{props[:correlation_id]} reply=#{body}"
rpc.close

broken = connection.create_channel
begin
  broken.queue("#{PREFIX}.missing", passive: true)
rescue Bunny::NotFound => e
  puts "missing queue: #{e.channel_close.reply_code} #{e.channel_close.reply_text.sub(PREFIX, 'PREFIX')}"
end
puts "the first channel is #{ch.open? ? 'open' : 'closed'}, count=#{count.call}"

queue.delete
connection.close
puts 'closed'
