#include "daemon/cli/inspect/peek.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <ctime>
#include <nlohmann/json.hpp>

#include "config/load.h"
#include "daemon/cli/inspect/message_view.h"
#include "daemon/cli/inspect/payload_output.h"
#include "daemon/cli/inspect/words.h"
#include "daemon/ops/errno_text.h"

namespace bellhop {

namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

class Peek {
 public:
  Peek(const PeekOptions& options, ObjectSearch& search, std::ostream& out, std::ostream& err)
      : options_(options), search_(search), out_(out), err_(err) {}

  void begin(const VisitedQueue& found) {
    total_ = found.counts.messages;
    const std::string type = name_of(found.kind.type);
    json_ = {{"queue", options_.visit.queue}, {"vhost", found.vhost}, {"broker", found.broker}};
    json_["type"] = type.substr(0, type.find(' '));
    json_["messages"] = found.counts.messages;
    json_["consumers"] = found.counts.consumers;
    json_["shown"] = Json::array();
    is_stream_ = found.kind.type == QueueKind::Type::stream;
    if (options_.json) return;
    out_ << fmt::format("{} '{}' at {}: ", type, printable(options_.visit.queue), found.broker);
    // A stream's count is not to be had everywhere.
    if (!is_stream_) out_ << counted(found.counts.messages, "message") << ", ";
    out_ << counted(found.counts.consumers, "consumer") << '\n';
  }

  bool show(const Incoming& message, uint64_t number) {
    ++shown_;
    const MessageView view(message);
    std::optional<ClaimReport> report;
    if (view.claim()) {
      report = ClaimReport{
          view.claim()->key, search_.find({*view.claim()}).front(), view.claim()->headers.expected, {}};
    }
    const ClaimReport* const claim = report ? &*report : nullptr;
    const FoundObject* const object = report ? &report->object : nullptr;
    const int64_t now_s = std::time(nullptr);
    Json json = json_of(view, number, claim, now_s);
    std::string words = "\n" + in_words(view, number, claim, now_s);
    if (options_.body) add_payload(view, number, object, json, words);
    if (options_.json)
      json_["shown"].push_back(json);
    else
      out_ << words << std::flush;
    if (options_.save_dir) save(view, number, object, json);
    return true;
  }

  int end(int code) {
    if (options_.json) {
      if (!json_.is_null()) out_ << dumped(json_);
    } else if (shown_ > 0 && !is_stream_ && total_ > shown_) {
      out_ << fmt::format("\n{} of {}; -n shows more\n", shown_, counted(total_, "message"));
    }
    return code != 0 ? code : code_;
  }

 private:
  void add_payload(const MessageView& view, uint64_t number, const FoundObject* object, Json& json,
                   std::string& words) {
    const auto start = payload_start(view, object, search_);
    if (!start) {
      problem(view.name(number) + ": its payload cannot be shown: " + start.error());
      return;
    }
    json["payload"] = json_of(start.value());
    words += "  payload\n" + in_words(start.value());
  }

  void save(const MessageView& view, uint64_t number, const FoundObject* object, const Json& json) {
    const std::string stem = fmt::format("{}/{:04}", *options_.save_dir, number);
    if (auto saved = save_text(dumped(json), stem + ".json"); !saved) problem(saved.error());
    if (auto saved = save_payload(view, object, search_, stem + ".payload"); !saved)
      problem(view.name(number) + ": its payload is not saved: " + saved.error());
  }

  void problem(const std::string& text) {
    err_ << "bellhop: " << printable(text, 2000) << '\n';
    code_ = 1;
  }

  const PeekOptions& options_;
  ObjectSearch& search_;
  std::ostream& out_;
  std::ostream& err_;
  Json json_;
  uint64_t total_ = 0, shown_ = 0;
  bool is_stream_ = false;
  int code_ = 0;
};

}  // namespace

int peek(const std::string& config_file, const PeekOptions& options, std::ostream& out, std::ostream& err) {
  const config::Loaded loaded = config::load_file(config_file);
  for (const std::string& error : loaded.errors) err << error << '\n';
  if (!loaded.errors.empty()) return 2;
  if (options.save_dir && ::mkdir(options.save_dir->c_str(), 0700) != 0 && errno != EEXIST) {
    err << fmt::format("bellhop: --save: {}: {}\n", *options.save_dir, errno_text(errno));
    return 2;
  }
  const auto search = ObjectSearch::open(loaded.config);
  if (!search) {
    err << search.error() << '\n';
    return 1;
  }
  Peek peek(options, *search.value(), out, err);
  return peek.end(visit_queue(
      loaded.config, options.visit, err, [&](const VisitedQueue& found) { peek.begin(found); },
      [&](const Incoming& message, uint64_t number) { return peek.show(message, number); }));
}

}  // namespace bellhop
