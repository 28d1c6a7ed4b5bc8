// Counters, gauges and histograms with labels, printed in Prometheus text form (version 0.0.4). A family is
// made once at start, by name, and lives as long as the process. Observing is lock-free after the first use
// of a label set if the caller keeps the reference that With() returned.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/mutex.h"

namespace keelson::metrics {

class Value {  // a counter or a gauge
 public:
  void Add(double by) {
    double now = value_.load(std::memory_order_relaxed);
    while (!value_.compare_exchange_weak(now, now + by, std::memory_order_relaxed)) {
    }
  }
  void Increment() { Add(1); }
  void Set(double to) { value_.store(to, std::memory_order_relaxed); }
  double Get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Histogram {
 public:
  explicit Histogram(const std::vector<double>& bounds);
  void Observe(double value);

  const std::vector<double>& bounds() const { return bounds_; }
  uint64_t BucketCount(size_t i) const { return counts_[i].load(std::memory_order_relaxed); }
  double Sum() const { return sum_.Get(); }

 private:
  std::vector<double> bounds_;
  std::unique_ptr<std::atomic<uint64_t>[]> counts_;  // one more than bounds: the last is +Inf
  Value sum_;
};

enum class Type { kCounter, kGauge, kHistogram };

// One metric with all its label sets. Thread safe.
class Family {
 public:
  Family(Type type, std::string name, std::string help, std::vector<std::string> labels,
         std::vector<double> bounds);
  // The value for these label values: one per declared label, in order; made on first use. The reference
  // stays valid for the process's life, or until Remove() or Clear() of that label set.
  Value& With(const std::vector<std::string>& label_values = {});
  Histogram& HistogramWith(const std::vector<std::string>& label_values = {});
  void Remove(const std::vector<std::string>& label_values);
  void Clear();
  void Print(std::string& out) const;

 private:
  const Type type_;
  const std::string name_, help_;
  const std::vector<std::string> labels_;
  const std::vector<double> bounds_;
  mutable Mutex mutex_;
  std::map<std::vector<std::string>, std::unique_ptr<Value>> values_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::vector<std::string>, std::unique_ptr<Histogram>> histograms_ KEELSON_GUARDED_BY(mutex_);
};

// The process's families. A second call with the same name returns the same family.
Family& Counter(std::string_view name, std::string_view help, std::vector<std::string> labels = {});
Family& Gauge(std::string_view name, std::string_view help, std::vector<std::string> labels = {});
Family& Histograms(std::string_view name, std::string_view help, std::vector<double> bounds,
                   std::vector<std::string> labels = {});
// Registers a function that every Print() calls first, to fill gauges that are read on demand.
void OnCollect(std::function<void()> collect);
// All families, plus process_* of this process, in the form /metrics serves.
std::string Print();

// `count` bounds: start, start*factor, start*factor^2, ...
std::vector<double> ExponentialBuckets(double start, double factor, int count);

}  // namespace keelson::metrics
