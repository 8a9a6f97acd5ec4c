// The mapping of publisher confirms; what it promises is in the header. Two cursors follow the oldest entry
// that still waits for the broker and the oldest that the client has no answer for, so that a publish is
// walked over once a side however the answers come.
#include "daemon/broker/confirm_window.h"

#include <utility>

namespace bellhop {

ConfirmWindow::~ConfirmWindow() {
  if (meter_ == nullptr) return;
  for (uint64_t tag = open_from_; tag < next_client_; ++tag) {
    if (!at(tag).open) continue;
    meter_->unconfirmed.subtract();
    meter_->settle(at(tag).mark, at(tag).returned ? PublishOutcome::returned : PublishOutcome::unconfirmed);
  }
}

inline uint64_t ConfirmWindow::push(uint32_t token, bool relayed, PublishMark mark) {
  if (next_client_ - first() == ring_.size()) grow();
  const uint64_t client_tag = next_client_++;
  const uint64_t broker_tag = relayed ? next_broker_++ : next_broker_ - 1;
  Entry& entry = at(client_tag);
  entry.broker_tag = broker_tag;
  entry.token = token;
  entry.relayed = entry.waits = relayed;
  entry.open = true;
  entry.returning = entry.decided = entry.nack = entry.returned = false;
  entry.mark = mark;
  if (token != 0) ++special_;
  ++unsettled_;
  if (meter_ != nullptr) meter_->unconfirmed.add();
  return client_tag;
}

uint64_t ConfirmWindow::push_relayed(uint32_t token, PublishMark mark) {
  return push(token, true, mark);
}

uint64_t ConfirmWindow::push_local(uint32_t token) {
  return push(token, false, {});
}

void ConfirmWindow::grow() {
  std::vector<Entry> larger(ring_.empty() ? 64 : ring_.size() * 2);
  for (uint64_t tag = first(); tag < next_client_; ++tag) larger[tag & (larger.size() - 1)] = at(tag);
  ring_.swap(larger);
}

// The client tag of the relayed publish that waits under `broker_tag`, or 0.
uint64_t ConfirmWindow::find(uint64_t broker_tag) {
  uint64_t low = waits_from_, high = next_client_;
  if (low == high) return 0;
  // Where no local publish lies between, the distance on both sides is the same.
  const uint64_t base = at(low).broker_tag;
  if (broker_tag >= base && broker_tag - base < high - low) {
    const uint64_t guess = low + (broker_tag - base);
    if (at(guess).relayed && at(guess).broker_tag == broker_tag) return at(guess).waits ? guess : 0;
  }
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (at(middle).broker_tag < broker_tag) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == next_client_) return 0;
  const Entry& entry = at(low);
  return entry.relayed && entry.waits && entry.broker_tag == broker_tag ? low : 0;
}

// So many publishes like this one have their answer.
inline void ConfirmWindow::count(const Entry& entry, bool nack, uint64_t how_many) {
  meter_->unconfirmed.subtract(how_many);
  meter_->answer(entry.mark,
                 entry.returned ? PublishOutcome::returned
                 : nack         ? PublishOutcome::nacked
                                : PublishOutcome::confirmed,
                 how_many);
}

// The client gets its answer.
inline void ConfirmWindow::close(Entry& entry, bool nack) {
  entry.open = false;
  --unsettled_;
  if (meter_ != nullptr) count(entry, nack, 1);
}

// The outcome of one publish: told to the client, or kept while it is returning.
void ConfirmWindow::settle(uint64_t client_tag, bool nack, std::vector<Answer>& answers) {
  Entry& entry = at(client_tag);
  if (!entry.open || entry.decided) return;
  if (entry.returning) {
    entry.decided = true;
    entry.nack = nack;
    return;
  }
  close(entry, nack);
  answers.push_back({client_tag, false, nack});
}

void ConfirmWindow::take_broker(uint64_t client_tag, bool nack, std::vector<Answer>& answers,
                                std::vector<uint32_t>& tokens) {
  Entry& entry = at(client_tag);
  entry.waits = false;
  if (entry.token != 0) {
    tokens.push_back(std::exchange(entry.token, 0));
    --special_;
  }
  if (!entry.open || entry.decided) {
    --special_;  // it was settled locally before the broker answered
    return;
  }
  settle(client_tag, nack, answers);
}

void ConfirmWindow::advance() {
  while (open_from_ < next_client_ && !at(open_from_).open) ++open_from_;
  while (waits_from_ < next_client_ && !at(waits_from_).waits) ++waits_from_;
}

bool ConfirmWindow::on_broker(uint64_t broker_tag, bool multiple, bool nack, std::vector<Answer>& answers,
                              std::vector<uint32_t>& tokens) {
  if (broker_tag >= next_broker_ || (broker_tag == 0 && !multiple)) return false;
  if (!multiple) {
    const uint64_t client_tag = find(broker_tag);
    if (client_tag == 0) return false;
    take_broker(client_tag, nack, answers, tokens);
    advance();
    return true;
  }
  if (broker_tag == 0) broker_tag = next_broker_ - 1;
  const size_t before = answers.size();
  bool any = false;
  for (uint64_t tag = waits_from_; tag < next_client_ && at(tag).broker_tag <= broker_tag; ++tag) {
    if (!at(tag).waits) continue;
    take_broker(tag, nack, answers, tokens);
    any = true;
  }
  advance();
  // The answers before the oldest unsettled tag become one `multiple`; each later one stays alone.
  size_t joined = 0;
  while (before + joined < answers.size() && answers[before + joined].client_tag < open_from_) ++joined;
  if (joined > 1) {
    const auto begin = answers.begin() + static_cast<std::ptrdiff_t>(before);
    const auto last = begin + static_cast<std::ptrdiff_t>(joined - 1);
    last->multiple = true;
    answers.erase(begin, last);
  }
  return any;
}

void ConfirmWindow::settle_local(uint64_t client_tag, bool nack, std::vector<Answer>& answers) {
  if (client_tag < open_from_ || client_tag >= next_client_) return;
  Entry& entry = at(client_tag);
  if (!entry.open || entry.decided) return;
  if (entry.waits) {
    ++special_;
  } else if (entry.token != 0) {
    entry.token = 0;
    --special_;
  }
  settle(client_tag, nack, answers);
  advance();
}

void ConfirmWindow::await_return(uint64_t client_tag) {
  if (client_tag < open_from_ || client_tag >= next_client_) return;
  Entry& entry = at(client_tag);
  if (!entry.open || entry.returning) return;
  entry.returning = true;
  ++special_;
}

void ConfirmWindow::note_returned(uint64_t client_tag) {
  if (client_tag >= open_from_ && client_tag < next_client_) at(client_tag).returned = true;
}

void ConfirmWindow::return_handed(uint64_t client_tag, std::vector<Answer>& answers) {
  if (client_tag < open_from_ || client_tag >= next_client_) return;
  Entry& entry = at(client_tag);
  if (!entry.returning) return;
  entry.returning = false;
  --special_;
  if (!entry.decided) return;
  entry.decided = false;
  const bool nack = entry.nack;
  close(entry, nack);
  answers.push_back({client_tag, false, nack});
  advance();
}

void ConfirmWindow::return_lost(uint64_t client_tag, std::vector<Answer>& answers) {
  if (client_tag < open_from_ || client_tag >= next_client_) return;
  Entry& entry = at(client_tag);
  if (!entry.returning) return;
  entry.returning = false;
  entry.decided = false;
  --special_;
  settle_local(client_tag, true, answers);
}

size_t ConfirmWindow::unsettled() const {
  return unsettled_;
}

bool ConfirmWindow::is_plain() const {
  return next_client_ == next_broker_ && special_ == 0;
}

bool ConfirmWindow::settle_relayed(uint64_t broker_tag, bool multiple, bool nack) {
  if (broker_tag >= next_broker_ || (broker_tag == 0 && !multiple)) return false;
  if (broker_tag == 0) broker_tag = next_broker_ - 1;
  if (broker_tag < open_from_) return false;
  const size_t before = unsettled_;
  // Most of a run were published in one turn, by one route: they are counted at once.
  const Entry* alike = nullptr;
  uint64_t how_many = 0;
  uint64_t tag = multiple ? open_from_ : broker_tag;
  for (; tag <= broker_tag; ++tag) {
    Entry& entry = at(tag);
    entry.waits = false;
    if (!entry.open) continue;
    entry.open = false;
    --unsettled_;
    if (alike != nullptr && meter_ != nullptr &&
        (alike->mark != entry.mark || alike->returned != entry.returned)) {
      count(*alike, nack, std::exchange(how_many, 0));
      alike = nullptr;
    }
    if (alike == nullptr) alike = &entry;
    ++how_many;
  }
  if (alike != nullptr && meter_ != nullptr) count(*alike, nack, how_many);
  if (multiple) open_from_ = waits_from_ = broker_tag + 1;  // all before it are settled, on both sides
  advance();
  return unsettled_ != before;
}

}  // namespace bellhop
