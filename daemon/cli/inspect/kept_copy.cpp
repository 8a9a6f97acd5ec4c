#include "daemon/cli/inspect/kept_copy.h"

#include "daemon/pipeline/replayed.h"

namespace bellhop {

Result<void> put_to_the_end(ControlConnection& connection, ConfirmedPublisher& publisher, QueueReader& reader,
                            const std::string& queue, const Incoming& message) {
  const auto header = copied_header(message.header, connection.user(), connection.frame_bytes_max());
  if (!header) return Error{"its headers cannot be read"};
  const auto outcome = publisher.publish({{"", queue, *header, message.body}});
  if (!outcome) return Error{outcome.error()};
  const Outcome& only = outcome.value().front();
  if (only.fate != Outcome::Fate::confirmed)
    return Error{only.why.empty() ? "the broker refused it" : only.why};
  reader.acknowledge(message.tag);
  return {};
}

}  // namespace bellhop
