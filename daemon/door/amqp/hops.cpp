#include "daemon/door/amqp/hops.h"

#include <chrono>

#include "daemon/door/amqp/log_about.h"
#include "daemon/door/amqp/tap_lines.h"
#include "daemon/ops/trouble.h"
#include "daemon/pipeline/fill_in.h"
#include "daemon/pipeline/next_stop.h"
#include "daemon/pipeline/park.h"
#include "daemon/pipeline/stamp.h"
#include "proto/claim_frame.h"
#include "proto/table.h"
#include "proto/trace_context.h"

namespace bellhop {

namespace {

constexpr std::string_view ack_header = "bellhop-ack";
constexpr std::string_view attempt_header = "x-acemq-attempt";

struct Dropped {
  Bytes slip_fields;  // the slip as it is now replaces the one that was read
};

bool keep_in_hop(const void* context, std::string_view name) {
  if (name == "x-death" || name == error_header || name == ack_header || name == attempt_header ||
      name == "CC" || name == "BCC" || is_claim_header(name)) {
    return false;
  }
  return !proto::find_field(static_cast<const Dropped*>(context)->slip_fields, name);
}

}  // namespace

struct Hops::Hop {
  uint16_t channel = 0;
  uint64_t generation = 0;
  uint64_t client_tag = 0;  // 0 without confirms
  std::optional<uint64_t> input_tag;
  bool mandatory = false;
  bool no_queue_has_it = false;
  Destination to;
  std::string step, run_id, trace_id;  // for a log
  std::string pipeline, result_of;     // for a count
  std::string routing_key, message_id;
  uint64_t size_bytes = 0;  // of the payload; for a log
  Buffer header, body;      // the client's, for a return
  StoredClaim stored;
  MemoryLease memory;
  Pending pending;
};

void Hops::release(Channel& channel, PublishJob& job) {
  auto decoded_publish = proto::decode_publish(job.method);
  auto decoded_header = proto::decode_content_header(job.header);
  const proto::Publish& publish = decoded_publish.value();
  const proto::ContentHeader& header = decoded_header.value();
  Bytes fields = header.header_fields();
  if (private_channel_ == nullptr) {
    refusals_.refuse(channel, job, 541,
                     "INTERNAL_ERROR - the broker allows one channel a connection, and a hop needs a "
                     "second: raise its channel_max");
    return;
  }

  auto hop = std::make_shared<Hop>();
  hop->channel = channel.id;
  hop->generation = channel.generation;
  hop->mandatory = publish.mandatory;
  hop->size_bytes = header.body_bytes;
  hop->trace_id = proto::trace_id_in(fields);
  hop->routing_key = publish.routing_key;
  bool has_ack = false;
  proto::TableCursor cursor(fields);
  while (auto field = cursor.next()) {
    if (field->name != ack_header) continue;
    has_ack = true;
    auto tag = proto::field_integer(*field);
    if (tag && *tag > 0 && channel.tags.owner(static_cast<uint64_t>(*tag)) == TagWindow::Owner::client) {
      hop->input_tag = static_cast<uint64_t>(*tag);
    }
  }
  if (has_ack && !hop->input_tag) {
    closing_.close(
        channel, 406,
        "PRECONDITION_FAILED - bellhop-ack is no delivery tag of an unacknowledged delivery of this "
        "channel; set it to the input's delivery tag, as an integer",
        proto::method::basic_publish);
    return;
  }
  config::PipelineStep input;
  if (hop->input_tag) {
    auto found = channel.inputs.find(*hop->input_tag);
    if (found != channel.inputs.end()) input = job.snapshot->routing->find(found->second);
  }
  using namespace std::chrono;
  int64_t now_s = duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
  auto run_id = state_.uuids.next();
  auto next =
      next_stop(fields, publish.routing_key, input, *job.snapshot->routing, proto::view(run_id), now_s);
  if (!next) {
    refusals_.refuse(channel, job, 406, "PRECONDITION_FAILED - " + next.error());
    return;
  }
  hop->step = std::move(next.value().step);
  hop->result_of = std::move(next.value().result_of);
  if (next.value().pipeline != nullptr) hop->pipeline = next.value().pipeline->name;
  hop->run_id = std::move(next.value().run_id);
  if (next.value().was_finished) {
    tell_trouble("hop beyond the end", "",
                 "hop confirmed and discarded, its routing slip was at its end already",
                 state_.who({{"channel", channel.id},
                             {"run", hop->run_id},
                             {"message_id", header.text(proto::message_id)},
                             if_known("trace_id", hop->trace_id)}));
  }
  Buffer frames;
  if (!next.value().is_finished) {
    hop->stored = std::move(job.stored);
    hop->body = std::move(job.body);
    hop->to = with_exchange(std::move(next.value().to), exchanges_.missing());
    if (!put_hop(*hop, publish, header, next.value().fields, *job.plan, frames)) {
      refusals_.refuse(
          channel, job, 311,
          "the hop's content header is larger than the broker's frame_max, or its headers table is "
          "malformed");
      return;
    }
  }
  if (state_.shared.taps.is_on()) {
    const auto& claim = hop->stored.claim();
    const bool goes = !next.value().is_finished;
    tell(state_,
         tap_line(state_, {publish.exchange, publish.routing_key, goes ? hop->to.exchange : publish.exchange,
                           goes ? hop->to.routing_key : publish.routing_key, job.plan, header.body_bytes,
                           claim ? &*claim : nullptr, next.value().fields, fields}));
  }
  hop->header = std::move(job.header);
  if (channel.confirm) hop->client_tag = tracker_.take_local_tag(channel);
  if (hop->input_tag) channel.tags.give(*hop->input_tag, TagWindow::Owner::bellhop);
  if (next.value().is_finished) {
    // One too many finishes nothing.
    if (!next.value().was_finished) state_.meter.hopped(hop->pipeline, hop->result_of, HopOutcome::finished);
    settled(channel, *hop, true, false, 0, {});
    return;
  }
  hop->stored.sent();
  hop->pending = Pending(channel.pending);
  hop->memory = MemoryLease(memory_, MemoryUse::publish, frames.size() + hop->body.size());
  PrivateChannel::Item item;
  item.exchange = hop->to.exchange;
  item.routing_key = hop->to.routing_key;
  item.message_id = hop->message_id;
  item.frames = std::move(frames);
  if (!hop->to.pipeline.empty() && !exchanges_.know(hop->to.pipeline)) {
    item.prepare = [this, hop](PrivateChannel::Item& sent) { choose_way(*hop, sent); };
  }
  item.done = [this, hop](const PrivateChannel::Outcome& outcome) { on_outcome(hop, outcome); };
  private_channel_->post(std::move(item));
}

// The broker has said whether the pipeline has an exchange.
void Hops::choose_way(Hop& hop, PrivateChannel::Item& item) {
  Destination to = with_exchange(hop.to, exchanges_.missing());
  if (to.exchange == hop.to.exchange) return;
  auto publish = proto::split_frame(item.frames, state_.broker_frame_bytes_max).frame;
  const bool immediate = proto::decode_publish(publish.payload).value().immediate;
  Buffer frames;
  proto::put_publish(frames, publish.channel, {to.exchange, to.routing_key, true, immediate});
  put(frames, Bytes(item.frames).subspan(publish.raw.size()));
  item.frames = std::move(frames);
  item.exchange = to.exchange;
  item.routing_key = to.routing_key;
  hop.to = std::move(to);
}

void Hops::on_outcome(const std::shared_ptr<Hop>& hop, const PrivateChannel::Outcome& outcome) {
  using Kind = PrivateChannel::Outcome::Kind;
  const bool is_lost = outcome.kind == Kind::returned || outcome.kind == Kind::refused;
  // The broker's exchanges have changed.
  if (!hop->to.pipeline.empty() && is_lost && (outcome.code == 404 || hop->to.exchange.empty()))
    exchanges_.forget(hop->to.pipeline);
  if (outcome.kind != Kind::returned) {
    end(*hop, outcome);
    return;
  }
  const auto returned = [this, hop, outcome](BrokerExchanges::Keeps keeps) {
    hop->no_queue_has_it = keeps == BrokerExchanges::Keeps::nothing;
    end(*hop, keeps == BrokerExchanges::Keeps::messages ? PrivateChannel::Outcome{} : outcome);
  };
  if (auto keeps = exchanges_.ask_what_it_keeps(hop->to.exchange, returned)) returned(*keeps);
}

void Hops::end(Hop& hop, const PrivateChannel::Outcome& outcome) {
  using Kind = PrivateChannel::Outcome::Kind;
  hop.memory.end();
  hop.pending.end();
  state_.meter.hopped(hop.pipeline, hop.result_of,
                      outcome.kind == Kind::acked      ? HopOutcome::forwarded
                      : outcome.kind == Kind::returned ? HopOutcome::returned
                                                       : HopOutcome::refused);
  Channel* channel = channels_.find(hop.channel, hop.generation);
  if (channel != nullptr) {
    settled(*channel, hop, outcome.kind == Kind::acked, outcome.kind == Kind::returned, outcome.code,
            outcome.text);
  }
  // Refused before it was routed, or returned by an exchange that keeps nothing.
  if (outcome.kind == Kind::refused || hop.no_queue_has_it) hop.stored.undo();
}

bool Hops::put_hop(Hop& hop, const proto::Publish& publish, const proto::ContentHeader& header,
                   Bytes slip_fields, const config::Plan& plan, Buffer& frames) {
  Buffer fields(slip_fields.begin(), slip_fields.end());
  proto::HeaderEdits edits;
  edits.drop_user_id = put_renamed_fields(fields, header, state_.broker_user);
  if (proto::find_field(header.header_fields(), attempt_header))
    proto::put_field(fields, attempt_header, int64_t{1});
  const std::optional<Claim>& claim = hop.stored.claim();
  proto::UuidGenerator::Text fresh_id{};
  hop.message_id = fill_in(edits, plan, header, state_.uuids, fresh_id);
  const bool frame_it = needs_inline_prefix(plan.claim_check, proto::framing_of(hop.body));
  Buffer body;
  if (claim) {
    put_claim_headers(fields, *claim, true);  // the slip was in it
    put(body, proto::claim_check_prefix);
    put(body, as_bytes(claim->key));
  } else if (frame_it) {
    put(body, proto::claim_inline_prefix);
    put(body, hop.body);
  }
  Bytes sent_body = claim || frame_it ? Bytes(body) : Bytes(hop.body);
  edits.body_bytes = sent_body.size();
  edits.append = fields;
  Dropped dropped{slip_fields};
  edits.keep = keep_in_hop;
  edits.keep_context = &dropped;
  uint16_t id = private_channel_->id();
  proto::put_publish(frames, id, {hop.to.exchange, hop.to.routing_key, true, publish.immediate});
  if (!proto::put_content_header(frames, id, header, edits, state_.broker_frame_bytes_max)) return false;
  proto::put_body_frames(frames, id, sent_body, state_.broker_frame_bytes_max);
  return true;
}

// For a log.
LogFields Hops::about(const Channel& channel, const Hop& hop) const {
  LogFields fields = state_.who({{"channel", channel.id},
                                 {"exchange", hop.to.exchange},
                                 {"routing_key", hop.to.routing_key},
                                 if_known("pipeline", hop.pipeline),
                                 if_known("step", hop.step),
                                 if_known("run", hop.run_id),
                                 {"message_id", hop.message_id},
                                 if_known("trace_id", hop.trace_id)});
  if (const auto& claim = hop.stored.claim()) fields.add({{"store", claim->store}, {"key", claim->key}});
  return fields;
}

void Hops::settled(Channel& channel, Hop& hop, bool acked, bool returned, uint16_t code,
                   const std::string& text) {
  if (channel.end.is_local() || channel.end.is_broker_closing()) return;
  if (hop.input_tag && channel.tags.owner(*hop.input_tag) == TagWindow::Owner::bellhop) {
    if (acked) {
      proxy_acks_.ack(channel, *hop.input_tag);
    } else {
      channel.tags.give(*hop.input_tag, TagWindow::Owner::client);
    }
  }
  if (acked && logs(spdlog::level::debug))
    log_debug("hop confirmed", about(channel, hop).add({"size", hop.size_bytes}));
  if (!acked) {
    tell_trouble("hop failed", hop.to.exchange + "/" + hop.to.routing_key + ": " + subject_of_reason(text),
                 "hop failed", about(channel, hop).add({{"code", code}, {"reason", text}}));
    if (returned && hop.mandatory) hand_back(channel, hop, code, text);
  }
  if (channel.confirm) {
    tracker_.settle_local(channel, hop.client_tag, !acked);
  } else if (!acked) {
    uint16_t close_code = returned ? uint16_t{312} : code != 0 ? code : uint16_t{541};
    closing_.close(channel, close_code,
                   "the hop to exchange '" + hop.to.exchange + "', routing key '" + hop.to.routing_key +
                       "' failed: " + text,
                   proto::method::basic_publish);
  }
}

// basic.return with the client's own publish: exchange bellhop.next, its key, headers and body.
void Hops::hand_back(Channel& channel, Hop& hop, uint16_t code, const std::string& text) {
  auto delivery = std::make_shared<Delivery>();
  delivery->channel = channel.id;
  delivery->generation = channel.generation;
  delivery->kind = DeliveryKind::returned;
  delivery->no_ack = true;
  delivery->client_tag = hop.client_tag;
  if (hop.client_tag != 0) channel.confirms.await_return(hop.client_tag);
  Buffer method;
  proto::put_return(method, channel.id, {code, text, next_exchange, hop.routing_key});
  if (const auto& claim = hop.stored.claim()) {
    delivery->method.assign(method.begin() + proto::frame_head_bytes, method.end() - 1);
    delivery->header = std::move(hop.header);
    delivery->key = claim->key;
    delivery->named_store = claim->store;
    delivery->expected = {claim->size_bytes, claim->xxh128};
    delivery->stored = std::move(hop.stored);
    delivery->stored.returned(hop.no_queue_has_it);
  } else {
    delivery->frames = std::move(method);
    proto::put_frame(delivery->frames, proto::frame_header, channel.id, hop.header);
    proto::put_body_frames(delivery->frames, channel.id, hop.body, state_.frame_bytes_max);
  }
  lower_.hand_back(channel, std::move(delivery));
}

}  // namespace bellhop
