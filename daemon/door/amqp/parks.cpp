#include "daemon/door/amqp/parks.h"

#include "daemon/broker/private_channel.h"
#include "daemon/pipeline/park.h"

namespace bellhop {

void Parks::park(const Delivery& delivery, const std::string& reason,
                 std::function<void(std::string failure)> done) {
  if (core_.private_channel == nullptr) {
    done("the broker allows one channel only, there is none for a park");
    return;
  }
  std::string queue = parked_queue_of(delivery.queue, core_.exclusive_queues.contains(delivery.queue));
  uint16_t channel = core_.private_channel->id();
  Buffer frames;
  // A header that is as large as a frame can be has room for a short reason only, or for none.
  bool fits = false;
  for (size_t reason_bytes : {error_reason_bytes_max, size_t{100}, size_t{0}}) {
    std::string_view text = std::string_view(reason).substr(0, reason_bytes);
    fits = put_park(frames, channel, queue, delivery.header, delivery.body, text, core_.broker_user,
                    core_.frame_bytes_max);
    if (fits) break;
  }
  if (!fits) {
    done("its header is malformed or does not fit frame_max");
    return;
  }
  auto header = proto::decode_content_header(delivery.header);
  post(std::move(frames), queue, std::string(header.value().text(proto::message_id)), false, std::move(done));
}

void Parks::post(Buffer frames, const std::string& queue, const std::string& message_id, bool declare,
                 std::function<void(std::string failure)> done) {
  PrivateChannel::Item item;
  item.routing_key = queue;
  item.message_id = message_id;
  if (declare) item.declare_queue = queue;
  item.frames = frames;
  item.done = [this, frames = std::move(frames), queue, message_id, declare,
               done = std::move(done)](const PrivateChannel::Outcome& outcome) mutable {
    using Kind = PrivateChannel::Outcome::Kind;
    if (outcome.kind == Kind::acked) {
      done({});
    } else if (outcome.kind == Kind::returned && !declare) {
      // No such queue yet: declare it and send again.
      post(std::move(frames), queue, message_id, true, std::move(done));
    } else {
      done("queue '" + queue + "' did not take it: " + outcome.text);
    }
  };
  core_.private_channel->post(std::move(item));
}

}  // namespace bellhop
