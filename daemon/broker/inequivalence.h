// Reads what a broker has under a name that bellhop declares otherwise. AMQP 0-9-1 cannot list the arguments
// of a queue or an exchange. But RabbitMQ refuses a declaration that differs with a 406 that names one
// difference:
//
//     PRECONDITION_FAILED - inequivalent arg 'x-dead-letter-exchange' for queue 'p.s' in vhost '/':
//       received the value 'acemq.dlx' of type 'longstr' but current is none
//     ... 'type' for exchange 'p' in vhost '/': received 'direct' but current is 'topic'
//
// So bellhop takes that difference over into the declaration, declares again, and learns the next one, until
// the broker agrees. Pure functions; existing.h asks.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/broker/declarations.h"

namespace bellhop {

struct Difference {
  std::string what;     // `x-dead-letter-exchange`; also `durable`, `auto_delete`, `type`, `internal`
  std::string current;  // the value that is there, as text; empty when there is none
  bool is_none = false;
  std::string type;       // RabbitMQ's name for the value's type; empty: that of the value asked for
  bool is_known = false;  // false: a long name left no room for the value in the broker's 255 bytes
};

// The difference that a 406 names; nothing when the text is about something else.
std::optional<Difference> parse_difference(std::string_view reply_text);

// Makes `item` agree with what is there. False: that cannot be expressed, because the value or its type is
// unknown.
bool take_over(Declaration& item, const Difference& difference);

// `no x-dead-letter-exchange (bellhop declares 'acemq.dlx'), x-message-ttl '5000' (bellhop declares none)`
std::string describe(const std::vector<Difference>& differences, const Declaration& wanted);

// The command for a policy that gives the queue the dead-lettering of `wanted` which its own arguments lack.
// A policy is no argument, so it suits every program that declares the queue. Empty when nothing is lacking,
// or when the queue's own arguments name another place: these win over a policy. Quoted for a POSIX shell.
std::string dead_letter_policy(const std::vector<Difference>& differences, const Declaration& wanted,
                               const std::string& vhost);

// What the differences mean and what to do, as sentences that follow on others: they begin with a colon or a
// blank, and a command stands at the end. Empty when there is nothing to say.
std::string advice(const std::vector<Difference>& differences, const Declaration& wanted,
                   const std::string& vhost);

}  // namespace bellhop
