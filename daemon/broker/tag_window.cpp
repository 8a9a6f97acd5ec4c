// The bookkeeping of delivery tags; what it promises is in the header.
#include "daemon/broker/tag_window.h"

namespace bellhop {

namespace {
constexpr uint64_t tag_max = (uint64_t{1} << 62) - 1;

// Of the entries that count as the client's: a rollback may make them that again.
bool is_clients(TagWindow::Owner owner) {
  return owner == TagWindow::Owner::client || owner == TagWindow::Owner::in_tx;
}
}  // namespace

void TagWindow::add(uint64_t tag, Owner owner) {
  if (owner == Owner::settled || tag > tag_max) return;
  if (next_ != first() && tag <= at(next_ - 1).tag) return;
  if (next_ - first() == ring_.size()) make_room();
  at(next_++) = {.tag = tag & tag_max, .owner = static_cast<uint64_t>(owner) & 3};
  ++(owner == Owner::client ? client_count_ : own_count_);
}

void TagWindow::make_room() {
  const uint64_t begin = first();
  if (ring_.empty() || client_count_ + own_count_ > ring_.size() / 2) {
    std::vector<Entry> larger(ring_.empty() ? 64 : ring_.size() * 2);
    for (uint64_t position = begin; position < next_; ++position) {
      larger[position & (larger.size() - 1)] = at(position);
    }
    ring_.swap(larger);
    return;
  }
  uint64_t end = begin;
  for (uint64_t position = begin; position < next_; ++position) {
    if (owner_of(at(position)) != Owner::settled) at(end++) = at(position);
  }
  next_ = end;
  client_from_ = own_from_ = begin;
  advance();
}

// The position of `tag`, settled or not, or nowhere.
uint64_t TagWindow::find(uint64_t tag) const {
  uint64_t low = first(), high = next_;
  if (low == high || tag < at(low).tag || tag > at(high - 1).tag) return nowhere;
  const uint64_t distance = tag - at(low).tag;
  if (distance < high - low && at(low + distance).tag == tag) return low + distance;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (at(middle).tag < tag) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < next_ && at(low).tag == tag ? low : nowhere;
}

TagWindow::Owner TagWindow::owner(uint64_t tag) const {
  const uint64_t position = find(tag);
  return position == nowhere ? Owner::settled : owner_of(at(position));
}

void TagWindow::mark(Entry& entry, Owner owner) {
  if (is_clients(owner_of(entry))) --client_count_;
  if (owner_of(entry) == Owner::bellhop) --own_count_;
  entry.owner = static_cast<uint64_t>(owner) & 3;
  if (is_clients(owner)) ++client_count_;
  if (owner == Owner::bellhop) ++own_count_;
}

void TagWindow::advance() {
  while (client_from_ < next_ && !is_clients(owner_of(at(client_from_)))) ++client_from_;
  while (own_from_ < next_ && owner_of(at(own_from_)) != Owner::bellhop) ++own_from_;
}

void TagWindow::give(uint64_t tag, Owner owner) {
  const uint64_t position = find(tag);
  if (position == nowhere || owner_of(at(position)) == Owner::settled) return;
  mark(at(position), owner);
  if (owner == Owner::client && position < client_from_) client_from_ = position;
  if (owner == Owner::bellhop && position < own_from_) own_from_ = position;
  advance();
}

TagWindow::Covered TagWindow::settle(uint64_t tag, bool multiple, Owner to) {
  Covered covered;
  uint64_t last = next_;  // one past the last position that may be covered
  if (tag != 0 || !multiple) {
    const uint64_t position = find(tag);
    const Owner owner = position == nowhere ? Owner::settled : owner_of(at(position));
    if (owner == Owner::bellhop) {
      covered.ok = false;
      return covered;
    }
    if (owner != Owner::client) {
      covered.pieces.push_back({tag, multiple});
      return covered;
    }
    last = position + 1;
  }
  if (!multiple) {
    mark(at(last - 1), to);
    covered.pieces.push_back({tag, false});
    advance();
    return covered;
  }
  advance();
  const bool owns_below = own_from_ < last;
  if (!owns_below) covered.pieces.push_back({tag, true});
  for (uint64_t position = client_from_; position < last; ++position) {
    Entry& entry = at(position);
    if (owner_of(entry) != Owner::client) continue;
    mark(entry, to);
    if (!owns_below) continue;
    // Below the first of bellhop's tags one `multiple` covers all; each tag after it goes alone.
    if (position < own_from_) {
      covered.pieces.assign(1, {entry.tag, true});
    } else {
      covered.pieces.push_back({entry.tag, false});
    }
  }
  advance();
  return covered;
}

void TagWindow::settle_own(uint64_t tag) {
  const uint64_t position = find(tag);
  if (position == nowhere || owner_of(at(position)) != Owner::bellhop) return;
  mark(at(position), Owner::settled);
  advance();
}

bool TagWindow::is_plain() const {
  return own_count_ == 0;
}

void TagWindow::settle_plain(uint64_t tag, bool multiple, Owner to) {
  if (multiple) {
    advance();
    for (uint64_t position = client_from_; position < next_ && (tag == 0 || at(position).tag <= tag);
         ++position) {
      if (owner_of(at(position)) == Owner::client) mark(at(position), to);
    }
    advance();
    return;
  }
  const uint64_t position = find(tag);
  if (position == nowhere || owner_of(at(position)) != Owner::client) return;
  mark(at(position), to);
  advance();
}

void TagWindow::end_tx(bool committed) {
  for (uint64_t position = client_from_; position < next_; ++position) {
    if (owner_of(at(position)) == Owner::in_tx)
      mark(at(position), committed ? Owner::settled : Owner::client);
  }
  advance();
}

size_t TagWindow::client_unsettled() const {
  return client_count_;
}

void TagWindow::clear() {
  client_from_ = own_from_ = next_;
  client_count_ = own_count_ = 0;
}

}  // namespace bellhop
