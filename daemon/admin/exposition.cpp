#include "daemon/admin/exposition.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <utility>

#include "daemon/admin/process_numbers.h"
#include "daemon/ops/log.h"

namespace bellhop {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

double seconds_of(uint64_t ms) {
  return static_cast<double>(ms) / 1000;
}

// The families in the order in which they are begun; what is added goes to the last one.
class Families {
 public:
  void counter(const char* name, const char* help) { begin(name, help, MetricType::Counter); }
  void gauge(const char* name, const char* help) { begin(name, help, MetricType::Gauge); }
  void histogram(const char* name, const char* help) { begin(name, help, MetricType::Histogram); }

  void add(double value, Labels labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.counter.value = metric.gauge.value = value;
    all_.back().metric.push_back(std::move(metric));
  }
  void add(uint64_t value, Labels labels = {}) { add(static_cast<double>(value), std::move(labels)); }
  void add(const Durations& durations, Labels labels) {
    ClientMetric metric;
    metric.label = std::move(labels);
    uint64_t below = 0;
    for (size_t i = 0; i < Durations::bounds_ms.size(); ++i) {
      below += durations.buckets[i];
      metric.histogram.bucket.push_back({below, seconds_of(Durations::bounds_ms[i])});
    }
    metric.histogram.sample_count = durations.count();
    metric.histogram.sample_sum = seconds_of(durations.sum_ms);
    all_.back().metric.push_back(std::move(metric));
  }
  // One line for each word of a fixed set.
  template <typename Values, typename Names>
  void add_each(const Values& values, const Names& names, const char* label, const Labels& common = {}) {
    for (size_t i = 0; i < names.size(); ++i) {
      Labels labels = common;
      labels.push_back({label, names[i]});
      add(values[i], std::move(labels));
    }
  }
  std::string text() const { return prometheus::TextSerializer().Serialize(all_); }

 private:
  void begin(const char* name, const char* help, MetricType type) { all_.push_back({name, help, type, {}}); }
  std::vector<MetricFamily> all_;
};

void add_sessions(Families& out, const AdminSources& sources, const Totals& totals) {
  const Meter& meter = *sources.meter;
  out.gauge("bellhop_build_info", "The version that runs; always 1.");
  out.add(1.0, {{"version", sources.version}});
  out.gauge("bellhop_sessions", "Client connections now.");
  out.add_each(totals.sessions, door_names, "door");
  out.counter("bellhop_sessions_closed_total", "Client connections that ended, by why.");
  for (size_t door = 0; door < door_names.size(); ++door)
    out.add_each(totals.sessions_ended[door], session_end_names, "reason", {{"door", door_names[door]}});
  out.gauge("bellhop_broker_up",
            "1: a session is at the broker, or bellhop's own last look reached it and no login was refused.");
  out.add(meter.broker() == Meter::BrokerState::up ? 1.0 : 0.0);
  out.counter("bellhop_broker_connects_total", "Attempts to reach a broker, by how they ended.");
  out.add(meter.connects(), {{"result", "ok"}});
  out.add(meter.failed_connects(), {{"result", "failed"}});
  out.gauge("bellhop_broker_blocked", "Sessions that the broker blocks now (connection.blocked).");
  out.add(totals.blocked_sessions);
}

void add_messages(Families& out, const MetricNames& names, const Totals& totals) {
  out.counter("bellhop_publishes_total",
              "Publishes by route and by what became of them. unconfirmed: no confirm was asked for, or the "
              "connection ended before it.");
  for (size_t i = 0; i < names.routes.size(); ++i)
    out.add_each(totals.routes[i].outcomes, publish_outcome_names, "outcome", {{"route", names.routes[i]}});
  out.histogram("bellhop_publish_seconds", "From a publish until its confirm goes to the client.");
  for (size_t i = 0; i < names.routes.size(); ++i)
    out.add(totals.routes[i].until_confirmed, {{"route", names.routes[i]}});
  out.counter("bellhop_deliveries_total",
              "Messages handed to clients. relayed: as the broker sent them; inline: without their frame; "
              "restored: their payload came from a store.");
  out.add_each(totals.deliveries, delivery_path_names, "kind");
  out.gauge("bellhop_held_deliveries", "Deliveries that wait for a store which cannot be reached.");
  out.add(totals.held);
  out.counter("bellhop_parked_total", "Messages sent to their parked queue, by why.");
  out.add_each(totals.parked, park_reason_names, "reason");
  out.counter("bellhop_hops_total", "Results published to bellhop.next, by the step whose result it is.");
  for (size_t i = 0; i < names.steps.size(); ++i)
    out.add_each(totals.hops[i], hop_outcome_names, "outcome",
                 {{"pipeline", names.steps[i].pipeline}, {"step", names.steps[i].step}});
  out.counter("bellhop_slips_finished_total", "Routing slips whose last step is done.");
  out.add_each(totals.slips_finished, names.pipelines, "pipeline");
}

void add_stores(Families& out, const Meter& meter) {
  const auto all = meter.names();
  const NumberedNames& names = all->stores;
  std::vector<StoreTotals> stores;
  for (size_t i = 0; i < names.size(); ++i) stores.push_back(meter.store(i).totals());
  out.counter("bellhop_offloads_total", "Payloads that went into a store, or did not.");
  for (size_t i = 0; i < names.size(); ++i) {
    out.add(stores[i].uploads, {{"store", names[i]}, {"result", "ok"}});
    out.add(stores[i].failed_uploads, {{"store", names[i]}, {"result", "failed"}});
  }
  out.counter("bellhop_offload_bytes_total", "Bytes of payloads that went into a store.");
  for (size_t i = 0; i < names.size(); ++i) out.add(stores[i].uploaded_bytes, {{"store", names[i]}});
  out.counter("bellhop_restores_total", "Payloads that a store was asked for, each attempt, by its answer.");
  for (size_t i = 0; i < names.size(); ++i)
    out.add_each(stores[i].fetches, store_result_names, "result", {{"store", names[i]}});
  out.histogram("bellhop_store_seconds", "How long a store took for a payload.");
  for (size_t i = 0; i < names.size(); ++i) {
    for (size_t each = 0; each < store_operation_names.size(); ++each)
      out.add(stores[i].durations[each], {{"store", names[i]}, {"operation", store_operation_names[each]}});
  }
}

void add_process(Families& out, const AdminSources& sources) {
  out.gauge("bellhop_inflight_bytes", "Bodies in memory on their way in (limits.inflight_bytes).");
  out.add(sources.inflight_bytes());
  out.gauge("bellhop_scratch_bytes", "Bytes in scratch files.");
  out.add(sources.scratch_bytes());
  out.counter("bellhop_log_lines_dropped_total", "Log lines that nobody read fast enough.");
  out.add(log_lines_dropped());
  const ReloadView reload = sources.reload->view();
  out.gauge("bellhop_config_last_reload_successful",
            "1: the last attempt to read the configuration succeeded.");
  out.add(reload.last_was_successful ? 1.0 : 0.0);
  out.gauge("bellhop_config_last_reload_success_timestamp_seconds",
            "When the configuration in use was read, in Unix time.");
  out.add(std::chrono::duration<double>(reload.last_success.time_since_epoch()).count());
  out.gauge("bellhop_config_generation", "How often a configuration was taken into use; 1 at the start.");
  out.add(reload.generation);
  const ProcessNumbers process = process_numbers();
  out.counter("process_cpu_seconds_total", "User and system CPU time.");
  out.add(process.cpu_seconds);
  out.gauge("process_resident_memory_bytes", "Resident memory.");
  out.add(process.resident_bytes);
  out.gauge("process_virtual_memory_bytes", "Virtual memory.");
  out.add(process.virtual_bytes);
  out.gauge("process_open_fds", "Open descriptors.");
  out.add(process.open_descriptors);
  out.gauge("process_max_fds", "How many descriptors may be open.");
  out.add(process.descriptors_max);
  out.gauge("process_threads", "Threads.");
  out.add(process.threads);
  out.gauge("process_start_time_seconds", "When the process began, in Unix time.");
  out.add(std::chrono::duration<double>(sources.started_at.time_since_epoch()).count());
}

}  // namespace

std::string exposition(const AdminSources& sources) {
  Families out;
  const auto names = sources.meter->names();  // before the totals, which may then know more
  const Totals totals = sources.meter->totals();
  add_sessions(out, sources, totals);
  add_messages(out, *names, totals);
  add_stores(out, *sources.meter);
  add_process(out, sources);
  return out.text();
}

}  // namespace bellhop
