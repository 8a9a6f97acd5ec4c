// AMQP topic patterns as RabbitMQ reads them: words split at ".", `*` stands for exactly one word, `#` for
// none or more. The empty text has no words; "a." has two, the second empty.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bellhop::config {

std::vector<std::string> topic_words(std::string_view pattern);

// Allocates nothing. At most (words of the pattern) x (words of the key) comparisons, whatever the pattern.
bool topic_matches(const std::vector<std::string>& pattern_words, std::string_view routing_key);

}  // namespace bellhop::config
