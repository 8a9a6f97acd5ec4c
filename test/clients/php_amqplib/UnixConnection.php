<?php
// php-amqplib over a Unix socket. It opens TCP connections only; this hands its stream reader a Unix socket instead.

use PhpAmqpLib\Connection\AbstractConnection;
use PhpAmqpLib\Exception\AMQPIOException;
use PhpAmqpLib\Wire\IO\StreamIO;

class UnixIO extends StreamIO
{
    public function connect()
    {
        $socket = @stream_socket_client("unix://$this->host", $number, $text, $this->connection_timeout);
        if ($socket === false) {
            throw new AMQPIOException($text, $number);
        }
        stream_set_timeout($socket, (int) $this->read_timeout);
        (new ReflectionProperty(StreamIO::class, 'sock'))->setValue($this, $socket);
    }
}

class UnixConnection extends AbstractConnection
{
    public function __construct(string $path, string $user, string $password, string $vhost = '/', float $timeout = 20)
    {
        parent::__construct($user, $password, $vhost, false, 'AMQPLAIN', null, 'en_US', new UnixIO($path, 0, $timeout, $timeout));
    }
}
