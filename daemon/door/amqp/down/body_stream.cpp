#include "daemon/door/amqp/down/body_stream.h"

#include <algorithm>

#include "daemon/door/amqp/tap_lines.h"
#include "daemon/pipeline/stamp.h"

namespace bellhop {

namespace {

constexpr size_t read_bytes = 512 * 1024;
constexpr size_t outbox_bytes_max = 1024 * 1024;
constexpr uint64_t last_frame_bytes_max = 128 * 1024;

bool keep_foreign(const void*, std::string_view name) {
  return !is_claim_header(name);
}

}  // namespace

bool BodyStream::has_room() const {
  return client_outbox_.pending() <= outbox_bytes_max;
}

void BodyStream::begin(const std::shared_ptr<Delivery>& delivery) {
  const uint16_t channel = delivery->channel;
  if (state_.shared.taps.is_on() && delivery->kind != DeliveryKind::returned)
    tell(state_, tap_line(state_, *delivery));
  to_client_.begin_content();
  Buffer& out = to_client_.content();
  proto::put_frame(out, proto::frame_method, channel, delivery->method);
  auto header = proto::decode_content_header(delivery->header);
  proto::HeaderEdits edits;
  edits.body_bytes = delivery->object->size_bytes();
  if (delivery->strip_claim_headers) {
    edits.keep = keep_foreign;
    edits.drop_emptied_table = header && had_no_table(header.value().header_fields());
  }
  if (!header ||
      !proto::put_content_header(out, channel, header.value(), edits, proto::broker_header_frame_bytes_max)) {
    // The table is malformed: it is passed on whole, and only the body size changes.
    Buffer patched = delivery->header;
    store_u64(patched.data() + 4, delivery->object->size_bytes());
    proto::put_frame(out, proto::frame_header, channel, patched);
  }
  stream_ = Stream{delivery};
  if (const Buffer* whole = delivery->object->in_memory()) {
    to_client_.body(channel, *whole, delivery->object, state_.frame_bytes_max);
    end();
    return;
  }
  pump();
}

void BodyStream::pump() {
  if (!stream_ || stream_->reading) return;
  uint64_t size = stream_->delivery->object->size_bytes();
  if (stream_->offset == size) {
    end();
    return;
  }
  if (state_.client_gone || !has_room()) return;
  // Whole frames, but for the last. That one is read when the socket has taken all before it, since an object
  // may change until then (LocalObject::read).
  const uint64_t frame_payload_bytes = state_.frame_bytes_max - proto::frame_overhead_bytes;
  const uint64_t rest = size % frame_payload_bytes;
  const uint64_t last_bytes = std::min(rest != 0 ? rest : frame_payload_bytes, last_frame_bytes_max);
  const uint64_t piece_bytes = std::max<uint64_t>(read_bytes / frame_payload_bytes, 1) * frame_payload_bytes;
  const uint64_t left = size - stream_->offset;
  stream_->is_at_last = left <= last_bytes;
  if (stream_->is_at_last && !client_outbox_.empty()) return;
  const auto count =
      static_cast<size_t>(stream_->is_at_last ? left : std::min(piece_bytes, left - last_bytes));
  stream_->reading = true;
  stream_->delivery->object->read(
      stream_->offset, count, executor_,
      [this, weak = std::weak_ptr(stream_->delivery)](Result<Piece> piece) {
        auto alive = weak.lock();
        if (alive == nullptr || !stream_ || stream_->delivery != alive) return;
        stream_->reading = false;
        if (!piece) {
          cancel();
          host_.close_connection(
              541, "INTERNAL_ERROR - a payload broke off while it was handed over: " + piece.error());
          return;
        }
        stream_->offset += piece.value().bytes.size();
        to_client_.body(alive->channel, piece.value().bytes, piece.value().owner, state_.frame_bytes_max);
      });
}

bool BodyStream::may_read_last() const {
  return stream_ && stream_->is_at_last && !stream_->reading && !state_.client_gone && client_outbox_.empty();
}

void BodyStream::end() {
  std::shared_ptr<Delivery> delivery = std::move(stream_->delivery);
  stream_.reset();
  yields_ = delivery->object->in_memory() == nullptr;
  to_client_.end_content();
  delivery->hand();
  if (delivery->kind == DeliveryKind::returned) delivery->stored.handed_back();
}

void BodyStream::cancel() {
  if (!stream_) return;
  stream_->delivery->slot.end();
  stream_.reset();
}

}  // namespace bellhop
