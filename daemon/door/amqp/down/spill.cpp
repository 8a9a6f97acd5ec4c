#include "daemon/door/amqp/down/spill.h"

#include <algorithm>
#include <utility>

#include "daemon/ops/trouble.h"

namespace bellhop {

namespace {

constexpr uint64_t spill_from_bytes = 8 << 20;  // held in memory: half of what stops the reading
constexpr size_t spilled_bytes_min = 4096;      // less is hardly more than what stays in memory of it
constexpr uint64_t file_bytes = 16 << 20;
constexpr size_t ahead_bytes = 1 << 20;
constexpr uint64_t pause_ms = 1000;  // after a failure

}  // namespace

void Spill::consider(const std::shared_ptr<Delivery>& delivery) {
  const size_t bytes = delivery->frames.size();
  if (bytes < spilled_bytes_min ||
      (memory_.held_for_client_bytes() < spill_from_bytes && !memory_.spills_early()))
    return;
  if (!delivery->is(Delivery::State::plain) || delivery->kind != DeliveryKind::deliver) return;
  if (delivery->open || delivery->no_ack || host_.now_ms() < try_again_at_ms_) return;
  auto file = current_.lock();
  auto offset = file == nullptr ? std::nullopt : file->place(bytes);
  if (!offset) {
    current_ = file = SpillFile::make(state_.shared.spill, std::max<uint64_t>(file_bytes, bytes));
    offset = file->place(bytes);
  }
  Buffer frames = delivery->spill(file, *offset);
  state_.shared.spill.thread.run(
      executor_.get(), Work::write,
      [this, weak = std::weak_ptr(delivery), file = std::move(file), at = *offset, executor = executor_,
       frames = std::move(frames)]() mutable {
        auto outcome = file->write(at, frames);
        if (outcome) frames = {};
        executor->post([this, weak = std::move(weak), outcome, frames = std::move(frames)]() mutable {
          if (auto alive = weak.lock()) written(alive, outcome, std::move(frames));
        });
      });
}

void Spill::written(const std::shared_ptr<Delivery>& delivery, const Result<void>& outcome, Buffer frames) {
  if (channels_.of(*delivery) == nullptr) return;
  if (outcome) {
    delivery->spilled();
    return;
  }
  if (host_.now_ms() >= try_again_at_ms_)
    tell_trouble("spill", subject_of_reason(outcome.error()), "held deliveries stay in memory",
                 state_.who({{"reason", outcome.error()}}));
  try_again_at_ms_ = host_.now_ms() + pause_ms;
  delivery->make_plain(std::move(frames));
}

void Spill::bring_back(const DeliveryQueue& queue) {
  size_t bytes = 0;
  for (const auto& delivery : queue) {
    if (!delivery->is(Delivery::State::spilled) || bytes >= ahead_bytes) return;
    bytes += delivery->spilled_bytes;
    read(delivery);
  }
}

void Spill::read(const std::shared_ptr<Delivery>& delivery) {
  delivery->bring_back();
  state_.shared.spill.thread.run(
      executor_.get(), Work::write,
      [this, weak = std::weak_ptr(delivery), file = delivery->spilled_in, at = delivery->spilled_at,
       count = delivery->spilled_bytes, executor = executor_]() mutable {
        executor->post([this, weak = std::move(weak), frames = file->read(at, count)]() mutable {
          auto alive = weak.lock();
          if (alive != nullptr && alive->is(Delivery::State::returning)) returned(alive, std::move(frames));
        });
      });
}

void Spill::returned(const std::shared_ptr<Delivery>& delivery, Result<Buffer> frames) {
  Channel* channel = channels_.of(*delivery);
  if (channel == nullptr) return;
  if (!frames) {
    // The broker still has it.
    closing_.close(*channel, 541,
                   "INTERNAL_ERROR - cannot read a held delivery from its scratch file: " + frames.error());
    return;
  }
  delivery->make_plain(std::move(frames.value()));
}

}  // namespace bellhop
