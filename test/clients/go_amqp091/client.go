// The client steps with amqp091-go (test/clients/README.md, "The tests"). Arguments: an address (host:port, or a Unix socket's path), a prefix, a queue type.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"fmt"
	"log"
	"net"
	"os"
	"sort"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

var address, prefix, queueType = os.Args[1], os.Args[2], os.Args[3]
var exchange, queue = prefix + ".events", prefix + ".q"
var stdin = bufio.NewReader(os.Stdin)
var ctx = context.Background()

var small = []byte("hello bellhop")
var binary, large []byte // looks like a claim check, and is none; 5 MiB

func must[T any](value T, err error) T {
	if err != nil {
		log.Panic(err)
	}
	return value
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

func connect() *amqp.Connection {
	config := amqp.Config{Locale: "en_US", Heartbeat: 10 * time.Second}
	if strings.HasPrefix(address, "/") {
		config.Dial = func(string, string) (net.Conn, error) { return net.Dial("unix", address) }
		return must(amqp.DialConfig("amqp://guest:guest@localhost/", config))
	}
	return must(amqp.DialConfig("amqp://guest:guest@"+address+"/", config))
}

func seen(body []byte) string {
	return fmt.Sprintf("bytes=%d md5=%x", len(body), md5.Sum(body))
}

func yes(value bool) string {
	if value {
		return "yes"
	}
	return "no"
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func show(contentType string, mode uint8, id, correlation, kind string) string {
	return fmt.Sprintf("content_type=%s delivery_mode=%d message_id=%s correlation_id=%s type=%s", contentType, mode, id, correlation, kind)
}

func showDelivery(d amqp.Delivery) string {
	return show(d.ContentType, d.DeliveryMode, d.MessageId, d.CorrelationId, d.Type)
}

func message(body []byte, id string) amqp.Publishing {
	return amqp.Publishing{ContentType: "text/plain", DeliveryMode: amqp.Persistent, MessageId: id, Body: body}
}

// Where each channel's confirms come. The library's own DeferredConfirmation misses one that comes before it was noted.
var confirms = map[*amqp.Channel]chan amqp.Confirmation{}

// A publish in confirm mode, and its outcome.
func publish(ch *amqp.Channel, exchange, key string, mandatory bool, m amqp.Publishing) string {
	if confirms[ch] == nil {
		confirms[ch] = ch.NotifyPublish(make(chan amqp.Confirmation, 100))
	}
	tag := ch.GetNextPublishSeqNo()
	check(ch.PublishWithContext(ctx, exchange, key, mandatory, false, m))
	for {
		select {
		case confirmation := <-confirms[ch]:
			if confirmation.DeliveryTag != tag {
				continue
			}
			if confirmation.Ack {
				return "ack"
			}
			return "nack"
		case <-time.After(20 * time.Second):
			log.Panic("no confirm within 20 s")
		}
	}
}

// Hands each delivery to enough, until that is true.
func consume(ch *amqp.Channel, enough func(amqp.Delivery) bool) {
	deliveries := must(ch.Consume(queue, "consumer", false, false, false, false, nil))
	for {
		select {
		case d := <-deliveries:
			if enough(d) {
				check(ch.Cancel("consumer", false))
				return
			}
		case <-time.After(20 * time.Second):
			log.Panic("no delivery within 20 s")
		}
	}
}

func get(ch *amqp.Channel, autoAck bool) amqp.Delivery {
	d, ok, err := ch.Get(queue, autoAck)
	check(err)
	if !ok {
		log.Panic("basic.get: empty")
	}
	return d
}

func empty(ch *amqp.Channel) string {
	_, ok, err := ch.Get(queue, false)
	check(err)
	return yes(!ok)
}

func headers(ch *amqp.Channel) {
	m := message(small, "m-headers")
	m.Headers = amqp.Table{
		"string": "grüß", "bytes": []byte{0, 255}, "true": true, "byte": int8(-7), "ubyte": byte(200), "short": int16(-300), "int": int32(-70000),
		"long": int64(1) << 40, "float": float32(0.5), "double": 2.25, "decimal": amqp.Decimal{Scale: 2, Value: 314},
		"time": time.Unix(1715947200, 0), "table": amqp.Table{"a": amqp.Table{"b": "c"}}, "array": []interface{}{int32(1), "two", amqp.Table{"three": int32(3)}},
		"void": nil,
	}
	publish(ch, exchange, "order.headers", false, m)
	found := get(ch, true).Headers
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		value := found[name]
		if when, ok := value.(time.Time); ok {
			value = when.UTC()
		}
		fmt.Printf("headers: %s=%T %v\n", name, value, value)
	}
}

func transaction(connection *amqp.Connection, ch *amqp.Channel) {
	tx := must(connection.Channel())
	check(tx.Tx())
	send := func(body []byte, id string) { check(tx.PublishWithContext(ctx, "", queue, false, false, message(body, id))) }
	send(small, "m-tx-1")
	send(large[:100000], "m-tx-2")
	fmt.Printf("transaction: before the commit empty=%s\n", empty(ch))
	check(tx.TxCommit())
	for i := 0; i < 2; i++ {
		d := get(ch, true)
		fmt.Printf("transaction: committed %s %s\n", d.MessageId, seen(d.Body))
	}
	send(small, "m-tx-3")
	send(large[:100000], "m-tx-4")
	check(tx.TxRollback())
	fmt.Printf("transaction: rolled back empty=%s\n", empty(ch))
	check(tx.Close())
}

func rpc(connection *amqp.Connection, ch *amqp.Channel) {
	asking := must(connection.Channel())
	replies := must(asking.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil))
	m := message([]byte("question"), "m-rpc")
	m.ReplyTo, m.CorrelationId = "amq.rabbitmq.reply-to", "rpc-1"
	check(asking.PublishWithContext(ctx, "", queue, false, false, m))
	question, ok, err := ch.Get(queue, false)
	for ; !ok; question, ok, err = ch.Get(queue, false) { // published without a confirm: it may still be on its way
		check(err)
	}
	answer := amqp.Publishing{CorrelationId: question.CorrelationId, Body: append([]byte("answer to "), question.Body...)}
	publish(ch, "", question.ReplyTo, false, answer)
	check(question.Ack(false))
	select {
	case d := <-replies:
		fmt.Printf("rpc: correlation_id=%s %s\n", d.CorrelationId, d.Body)
	case <-time.After(20 * time.Second):
		log.Panic("no reply within 20 s")
	}
	check(asking.Close())
}

func refused(connection *amqp.Connection, name, shownAs string) {
	ch := must(connection.Channel())
	_, err := ch.QueueDeclarePassive(name, false, false, false, false, nil)
	refusal := err.(*amqp.Error)
	fmt.Printf("refused: %d %s\n", refusal.Code, strings.Replace(refusal.Reason, name, shownAs, 1))
}

// amqp091-go does not reconnect by itself: a program does it when NotifyClose says so.
func restart(connection *amqp.Connection) (*amqp.Connection, *amqp.Channel) {
	closed := connection.NotifyClose(make(chan *amqp.Error, 1))
	fmt.Println("ready for restart")
	must(stdin.ReadString('\n'))
	if reason := <-closed; reason != nil && reason.Server {
		fmt.Printf("lost: %d\n", reason.Code)
	} else {
		fmt.Println("lost: -")
	}
	must(stdin.ReadString('\n'))
	connection = connect()
	ch := must(connection.Channel())
	check(ch.Confirm(false))
	d := get(ch, true)
	fmt.Printf("restart: kept %s %s\n", d.MessageId, seen(d.Body))
	publish(ch, "", queue, false, message(large[:120000], "m-after"))
	consume(ch, func(d amqp.Delivery) bool {
		fmt.Printf("restart: consumed %s %s\n", d.MessageId, seen(d.Body))
		check(d.Ack(false))
		return true
	})
	return connection, ch
}

func main() {
	binary = []byte{0xac, 1, 1}
	for i := 0; i < 256; i++ {
		binary = append(binary, byte(i))
	}
	var text bytes.Buffer
	for i := 0; i < 655360; i++ {
		fmt.Fprintf(&text, "%08d", i)
	}
	large = text.Bytes()

	connection := connect()
	fmt.Println("connect: open")
	fmt.Printf("limits: channel_max=%d frame_max=%d\n", connection.Config.ChannelMax, connection.Config.FrameSize)

	ch := must(connection.Channel())
	check(ch.ExchangeDeclare(exchange, "topic", true, false, false, false, nil))
	declared := must(ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-queue-type": queueType}))
	check(ch.QueueBind(queue, "order.#", exchange, false, nil))
	check(ch.Confirm(false))
	fmt.Printf("declare: %s messages=%d consumers=%d\n", declared.Name, declared.Messages, declared.Consumers)

	for _, order := range []struct {
		word string
		body []byte
	}{{"small", small}, {"binary", binary}, {"large", large}} {
		m := message(order.body, "m-"+order.word)
		m.CorrelationId, m.Type = "c", "order"
		fmt.Printf("publish: %s %s %s\n", order.word, seen(order.body), publish(ch, exchange, "order."+order.word, false, m))
	}

	check(ch.Qos(2, 0, false))
	consume(ch, func(d amqp.Delivery) bool {
		fmt.Printf("consume: key=%s tag=%d redelivered=%s %s %s\n", d.RoutingKey, d.DeliveryTag, yes(d.Redelivered), seen(d.Body), showDelivery(d))
		check(d.Ack(false))
		return d.RoutingKey == "order.large"
	})

	publish(ch, "", queue, false, amqp.Publishing{Body: small})
	d := get(ch, true)
	fmt.Printf("bare: delivery_mode=%s message_id=%s\n", strings.Replace(fmt.Sprint(d.DeliveryMode), "0", "-", 1), orDash(d.MessageId))

	headers(ch)

	returning := must(connection.Channel())
	check(returning.Confirm(false))
	returns := returning.NotifyReturn(make(chan amqp.Return, 1))
	outcome := publish(returning, exchange, "nobody.wants.this", true, message(large[:70000], "m-return"))
	r := <-returns
	fmt.Printf("return: code=%d text=%s exchange=%s key=%s %s %s then %s\n", r.ReplyCode, r.ReplyText, r.Exchange, r.RoutingKey, seen(r.Body),
		show(r.ContentType, r.DeliveryMode, r.MessageId, r.CorrelationId, r.Type), outcome)
	check(returning.Close())

	publish(ch, "", queue, false, message(large[:80000], "m-nack"))
	consume(ch, func(d amqp.Delivery) bool {
		fmt.Printf("nack: redelivered=%s %s\n", yes(d.Redelivered), seen(d.Body))
		if d.Redelivered {
			check(d.Ack(false))
		} else {
			check(d.Nack(false, true))
		}
		return d.Redelivered
	})

	publish(ch, "", queue, false, message(large[:90000], "m-get"))
	d = get(ch, false)
	fmt.Printf("get: redelivered=%s left=%d %s %s\n", yes(d.Redelivered), d.MessageCount, seen(d.Body), showDelivery(d))
	check(d.Ack(false))
	fmt.Printf("get: empty=%s\n", empty(ch))

	transaction(connection, ch)
	rpc(connection, ch)

	exclusive := must(ch.QueueDeclare("", false, false, true, false, nil)).Name
	other := connect()
	refused(other, exclusive, "EXCLUSIVE")
	check(other.Close())
	refused(connection, prefix+".missing", prefix+".missing")

	publish(ch, "", queue, false, message(large[:110000], "m-kept"))
	connection, ch = restart(connection)
	must(ch.QueueDelete(queue, false, false, false))
	check(connection.Close())
	fmt.Println("close: clean")
}
