// pipelines: named sequences of steps. Pipeline P is exchange P; step s is queue P.s (proto/README.md,
// "Pipeline").
#include <set>
#include <unordered_map>

#include "config/load_sections.h"
#include "config/names.h"
#include "proto/routing_slip.h"

namespace bellhop::config {

namespace {

// Queue names are short strings too.
bool check_queue_name(const Value& value, const std::string& pipeline, const std::string& step) {
  const std::string queue = pipeline + "." + step;
  if (queue.size() <= short_string_bytes_max) return true;
  value.error("makes a queue's name (pipeline.step) of " + std::to_string(queue.size()) +
              " bytes, allowed: at most 255");
  return false;
}

// The pipeline that has a step of a name first.
using StepOwners = std::unordered_map<std::string, std::string>;

void warn_of_shared_step(const Value& item, const std::string& pipeline, const std::string& step,
                         StepOwners& owners) {
  const auto [owner, is_new] = owners.emplace(step, pipeline);
  if (is_new || owner->second == pipeline) return;
  item.warning(quoted(step) + " is also a step of pipeline " + quoted(owner->second) +
               ": a worker before it has to say which one it means, with the header bellhop-ack or with the "
               "pipeline's name as the routing key; bellhop refuses its hop otherwise");
}

std::vector<std::string> read_steps(const std::string& pipeline, const Value& value, StepOwners& owners) {
  std::vector<std::string> steps;
  std::set<std::string> seen;
  bool good = true;
  const auto items = value.sequence("step names");
  if (!items) return steps;
  for (const Value& item : *items) {
    const auto name = item.text();
    bool step_good = name.has_value();
    if (name && !proto::is_step_name(*name)) {
      item.error_with_value("is no step's name, allowed: " + std::string(proto::step_name_rule));
      step_good = false;
    } else if (name && !seen.insert(*name).second) {
      item.error_with_value("is there twice, allowed: once in a pipeline");
      step_good = false;
    } else if (name) {
      step_good = check_queue_name(item, pipeline, *name);
    }
    if (step_good) warn_of_shared_step(item, pipeline, *name, owners);
    good = good && step_good;
    if (name) steps.push_back(*name);
  }
  if (good) {
    const auto slip = proto::RoutingSlip::start_of(steps, "00000000-0000-4000-8000-000000000000");
    if (!slip) value.error(slip.error());
  }
  return steps;
}

}  // namespace

void load_pipelines(Section& root, Config& config) {
  const auto value = root.find("pipelines");
  if (!value) return;
  const auto entries = value->named("pipelines, each with its steps");
  if (!entries) return;
  StepOwners owners;
  for (const auto& [name, item] : *entries) {
    Pipeline pipeline;
    pipeline.name = name;
    Section section(item);
    if (section.ok()) {
      if (check_name(item, name)) check_exchange(item, name);
      if (const auto steps = section.find("steps"))
        pipeline.steps = read_steps(name, *steps, owners);
      else
        section.missing("steps", "is missing, allowed: a list of step names");
      section.read("declare", pipeline.declare);
      section.read("dead_letter", pipeline.dead_letter);
      if (pipeline.declare && name.starts_with("amq."))
        item.error(
            "declares an exchange whose name starts with amq., which the broker keeps for itself, allowed: "
            "another name or declare: false");
      section.finish();
    }
    config.pipelines.push_back(std::move(pipeline));
  }
}

}  // namespace bellhop::config
