#include "daemon/door/amqp/spill.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/claims/payload_hash.h"
#include "daemon/door/amqp/body_stream.h"
#include "daemon/door/amqp/lanes.h"
#include "daemon/door/amqp/session_core.h"
#include "daemon/ops/trouble.h"

namespace bellhop {

namespace {

constexpr uint64_t spill_from_bytes = 8 << 20;  // held in memory: half of what stops the reading
constexpr size_t spilled_bytes_min = 4096;      // less is hardly more than what stays in memory of it
constexpr uint64_t file_bytes = 16 << 20;
constexpr size_t ahead_bytes = 1 << 20;
constexpr uint64_t pause_ms = 1000;  // after a failure

std::string checksum_of(Bytes bytes) {
  PayloadHash hash;
  hash.update(bytes);
  return hash.hex();
}

}  // namespace

std::shared_ptr<SpillFile> SpillFile::make(SpillSpace& space, uint64_t capacity_bytes) {
  // Even a close may wait.
  return {new SpillFile(space.quota, capacity_bytes), [thread = &space.thread](SpillFile* file) {
            thread->run(nullptr, Work::upkeep, [file] { delete file; });
          }};
}

std::optional<uint64_t> SpillFile::place(uint64_t bytes) {
  if (bytes > capacity_bytes_ - used_bytes_) return {};
  return std::exchange(used_bytes_, used_bytes_ + bytes);
}

Result<void> SpillFile::write(uint64_t offset, Bytes bytes) {
  if (file_ == nullptr) {
    auto created = ScratchFile::create(quota_, capacity_bytes_);
    if (!created) return Error{created.error()};
    file_ = std::move(created.value());
  }
  auto written = file_->write(offset, bytes);
  if (written) checksums_[offset] = checksum_of(bytes);
  return written;
}

Result<Buffer> SpillFile::read(uint64_t offset, size_t count) const {
  if (file_ == nullptr) return Error{"it was never written"};
  Buffer bytes(count);
  const auto got = file_->read(offset, bytes.data(), count);
  if (!got) return Error{got.error()};
  if (got.value() != count) return Error{"a scratch file is shorter than what was written to it"};
  const auto checksum = checksums_.find(offset);
  if (checksum == checksums_.end() || checksum->second != checksum_of(bytes))
    return Error{"a scratch file has other bytes than were written to it"};
  return bytes;
}

void Spill::consider(const std::shared_ptr<Delivery>& delivery) {
  const size_t bytes = delivery->frames.size();
  if (bytes < spilled_bytes_min ||
      (core_.held_for_client_bytes() < spill_from_bytes && !core_.spills_early()))
    return;
  if (delivery->state != Delivery::State::plain || delivery->kind != DeliveryKind::deliver) return;
  if (delivery->open || delivery->no_ack || core_.now_ms() < try_again_at_ms_) return;
  auto file = current_.lock();
  auto offset = file == nullptr ? std::nullopt : file->place(bytes);
  if (!offset) {
    current_ = file = SpillFile::make(core_.shared.spill, std::max<uint64_t>(file_bytes, bytes));
    offset = file->place(bytes);
  }
  delivery->state = Delivery::State::spilled;
  delivery->spilled_in = file;
  delivery->spilled_at = *offset;
  delivery->spilled_bytes = bytes;
  delivery->spilling_bytes = bytes;
  core_.shared.spill.thread.run(
      core_.mailbox.get(), Work::write,
      [this, weak = std::weak_ptr(delivery), file = std::move(file), at = *offset, mailbox = core_.mailbox,
       frames = std::exchange(delivery->frames, {})]() mutable {
        auto outcome = file->write(at, frames);
        if (outcome) frames = {};
        mailbox->post([this, weak = std::move(weak), outcome, frames = std::move(frames)]() mutable {
          if (auto alive = weak.lock()) written(alive, outcome, std::move(frames));
        });
      });
}

void Spill::written(const std::shared_ptr<Delivery>& delivery, const Result<void>& outcome, Buffer frames) {
  Channel* channel = core_.channel_of(*delivery);
  if (channel == nullptr) return;
  const size_t bytes = std::exchange(delivery->spilling_bytes, 0);
  if (outcome) {
    core_.give_back_for_client(*channel, bytes);
    return;
  }
  if (core_.now_ms() >= try_again_at_ms_)
    tell_trouble(
        "spill", subject_of_reason(outcome.error()),
        fmt::format("session={} held deliveries stay in memory: {}", core_.session_id, outcome.error()));
  try_again_at_ms_ = core_.now_ms() + pause_ms;
  delivery->frames = std::move(frames);
  delivery->spilled_in.reset();
  delivery->state = Delivery::State::plain;
  core_.lanes->pump(*channel);
}

void Spill::bring_back(const Lane& lane) {
  if (core_.client_gone || !core_.body_stream->has_room()) return;
  size_t bytes = 0;
  for (const auto& delivery : lane) {
    if (delivery->state != Delivery::State::spilled || bytes >= ahead_bytes) return;
    bytes += delivery->spilled_bytes;
    read(delivery);
  }
}

void Spill::read(const std::shared_ptr<Delivery>& delivery) {
  delivery->state = Delivery::State::returning;
  core_.shared.spill.thread.run(
      core_.mailbox.get(), Work::write,
      [this, weak = std::weak_ptr(delivery), file = delivery->spilled_in, at = delivery->spilled_at,
       count = delivery->spilled_bytes, mailbox = core_.mailbox]() mutable {
        mailbox->post([this, weak = std::move(weak), frames = file->read(at, count)]() mutable {
          auto alive = weak.lock();
          if (alive != nullptr && alive->state == Delivery::State::returning)
            returned(alive, std::move(frames));
        });
      });
}

void Spill::returned(const std::shared_ptr<Delivery>& delivery, Result<Buffer> frames) {
  Channel* channel = core_.channel_of(*delivery);
  if (channel == nullptr) return;
  if (!frames) {
    // The broker still has it.
    core_.close_channel(
        *channel, 541,
        "INTERNAL_ERROR - cannot read a held delivery from its scratch file: " + frames.error());
    return;
  }
  delivery->frames = std::move(frames.value());
  delivery->spilled_in.reset();
  delivery->state = Delivery::State::plain;
  core_.take_for_client(*channel, delivery->spilled_bytes);
  core_.lanes->pump(*channel);
}

}  // namespace bellhop
