#include "controlplane/apiserver/flowcontrol/meters.h"

namespace keelson::apiserver::flowcontrol {
namespace {

using Labels = std::vector<std::string>;

const Labels kFlow = {"priority_level", "flow_schema"};
const Labels kLevel = {"priority_level"};

std::string Name(const char* name) { return std::string("apiserver_flowcontrol_") + name; }

metrics::Value& Count(const char* name, const char* help, const Labels& values) {
  return metrics::Counter(Name(name), help, kFlow).With(values);
}
metrics::Value& Gauge(const char* name, const char* help, const Labels& labels, const Labels& values) {
  return metrics::Gauge(Name(name), help, labels).With(values);
}
metrics::Histogram& Histogram(const char* name, const char* help, std::vector<double> bounds, Labels labels,
                              const Labels& values) {
  return metrics::Histograms(Name(name), help, std::move(bounds), std::move(labels)).HistogramWith(values);
}

std::vector<double> Seconds() { return {0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30}; }
std::vector<double> Shares() { return {0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1}; }

metrics::Histogram& Waited(const Labels& flow, const char* execute) {
  return Histogram("request_wait_duration_seconds", "Length of time a request spent waiting in its queue",
                   Seconds(), {"priority_level", "flow_schema", "execute"}, {flow[0], flow[1], execute});
}
metrics::Histogram& Took(const Labels& flow, const char* type) {
  return Histogram("request_execution_seconds", "Time with a seat; of watches, until they have begun",
                   Seconds(), {"priority_level", "flow_schema", "type"}, {flow[0], flow[1], type});
}
metrics::Value& NextS(const std::string& level, const char* bound) {
  return Gauge("next_s_bounds", "min and max, over queues, of S(oldest waiting request in queue)",
               {"priority_level", "bound"}, {level, bound});
}
metrics::Histogram& Use(const std::string& level, const char* phase) {
  return Histogram("priority_level_request_utilization",
                   "Requests waiting or executing as a share of how many may, sampled", Shares(),
                   {"phase", "priority_level"}, {phase, level});
}
metrics::Histogram& ReadOrWrite(const char* phase, const char* kind) {
  return Histogram("read_vs_write_current_requests",
                   "Requests waiting or executing as a share of how many may, sampled",
                   {0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1},
                   {"phase", "request_kind"}, {phase, kind});
}

}  // namespace

FlowMeters::FlowMeters(const std::string& the_level, const std::string& the_schema)
    : level(the_level),
      schema(the_schema),
      rejected(metrics::Counter(Name("rejected_requests_total"),
                                "Number of requests rejected by API Priority and Fairness subsystem",
                                {"priority_level", "flow_schema", "reason"})),
      dispatched(Count("dispatched_requests_total",
                       "Number of requests executed by API Priority and Fairness subsystem",
                       {level, schema})),
      waiting(Gauge("current_inqueue_requests", "Number of requests currently pending in queues", kFlow,
                    {level, schema})),
      waiting_seats(Gauge("current_inqueue_seats", "Number of seats currently pending in queues", kFlow,
                          {level, schema})),
      executing(
          Gauge("current_executing_requests", "Number of requests that have seats", kFlow, {level, schema})),
      executing_seats(Gauge("current_executing_seats", "Seats occupied by the currently executing requests",
                            kFlow, {level, schema})),
      no_accommodation(
          Count("request_dispatch_no_accommodation_total",
                "Number of times a dispatch attempt resulted in a non accommodation due to lack of "
                "available seats",
                {level, schema})),
      waited(Waited({level, schema}, "true")),
      waited_in_vain(Waited({level, schema}, "false")),
      took(Took({level, schema}, "regular")),
      took_watch(Took({level, schema}, "watch")),
      estimated(Histogram("work_estimated_seats",
                          "Number of estimated seats (maximum of initial and final seats)",
                          {1, 2, 4, 8, 16, 32, 64, 100}, kFlow, {level, schema})),
      queue_length(Histogram("request_queue_length_after_enqueue",
                             "Length of queue, as seen by each request after it is enqueued",
                             {0, 10, 25, 50, 100, 250, 500, 1000}, kFlow, {level, schema})),
      watchers(Histogram("watch_count_samples", "count of watchers for mutating requests",
                         {0, 1, 10, 100, 1000, 10000}, kFlow, {level, schema})) {}

LevelMeters::LevelMeters(const std::string& level)
    : nominal(Gauge("nominal_limit_seats",
                    "Nominal number of execution seats configured for each priority level", kLevel, {level})),
      lower(Gauge("lower_limit_seats",
                  "Configured lower bound on number of execution seats available to each priority level",
                  kLevel, {level})),
      upper(Gauge("upper_limit_seats",
                  "Configured upper bound on number of execution seats available to each priority level",
                  kLevel, {level})),
      current(Gauge("current_limit_seats",
                    "current derived number of execution seats available to each priority level", kLevel,
                    {level})),
      target(Gauge("target_seats", "Seat allocation targets", kLevel, {level})),
      demand_high(Gauge("demand_seats_high_watermark",
                        "High watermark, over last adjustment period, of demand_seats", kLevel, {level})),
      demand_average(Gauge("demand_seats_average",
                           "Time-weighted average, over last adjustment period, of demand_seats", kLevel,
                           {level})),
      demand_deviation(Gauge("demand_seats_stdev",
                             "Time-weighted standard deviation, over last adjustment period, of demand_seats",
                             kLevel, {level})),
      demand_smoothed(Gauge("demand_seats_smoothed", "Smoothed seat demands", kLevel, {level})),
      current_r(Gauge("current_r", "R(time of last change)", kLevel, {level})),
      dispatch_r(Gauge("dispatch_r", "R(time of last dispatch)", kLevel, {level})),
      latest_s(Gauge("latest_s", "S(most recently dispatched request)", kLevel, {level})),
      next_s_min(NextS(level, "min")),
      next_s_max(NextS(level, "max")),
      seat_use(Histogram("priority_level_seat_utilization",
                         "Seats in use as a share of those there are, sampled",
                         {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1},
                         {"phase", "priority_level"}, {"executing", level})),
      executing_share(Use(level, "executing")),
      waiting_share(Use(level, "waiting")),
      demand(Histogram("demand_seats", "Seats in use and waited for as a share of the nominal ones, sampled",
                       {0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.7, 2, 2.8, 4, 6}, kLevel, {level})) {}

void ObserveReadsAndWrites(double executing_reads, double executing_writes, double waiting_reads,
                           double waiting_writes) {
  static metrics::Histogram& reads = ReadOrWrite("executing", "readOnly");
  static metrics::Histogram& writes = ReadOrWrite("executing", "mutating");
  static metrics::Histogram& late_reads = ReadOrWrite("waiting", "readOnly");
  static metrics::Histogram& late_writes = ReadOrWrite("waiting", "mutating");
  reads.Observe(executing_reads);
  writes.Observe(executing_writes);
  late_reads.Observe(waiting_reads);
  late_writes.Observe(waiting_writes);
}

}  // namespace keelson::apiserver::flowcontrol
