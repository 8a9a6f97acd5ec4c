<?php
// What the PHP programs share: the bodies, and how they are shown.

const SMALL = 'hello bellhop';
define('BINARY', "\xac\x01\x01" . implode('', array_map('chr', range(0, 255)))); // looks like a claim check, and is none
define('LARGE', implode('', array_map(fn ($i) => sprintf('%08d', $i), range(0, 655359)))); // 5 MiB

function line(string $text): void
{
    echo $text, "\n";
}

function seen(string $body): string
{
    return 'bytes=' . strlen($body) . ' md5=' . md5($body);
}

function yes($value): string
{
    return $value ? 'yes' : 'no';
}
