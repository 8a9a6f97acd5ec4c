# A 50 MiB body with a heartbeat of one second, while a second channel is busy. Arguments: host:port prefix.
# The two channels share one connection, so the large body must neither starve the heartbeat nor be mixed with the other's frames.
require 'bunny'
require 'timeout'

address, PREFIX = ARGV
host, port = address.split(':')
$stdout.sync = true

BODY = Random.new(42).bytes(50 << 20)
BUSY = 2000

connection = Bunny.new(host: host, port: port.to_i, username: 'guest', password: 'guest', automatically_recover: false,
                       heartbeat: 1, log_level: Logger::FATAL, continuation_timeout: 60_000)
connection.start
puts 'connected'

large = connection.create_channel
busy = connection.create_channel
large_queue = large.queue("#{PREFIX}.large", durable: true)
busy_queue = busy.queue("#{PREFIX}.busy", durable: true)

numbers = Queue.new
busy_queue.subscribe { |_info, _props, body| numbers << body.to_i }
bodies = Queue.new
large_queue.subscribe(manual_ack: true) do |info, _props, body|
  large.ack(info.delivery_tag)
  bodies << body
end

publisher = connection.create_channel
publishing = Thread.new { BUSY.times { |i| publisher.default_exchange.publish(i.to_s, routing_key: busy_queue.name); sleep 0.002 } }

sender = connection.create_channel
sender.confirm_select
sender.default_exchange.publish(BODY, routing_key: large_queue.name)
puts "published large size=#{BODY.bytesize} #{sender.wait_for_confirms ? 'ack' : 'nack'}"

body = Timeout.timeout(120) { bodies.pop }
puts "consumed large size=#{body.bytesize} same=#{body.b == BODY.b ? 'yes' : 'no'}"
publishing.join
seen = Timeout.timeout(60) { Array.new(BUSY) { numbers.pop } }
puts "busy channel: #{seen.size} in order=#{seen == (0...BUSY).to_a ? 'yes' : 'no'}"
puts "connection #{connection.open? ? 'open' : 'closed'}"

large_queue.delete
busy_queue.delete
connection.close
puts 'closed'
