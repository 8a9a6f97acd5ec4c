#include "daemon/door/amqp/body_stream.h"

#include <algorithm>

#include "daemon/door/amqp/fetcher.h"
#include "daemon/door/amqp/lanes.h"
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
  return core_.client->outbox().pending() <= outbox_bytes_max;
}

void BodyStream::begin(Channel& channel, const std::shared_ptr<Delivery>& delivery) {
  core_.writer->begin_content();
  Buffer& out = core_.writer->content();
  proto::put_frame(out, proto::frame_method, channel.id, delivery->method);
  auto header = proto::decode_content_header(delivery->header);
  proto::HeaderEdits edits;
  edits.body_bytes = delivery->object->size_bytes();
  if (delivery->strip_claim_headers) {
    edits.keep = keep_foreign;
    edits.drop_emptied_table = header && had_no_table(header.value().header_fields());
  }
  if (!header || !proto::put_content_header(out, channel.id, header.value(), edits,
                                            proto::broker_header_frame_bytes_max)) {
    // The table is malformed: it is passed on whole, and only the body size changes.
    Buffer patched = delivery->header;
    store_u64(patched.data() + 4, delivery->object->size_bytes());
    proto::put_frame(out, proto::frame_header, channel.id, patched);
  }
  stream_ = Stream{delivery};
  if (const Buffer* whole = delivery->object->in_memory()) {
    core_.writer->body(channel.id, *whole, delivery->object, core_.frame_bytes_max);
    end();
    return;
  }
  read_more();
}

void BodyStream::read_more() {
  if (!stream_ || stream_->reading) return;
  uint64_t size = stream_->delivery->object->size_bytes();
  if (stream_->offset == size) {
    end();
    return;
  }
  if (core_.client_gone || !has_room()) return;
  // Whole frames, but for the last. That one is read when the socket has taken all before it, since an object
  // may change until then (LocalObject::read).
  const uint64_t frame_payload_bytes = core_.frame_bytes_max - proto::frame_overhead_bytes;
  const uint64_t rest = size % frame_payload_bytes;
  const uint64_t last_bytes = std::min(rest != 0 ? rest : frame_payload_bytes, last_frame_bytes_max);
  const uint64_t piece_bytes = std::max<uint64_t>(read_bytes / frame_payload_bytes, 1) * frame_payload_bytes;
  const uint64_t left = size - stream_->offset;
  stream_->is_at_last = left <= last_bytes;
  if (stream_->is_at_last && !core_.client->outbox().empty()) return;
  const auto count =
      static_cast<size_t>(stream_->is_at_last ? left : std::min(piece_bytes, left - last_bytes));
  stream_->reading = true;
  stream_->delivery->object->read(
      stream_->offset, count, core_.mailbox,
      [this, weak = std::weak_ptr(stream_->delivery)](Result<Piece> piece) {
        auto alive = weak.lock();
        if (alive == nullptr || !stream_ || stream_->delivery != alive) return;
        stream_->reading = false;
        if (!piece) {
          cancel();
          core_.close_connection(
              541, "INTERNAL_ERROR - a payload broke off while it was handed over: " + piece.error());
          return;
        }
        stream_->offset += piece.value().bytes.size();
        core_.writer->body(alive->channel, piece.value().bytes, piece.value().owner, core_.frame_bytes_max);
        read_more();
      });
}

bool BodyStream::may_read_last() const {
  return stream_ && stream_->is_at_last && !stream_->reading && !core_.client_gone &&
         core_.client->outbox().empty();
}

void BodyStream::end() {
  std::shared_ptr<Delivery> delivery = std::move(stream_->delivery);
  stream_.reset();
  yields_ = delivery->object->in_memory() == nullptr;
  core_.writer->end_content();
  core_.fetcher->free_slot(*delivery);
  if (delivery->kind == DeliveryKind::returned) delivery->transaction.handed_back();
  if (Channel* channel = core_.channel_of(*delivery)) core_.lanes->streamed(*channel, delivery);
}

void BodyStream::cancel() {
  if (!stream_) return;
  core_.fetcher->free_slot(*stream_->delivery);
  stream_.reset();
}

}  // namespace bellhop
