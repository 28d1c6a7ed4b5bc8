#include "lib/metrics/metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "lib/base/file.h"
#include "lib/metrics/disable.h"
#include "lib/metrics/kubernetes_metrics.h"
#include "lib/metrics/text.h"

namespace keelson::metrics {
namespace {

struct Entry {
  Description description;
  std::unique_ptr<Family> family;
};

struct Registry {
  Mutex mutex;
  std::map<std::string, Entry, std::less<>> families KEELSON_GUARDED_BY(mutex);
  std::vector<std::function<void()>> collectors KEELSON_GUARDED_BY(mutex);
  std::set<std::string, std::less<>> disabled KEELSON_GUARDED_BY(mutex);
};

Registry& TheRegistry() {
  static Registry* registry = new Registry;
  return *registry;
}

constexpr const char* kTypes[] = {"counter", "gauge", "histogram"};

Family& Make(Type type, std::string_view name, std::string_view help, std::vector<std::string> labels,
             std::vector<double> bounds) {
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mutex);
  auto it = registry.families.find(name);
  if (it == registry.families.end()) {
    Description about{std::string(name), kTypes[static_cast<int>(type)], HelpWithStability(name, help),
                      std::move(labels), std::move(bounds)};
    auto family = std::make_unique<Family>(type, about.name, about.help, about.labels, about.bounds);
    it = registry.families.emplace(about.name, Entry{about, std::move(family)}).first;
  }
  return *it->second.family;
}

std::string Escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string LabelText(const std::vector<std::string>& names, const std::vector<std::string>& values,
                      std::string_view extra = {}) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < values.size(); ++i) {
    out += fmt::format("{}{}=\"{}\"", out.empty() ? "" : ",", names[i], Escape(values[i]));
  }
  if (!extra.empty()) out += fmt::format("{}{}", out.empty() ? "" : ",", extra);
  return out.empty() ? out : "{" + out + "}";
}

// The process's start time by the kernel: boot time plus the process's start after boot. 0 when unknown.
double ProcessStart() {
  auto own = ReadFile("/proc/self/stat");
  auto machine = ReadFile("/proc/stat");
  if (!own || !machine) return 0;
  // The name in brackets may contain anything; the times follow its closing bracket.
  const size_t name_end = own->rfind(')');
  const size_t boot = machine->find("\nbtime ");
  if (name_end == std::string::npos || boot == std::string::npos) return 0;
  unsigned long long ticks = 0;
  constexpr char kSkipped[] =
      " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu";
  if (std::sscanf(own->c_str() + name_end + 1, kSkipped, &ticks) != 1) return 0;
  return std::atof(machine->c_str() + boot + 7) +
         static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Bytes that the network namespace of this process has carried: the two octet counters at the end of IpExt.
void CollectTraffic() {
  auto text = ReadFile("/proc/self/net/netstat");
  if (!text) return;
  std::istringstream lines(*text);
  for (std::string names, values; std::getline(lines, names) && std::getline(lines, values);) {
    if (!names.starts_with("IpExt:")) continue;
    std::istringstream name_list(names), value_list(values);
    for (std::string name, value; name_list >> name && value_list >> value;) {
      if (name == "InOctets") {
        Counter("process_network_receive_bytes_total",
                "Number of bytes received by the process over the network.")
            .With()
            .Set(std::atof(value.c_str()));
      }
      if (name == "OutOctets") {
        Counter("process_network_transmit_bytes_total",
                "Number of bytes sent by the process over the network.")
            .With()
            .Set(std::atof(value.c_str()));
      }
    }
  }
}

void CollectProcess() {
  static const double start = ProcessStart();
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  Counter("process_cpu_seconds_total", "User and system CPU time spent in seconds.")
      .With()
      .Set(seconds(usage.ru_utime) + seconds(usage.ru_stime));
  if (auto statm = ReadFile("/proc/self/statm")) {
    long pages_virtual = 0, pages_resident = 0;
    if (std::sscanf(statm->c_str(), "%ld %ld", &pages_virtual, &pages_resident) == 2) {
      const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
      Gauge("process_resident_memory_bytes", "Resident memory size in bytes.")
          .With()
          .Set(static_cast<double>(pages_resident) * page);
      Gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.")
          .With()
          .Set(static_cast<double>(pages_virtual) * page);
    }
  }
  if (auto fds = ListDir("/proc/self/fd")) {
    Gauge("process_open_fds", "Number of open file descriptors.")
        .With()
        .Set(static_cast<double>(fds->size()));
  }
  CollectTraffic();
  rlimit files{};
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) == 0) {
    Gauge("process_virtual_memory_max_bytes", "Maximum amount of virtual memory available in bytes.")
        .With()
        .Set(static_cast<double>(space.rlim_cur));
  }
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    Gauge("process_max_fds", "Maximum number of open file descriptors.")
        .With()
        .Set(static_cast<double>(files.rlim_cur));
  }
  Gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.")
      .With()
      .Set(start);
}

// Metrics about metrics: counts of registered metrics by stability. None is ever disabled or hidden.
int CountDisabled() {
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mutex);
  int count = 0;
  for (const std::string& name : registry.disabled) count += registry.families.contains(name) ? 1 : 0;
  return count;
}

void CollectRegistered() {
  Family& registered =
      Counter("registered_metrics_total",
              "The count of registered metrics broken by stability level and deprecation version.",
              {"stability_level", "deprecated_version"});
  Counter("disabled_metrics_total", "The count of disabled metrics.").With().Set(CountDisabled());
  Counter("hidden_metrics_total", "The count of hidden metrics.").With();
  std::map<std::vector<std::string>, int> counts;
  for (const Description& one : Describe()) {
    if (const KubernetesMetric* known = FindKubernetesMetric(one.name)) {
      ++counts[{std::string(StabilityName(known->stability)), std::string(known->deprecated)}];
    }
  }
  for (const auto& [labels, count] : counts) registered.With(labels).Set(count);
}

}  // namespace

Histogram::Histogram(const std::vector<double>& bounds)
    : bounds_(bounds), counts_(new std::atomic<uint64_t>[bounds.size() + 1]()) {}

void Histogram::Observe(double value) {
  size_t i = static_cast<size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin());
  counts_[i].fetch_add(1, std::memory_order_relaxed);
  sum_.Add(value);
}

Family::Family(Type type, std::string name, std::string help, std::vector<std::string> labels,
               std::vector<double> bounds)
    : type_(type),
      name_(std::move(name)),
      help_(std::move(help)),
      labels_(std::move(labels)),
      bounds_(std::move(bounds)) {}

Value& Family::With(const std::vector<std::string>& label_values) {
  MutexLock lock(mutex_);
  auto& value = values_[label_values];
  if (!value) value = std::make_unique<Value>();
  return *value;
}

Histogram& Family::HistogramWith(const std::vector<std::string>& label_values) {
  MutexLock lock(mutex_);
  auto& histogram = histograms_[label_values];
  if (!histogram) histogram = std::make_unique<Histogram>(bounds_);
  return *histogram;
}

void Family::Remove(const std::vector<std::string>& label_values) {
  MutexLock lock(mutex_);
  values_.erase(label_values);
  histograms_.erase(label_values);
}

void Family::Clear() {
  MutexLock lock(mutex_);
  values_.clear();
  histograms_.clear();
}

void Family::Print(std::string& out) const {
  MutexLock lock(mutex_);
  if (values_.empty() && histograms_.empty()) return;
  out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name_, help_, name_, kTypes[static_cast<int>(type_)]);
  for (const auto& [labels, value] : values_) {
    out += fmt::format("{}{} {}\n", name_, LabelText(labels_, labels), value->Get());
  }
  for (const auto& [labels, histogram] : histograms_) {
    uint64_t total = 0;
    for (size_t i = 0; i <= histogram->bounds().size(); ++i) {
      total += histogram->BucketCount(i);
      std::string bound = i < histogram->bounds().size() ? FormatBound(histogram->bounds()[i]) : "+Inf";
      out +=
          fmt::format("{}_bucket{} {}\n", name_, LabelText(labels_, labels, "le=\"" + bound + "\""), total);
    }
    out += fmt::format("{}_sum{} {}\n", name_, LabelText(labels_, labels), histogram->Sum());
    out += fmt::format("{}_count{} {}\n", name_, LabelText(labels_, labels), total);
  }
}

Family& Counter(std::string_view name, std::string_view help, std::vector<std::string> labels) {
  return Make(Type::kCounter, name, help, std::move(labels), {});
}
Family& Gauge(std::string_view name, std::string_view help, std::vector<std::string> labels) {
  return Make(Type::kGauge, name, help, std::move(labels), {});
}
Family& Histograms(std::string_view name, std::string_view help, std::vector<double> bounds,
                   std::vector<std::string> labels) {
  return Make(Type::kHistogram, name, help, std::move(labels), std::move(bounds));
}

void OnCollect(std::function<void()> collect) {
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mutex);
  registry.collectors.push_back(std::move(collect));
}

std::string Print() {
  CollectProcess();
  Registry& registry = TheRegistry();
  std::vector<std::function<void()>> collectors;
  {
    MutexLock lock(registry.mutex);
    collectors = registry.collectors;
  }
  for (const auto& collect : collectors) collect();
  CollectRegistered();
  std::string out;
  MutexLock lock(registry.mutex);
  for (const auto& [name, entry] : registry.families) {
    if (!registry.disabled.contains(name)) entry.family->Print(out);
  }
  return out;
}

void Disable(const std::vector<std::string>& names) {
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mutex);
  registry.disabled.insert(names.begin(), names.end());
}

std::vector<Description> Describe() {
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mutex);
  std::vector<Description> out;
  for (const auto& [name, entry] : registry.families) out.push_back(entry.description);
  return out;
}

std::vector<double> ExponentialBuckets(double start, double factor, int count) {
  std::vector<double> bounds;
  for (int i = 0; i < count; ++i, start *= factor) bounds.push_back(start);
  return bounds;
}

}  // namespace keelson::metrics
