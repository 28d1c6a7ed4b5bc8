// Metrics of priority and fairness, with upstream's names.
#pragma once

#include <memory>
#include <string>

#include "lib/metrics/metrics.h"

namespace keelson::apiserver::flowcontrol {

// Metrics of one FlowSchema at one level.
struct FlowMeters {
  FlowMeters(const std::string& level, const std::string& schema);
  void Reject(const std::string& reason) { rejected.With({level, schema, reason}).Increment(); }

  const std::string level, schema;
  metrics::Family& rejected;
  metrics::Value &dispatched, &waiting, &waiting_seats, &executing, &executing_seats, &no_accommodation;
  metrics::Histogram &waited, &waited_in_vain, &took, &took_watch, &estimated, &queue_length, &watchers;
};

// Metrics of one level.
struct LevelMeters {
  explicit LevelMeters(const std::string& level);

  metrics::Value &nominal, &lower, &upper, &current, &target;
  metrics::Value &demand_high, &demand_average, &demand_deviation, &demand_smoothed;
  metrics::Value &current_r, &dispatch_r, &latest_s, &next_s_min, &next_s_max;
  metrics::Histogram &seat_use, &executing_share, &waiting_share, &demand;
};

// Samples executing and waiting requests, as fractions of their limits.
void ObserveReadsAndWrites(double executing_reads, double executing_writes, double waiting_reads,
                           double waiting_writes);

}  // namespace keelson::apiserver::flowcontrol
