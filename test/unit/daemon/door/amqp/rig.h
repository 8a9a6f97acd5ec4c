// A session's parts without socket, broker or store: frames go in, frames come out, time passes when a test
// says so, and a test gives the stores' answers.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/load.h"
#include "daemon/claims/memory_object.h"
#include "daemon/door/amqp/session/relay.h"
#include "test/support/catch.h"
#include "test/unit/daemon/door/amqp/frames.h"

namespace bellhop::test {

// Runs tasks when a test says so, in the order posted.
class TaskQueue : public Executor {
 public:
  void post(std::function<void()> task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  // False: there was none.
  bool run() {
    std::deque<std::function<void()>> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
    }
    for (const auto& task : tasks) task();
    return !tasks.empty();
  }

 private:
  std::mutex mutex_;
  std::deque<std::function<void()>> tasks_;
};

// A store whose answers a test gives.
class ScriptedStore : public ClaimStore {
 public:
  explicit ScriptedStore(std::string name) : ClaimStore(std::move(name), proto::KeyRule::any) {}

  struct Put {
    std::string bytes;
    std::function<void(Result<Claim>)> done;  // set when the last piece came
    bool is_dropped = false;
  };
  struct Asked {
    std::string key;
    std::weak_ptr<FetchWatch> watch;
    std::function<void(FetchResult)> done;
  };
  std::vector<std::shared_ptr<Put>> puts;
  std::deque<Asked> asked;
  std::vector<std::string> removed;

  std::unique_ptr<Upload> begin(uint64_t, std::shared_ptr<Executor>) override {
    puts.push_back(std::make_shared<Put>());
    return std::make_unique<ScriptedUpload>(puts.back());
  }
  void remove(const std::string& key) override { removed.push_back(key); }

  // The upload's object is there.
  void store(size_t which, const std::string& key) {
    puts.at(which)->done(Claim{name(), key, puts[which]->bytes.size(), std::string(32, '0')});
  }
  // Answers the oldest question.
  void give(std::string_view payload) {
    FetchResult result;
    result.object = std::make_shared<MemoryObject>(
        std::make_shared<const Buffer>(as_bytes(payload).begin(), as_bytes(payload).end()));
    answer(std::move(result));
  }
  // The object is not in memory: its pieces come when the tasks are run.
  void give_in_pieces(std::string_view payload) {
    struct InPieces : MemoryObject {
      using MemoryObject::MemoryObject;
      const Buffer* in_memory() const override { return nullptr; }
    };
    FetchResult result;
    result.object = std::make_shared<InPieces>(
        std::make_shared<const Buffer>(as_bytes(payload).begin(), as_bytes(payload).end()));
    answer(std::move(result));
  }
  void say(FetchFailure::Kind kind, const std::string& reason) { answer({nullptr, {kind, reason}}); }

 private:
  class ScriptedUpload : public Upload {
   public:
    explicit ScriptedUpload(std::shared_ptr<Put> put) : put_(std::move(put)) {}
    ~ScriptedUpload() override { put_->is_dropped = true; }
    void write(Buffer piece, std::function<void(size_t)> written) override {
      put_->bytes += as_text(piece);
      written(piece.size());
    }
    void finish(std::function<void(Result<Claim>)> done) override { put_->done = std::move(done); }

   private:
    const std::shared_ptr<Put> put_;
  };

  void answer(FetchResult result) {
    REQUIRE(!asked.empty());
    auto done = std::move(asked.front().done);
    asked.pop_front();
    done(std::move(result));
  }
  void fetch_redeemable(FetchRequest request) override {
    asked.push_back({request.key, request.wanted, std::move(request.done)});
  }
};

class Rig : private SessionHost {
 public:
  static constexpr uint16_t private_id = 9;

  // `yaml` beside the broker's url. Has the stores "first" (the claim check's own) and "second".
  explicit Rig(const std::string& yaml = {}) {
    config::Loaded loaded = config::load_text(
        "broker: { url: amqp://localhost }\nstores: { first: { type: memory }, second: { type: memory } }\n" +
            yaml + (yaml.find("claim_check:") == std::string::npos ? "claim_check: { store: first }\n" : ""),
        "test");
    REQUIRE(loaded.errors == std::vector<std::string>{});
    config = std::make_shared<const config::Config>(std::move(loaded.config));
    first = std::make_shared<ScriptedStore>("first");
    second = std::make_shared<ScriptedStore>("second");
    shared.meter = std::make_unique<Meter>(*config);
    shared.current.set(snapshot_of(config, {first, second}));
    shared.budget = std::make_unique<Budget>(config->limits.inflight_bytes);
    shared.hop_bodies = std::make_unique<Quota>(config->limits.inflight_bytes);
    state.emplace(shared, 1, Door::unix_socket, "unix uid=1");
    state->frame_bytes_max = state->broker_frame_bytes_max = 4096;
    state->client_channel_max = 100;
    state->private_channel_id = private_id;
    memory.emplace(*shared.budget, shared.held_for_clients);
    relay.emplace(*state, static_cast<SessionHost&>(*this), *memory, client_outbox, broker_outbox, tasks);
  }
  ~Rig() {
    relay.reset();
    CHECK(memory->held_bytes() == 0);
  }

  // What a configuration is while it is in use.
  std::shared_ptr<const Snapshot> snapshot_of(const std::shared_ptr<const config::Config>& config,
                                              std::vector<std::shared_ptr<ClaimStore>> stores) {
    shared.meter->add_names(*config);
    auto made = std::make_shared<Snapshot>();
    made->generation = shared.current.generation() + 1;
    made->config = config;
    made->names = shared.meter->names();
    made->routing = std::make_unique<config::RoutingTable>(
        config, [&names = *made->names](const std::string& route) { return names.route(route); });
    made->stores = std::make_unique<Stores>(std::move(stores), config->claim_check.store);
    made->origin = config->service + "@host";
    return made;
  }
  // The configuration is another from the next turn on.
  void use(const std::shared_ptr<const Snapshot>& next) {
    shared.current.set(next);
    relay->use(next);
  }

  // The client, or the broker, says this; one turn follows. What the client says is read as a session reads
  // it: publishes that are whole at once, all else frame by frame.
  void client(const Buffer& frames) {
    for (Bytes rest = frames; !rest.empty();) {
      rest = rest.subspan(relay->on_whole_publishes(rest));
      if (!rest.empty()) rest = rest.subspan(client_frame(rest));
    }
    turn();
  }
  void client_by_frames(const Buffer& frames) {
    for (Bytes rest = frames; !rest.empty();) rest = rest.subspan(client_frame(rest));
    turn();
  }
  void broker(const Buffer& frames) {
    const std::vector<Buffer> each = split(frames);
    for (const Buffer& raw : each) {
      const proto::Frame frame = proto::whole_frame(raw);
      REQUIRE((frame.channel == private_id ? relay->on_private_frame(frame) : relay->on_broker_frame(frame)));
    }
    turn();
  }
  void turn() {
    while (tasks->run()) {
    }
    relay->pump();
    relay->detach_client_frames();
    relay->detach_broker_frames();
    client_outbox.own();
    broker_outbox.own();
  }
  // Time passes; what is due then happens.
  void wait_ms(uint64_t ms) {
    now += ms;
    relay->tick();
    turn();
  }
  std::string to_client() { return taken(client_outbox); }
  std::string to_broker() { return taken(broker_outbox); }

  // An open channel, whose frames are taken already.
  void open(uint16_t channel = 1) {
    client(method_frame(channel, proto::method::channel_open, [](Buffer& out) { out.push_back(0); }));
    to_broker();
  }
  void open_with_confirms(uint16_t channel = 1) {
    open(channel);
    client(method_frame(channel, proto::method::confirm_select, [](Buffer& out) { out.push_back(0); }));
    to_broker();
  }
  void open_with_consumer(const std::string& queue, bool no_ack = false) {
    open();
    client(consume(1, queue, "c", no_ack));
    broker(named(1, proto::method::basic_consume_ok, "c"));
    to_broker();
    to_client();
  }
  // The broker opens the private channel, and takes `count` messages that wait for that.
  void open_private_channel() {
    broker(method_frame(private_id, proto::method::channel_open_ok, [](Buffer& out) { put_u32(out, 0); }));
    broker(method_frame(private_id, proto::method::confirm_select_ok));
  }
  Channel& channel(uint16_t id = 1) {
    Channel* found = relay->channels().find(id);
    REQUIRE(found != nullptr);
    return *found;
  }

  Shared shared;
  std::shared_ptr<const config::Config> config;
  std::shared_ptr<ScriptedStore> first, second;
  const std::shared_ptr<TaskQueue> tasks = std::make_shared<TaskQueue>();
  Outbox client_outbox, broker_outbox;
  std::optional<SessionState> state;
  std::optional<SessionMemory> memory;
  std::optional<Relay> relay;
  uint64_t now = 1'000'000;
  std::string connection_closed;  // "504 CHANNEL_ERROR - …"

 private:
  size_t client_frame(Bytes from) {
    const auto split = proto::split_frame(from, 1 << 20);
    REQUIRE(split.status == proto::Split::frame);
    REQUIRE(relay->on_client_frame(split.frame));
    return split.frame.raw.size();
  }
  uint64_t now_ms() const override { return now; }
  void wake_within(uint64_t) override {}
  void close_connection(uint16_t code, const std::string& text, uint32_t) override {
    connection_closed = std::to_string(code) + " " + text;
  }
};

}  // namespace bellhop::test
