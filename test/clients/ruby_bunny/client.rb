# The client steps with bunny (test/clients/README.md, "The tests"). Arguments: an address (host:port, or a Unix socket's path), a prefix, a queue type.
require 'bunny'
require 'digest'
require 'timeout'
require_relative 'unix_session'

ADDRESS, PREFIX, QUEUE_TYPE = ARGV
EXCHANGE = "#{PREFIX}.events".freeze
QUEUE = "#{PREFIX}.q".freeze
$stdout.sync = true

SMALL = 'hello bellhop'.b
BINARY = "\xAC\x01\x01".b + (0..255).to_a.pack('C*') # looks like a claim check, and is none
LARGE = Array.new(655_360) { |i| format('%08d', i) }.join.b # 5 MiB

def connect(more = {})
  options = { username: 'guest', password: 'guest', automatically_recover: false, log_level: Logger::FATAL,
              network_recovery_interval: 0.2 }.merge(more)
  if ADDRESS.start_with?('/')
    UnixSession.new(ADDRESS, options).start
  else
    host, port = ADDRESS.split(':')
    Bunny.new(options.merge(host: host, port: port.to_i)).start
  end
end

def seen(body)
  "bytes=#{body.bytesize} md5=#{Digest::MD5.hexdigest(body)}"
end

def yes(value)
  value ? 'yes' : 'no'
end

def show(p)
  "content_type=#{p[:content_type]} delivery_mode=#{p[:delivery_mode]} message_id=#{p[:message_id]} correlation_id=#{p[:correlation_id]} type=#{p[:type]}"
end

def properties(message_id, more = {})
  { content_type: 'text/plain', persistent: true, message_id: message_id }.merge(more)
end

# A publish in confirm mode, and its outcome. The body is copied because bunny changes its encoding.
def publish(channel, exchange, key, body, options)
  channel.basic_publish(body.dup, exchange, key, options)
  channel.wait_for_confirms ? 'ack' : 'nack'
end

# Hands each delivery over in this thread, until the block says that it has enough.
def consume(channel)
  deliveries = Queue.new
  consumer = channel.basic_consume(QUEUE, channel.generate_consumer_tag) { |*delivery| deliveries << delivery }
  Timeout.timeout(20) { nil until yield(*deliveries.pop) }
  channel.basic_cancel(consumer.consumer_tag)
end

connection = connect(automatically_recover: true)
puts 'connect: open'
puts "limits: channel_max=#{connection.channel_max} frame_max=#{connection.frame_max}"

ch = connection.create_channel
ch.topic(EXCHANGE, durable: true)
queue = ch.queue(QUEUE, durable: true, arguments: { 'x-queue-type' => QUEUE_TYPE })
queue.bind(EXCHANGE, routing_key: 'order.#')
ch.confirm_select
puts "declare: #{queue.name} messages=#{queue.message_count} consumers=#{queue.consumer_count}"

[['small', SMALL], ['binary', BINARY], ['large', LARGE]].each do |word, body|
  outcome = publish(ch, EXCHANGE, "order.#{word}", body, properties("m-#{word}", correlation_id: 'c', type: 'order'))
  puts "publish: #{word} #{seen(body)} #{outcome}"
end

ch.prefetch(2)
consume(ch) do |info, p, body|
  puts "consume: key=#{info.routing_key} tag=#{info.delivery_tag.to_i} redelivered=#{yes(info.redelivered)} #{seen(body)} #{show(p)}"
  ch.ack(info.delivery_tag)
  info.routing_key == 'order.large'
end

publish(ch, '', QUEUE, SMALL, {})
_info, p, = ch.basic_get(QUEUE, manual_ack: false)
puts "bare: delivery_mode=#{p[:delivery_mode] || '-'} message_id=#{p[:message_id] || '-'}"

headers = { 'string' => 'grüß', 'true' => true, 'int' => -5, 'big' => 2**40, 'double' => 2.5, 'time' => Time.at(1_715_947_200),
            'table' => { 'a' => { 'b' => 'c' } }, 'array' => [1, 'two', { 'three' => 3 }], 'void' => nil }
publish(ch, EXCHANGE, 'order.headers', SMALL, properties('m-headers', headers: headers))
_info, p, = ch.basic_get(QUEUE, manual_ack: false)
p[:headers].sort.each { |name, value| puts "headers: #{name}=#{value.class} #{value.inspect}" }

returning = connection.create_channel
returning.confirm_select
returns = Queue.new
returning.topic(EXCHANGE, durable: true).on_return { |*returned| returns << returned }
outcome = publish(returning, EXCHANGE, 'nobody.wants.this', LARGE[0, 70_000], properties('m-return', mandatory: true))
info, p, body = Timeout.timeout(20) { returns.pop }
puts "return: code=#{info.reply_code} text=#{info.reply_text} exchange=#{info.exchange} key=#{info.routing_key} #{seen(body)} #{show(p)} then #{outcome}"
returning.close

publish(ch, '', QUEUE, LARGE[0, 80_000], properties('m-nack'))
consume(ch) do |info, _p, body|
  puts "nack: redelivered=#{yes(info.redelivered)} #{seen(body)}"
  info.redelivered ? ch.ack(info.delivery_tag) : ch.nack(info.delivery_tag, false, true)
  info.redelivered
end

publish(ch, '', QUEUE, LARGE[0, 90_000], properties('m-get'))
info, p, body = ch.basic_get(QUEUE, manual_ack: true)
puts "get: redelivered=#{yes(info.redelivered)} left=#{info.message_count} #{seen(body)} #{show(p)}"
ch.ack(info.delivery_tag)
puts "get: empty=#{yes(ch.basic_get(QUEUE, manual_ack: true)[0].nil?)}"

tx = connection.create_channel
tx.tx_select
tx.basic_publish(SMALL.dup, '', QUEUE, properties('m-tx-1'))
tx.basic_publish(LARGE[0, 100_000], '', QUEUE, properties('m-tx-2'))
puts "transaction: before the commit empty=#{yes(ch.basic_get(QUEUE, manual_ack: true)[0].nil?)}"
tx.tx_commit
2.times do
  _info, p, body = ch.basic_get(QUEUE, manual_ack: false)
  puts "transaction: committed #{p[:message_id]} #{seen(body)}"
end
tx.basic_publish(SMALL.dup, '', QUEUE, properties('m-tx-3'))
tx.basic_publish(LARGE[0, 100_000], '', QUEUE, properties('m-tx-4'))
tx.tx_rollback
puts "transaction: rolled back empty=#{yes(ch.basic_get(QUEUE, manual_ack: true)[0].nil?)}"
tx.close

rpc = connection.create_channel
replies = Queue.new
rpc.basic_consume('amq.rabbitmq.reply-to', '', true) { |_info, p, body| replies << [p, body] }
rpc.basic_publish('question', '', QUEUE, properties('m-rpc', reply_to: 'amq.rabbitmq.reply-to', correlation_id: 'rpc-1'))
question = nil
Timeout.timeout(20) { question = ch.basic_get(QUEUE, manual_ack: true) until question && question[0] }
info, p, body = question
ch.basic_publish("answer to #{body}", '', p[:reply_to], correlation_id: p[:correlation_id])
ch.ack(info.delivery_tag)
p, body = Timeout.timeout(20) { replies.pop }
puts "rpc: correlation_id=#{p[:correlation_id]} #{body}"
rpc.close

exclusive = ch.queue('', exclusive: true)
other = connect
begin
  other.create_channel.queue(exclusive.name, passive: true)
rescue Bunny::ResourceLocked => e
  puts "refused: #{e.channel_close.reply_code} #{e.channel_close.reply_text.sub(exclusive.name, 'EXCLUSIVE')}"
end
other.close
begin
  connection.create_channel.queue("#{PREFIX}.missing", passive: true)
rescue Bunny::NotFound => e
  puts "refused: #{e.channel_close.reply_code} #{e.channel_close.reply_text}; the first channel is #{ch.open? ? 'open' : 'closed'}"
end

# bunny reconnects by itself: the connection, the channel and its consumer are the same objects afterwards.
publish(ch, '', QUEUE, LARGE[0, 110_000], properties('m-kept'))
lost = Queue.new
recovered = Queue.new
connection.before_recovery_attempt_starts { lost << true }
connection.after_recovery_completed { recovered << true }
puts 'ready for restart'
$stdin.gets
Timeout.timeout(20) { lost.pop }
puts 'lost: -'
$stdin.gets
Timeout.timeout(20) { recovered.pop }
_info, p, body = ch.basic_get(QUEUE, manual_ack: false)
puts "restart: kept #{p[:message_id]} #{seen(body)}"
publish(ch, '', QUEUE, LARGE[0, 120_000], properties('m-after'))
consume(ch) do |info, p, body|
  puts "restart: consumed #{p[:message_id]} #{seen(body)}"
  ch.ack(info.delivery_tag)
  true
end

queue.delete
connection.close
puts 'close: clean'
