// scheduler_perf [NAME...]: runs the whole scheduler against an API server in memory, in this process, and
// prints how many pods a second it binds; one line a workload. Creating the pods is in the time, as it is
// upstream. CPU is that of the whole process, so it includes the API server and who creates the pods; unlike
// the rate it is much the same on a machine that others use as well.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <numeric>
#include <thread>

#include <fmt/format.h>

#include "controlplane/scheduler/framework/metrics.h"
#include "controlplane/scheduler/scheduler.h"
#include "lib/base/log.h"
#include "lib/client/testing/fake_api.h"
#include "lib/metrics/metrics.h"
#include "tests/scheduler_perf/workload.h"

namespace keelson::scheduler::perf {

namespace {

constexpr std::chrono::seconds kPatience{120};

struct Figures {
  double pods_per_second = 0, p50 = 0, p99 = 0;  // of a result, in seconds
  int bound = 0;
  double cpu = 0;        // in seconds
  double decisions = 0;  // some pods take several
};

double CpuSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// Counts bindings of measured pods as they are asked for.
class Bindings {
 public:
  explicit Bindings(int expected) : expected_(expected) {}
  void See(const client::ApiRequest& request) {
    if (!request.target.ends_with("/binding") ||
        request.target.find("/pods/measured-") == std::string::npos) {
      return;
    }
    MutexLock lock(mutex_);
    last_ = std::chrono::steady_clock::now();
    if (++bound_ == expected_) all_.notify_all();
  }
  // How many, when the last of them.
  std::pair<int, SteadyTime> Await() {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    MutexLock lock(mutex_);
    while (bound_ < expected_) {
      if (all_.wait_until(mutex_, deadline) == std::cv_status::timeout) break;
    }
    return {bound_, last_};
  }

 private:
  const int expected_;
  Mutex mutex_;
  CondVar all_;
  int bound_ KEELSON_GUARDED_BY(mutex_) = 0;
  SteadyTime last_ KEELSON_GUARDED_BY(mutex_);
};

metrics::Histogram& Decisions() { return TheMetrics().decision_duration.HistogramWith(); }

std::vector<uint64_t> CountsOf(const metrics::Histogram& histogram) {
  std::vector<uint64_t> out;
  for (size_t i = 0; i <= histogram.bounds().size(); ++i) out.push_back(histogram.BucketCount(i));
  return out;
}

double Sum(const std::vector<uint64_t>& counts) {
  return static_cast<double>(std::accumulate(counts.begin(), counts.end(), uint64_t{0}));
}

// The upper bound of the bucket that holds the quantile.
double Quantile(const metrics::Histogram& histogram, const std::vector<uint64_t>& before, double share) {
  const std::vector<uint64_t> after = CountsOf(histogram);
  uint64_t all = 0, seen = 0;
  for (size_t i = 0; i < after.size(); ++i) all += after[i] - before[i];
  for (size_t i = 0; i < histogram.bounds().size(); ++i) {
    seen += after[i] - before[i];
    if (static_cast<double>(seen) >= share * static_cast<double>(all)) return histogram.bounds()[i];
  }
  return histogram.bounds().empty() ? 0 : histogram.bounds().back();
}

void Churn(const client::RestClient& api, const Workload& workload, std::stop_token stop) {
  Mutex mutex;
  CondVar wake;
  for (int i = 0; !stop.stop_requested(); ++i) {
    const corev1::Pod pod = workload.churn_pod(i);
    (void)api.Create(pod);
    corev1::Node node = workload.node(workload.nodes + i);
    if (workload.churn_node) (void)api.Create(node);
    {
      MutexLock lock(mutex);
      wake.wait_for(mutex, stop, workload.churn_interval, [] { return false; });
    }
    if (!workload.recreate) continue;
    (void)api.Delete<corev1::Pod>(pod.metadata().namespace_(), pod.metadata().name());
    if (workload.churn_node) (void)api.Delete<corev1::Node>("", node.metadata().name());
  }
}

Figures Measure(const Workload& workload) {
  auto fake = std::make_shared<client::FakeApi>();
  client::RestClient api(fake);
  for (const char* name : {"sched-0", "sched-1", "churn"}) {
    corev1::Namespace ns;
    ns.mutable_metadata()->set_name(name);
    fake->Put(ns);
  }
  for (const corev1::Service& service : workload.services) fake->Put(service);
  for (int i = 0; i < workload.nodes; ++i) fake->Put(workload.node(i));
  for (int i = 0; i < workload.init_pods; ++i) {
    corev1::Pod pod = workload.init_pod(i);
    pod.mutable_spec()->set_node_name(workload.node(i % workload.nodes).metadata().name());
    pod.mutable_status()->set_phase("Running");
    fake->Put(pod);
  }
  Bindings bindings(workload.measured_pods);
  fake->SetInterceptor([&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
    bindings.See(request);
    return std::nullopt;
  });
  std::atomic<bool> ready{false};
  Options options;
  options.seed = 1;
  std::jthread scheduler([&](std::stop_token stop) {
    const Result<> ran = Run(api, options, stop, [&] {
      ready = true;
      ready.notify_all();
    });
    if (!ran) std::cerr << ran.error().message() << "\n";
  });
  ready.wait(false);
  const std::vector<uint64_t> before = CountsOf(Decisions());
  std::jthread churn;
  if (workload.churn_pod) churn = std::jthread([&](std::stop_token stop) { Churn(api, workload, stop); });
  const SteadyTime start = std::chrono::steady_clock::now();
  const double cpu = CpuSeconds();
  for (int i = 0; i < workload.measured_pods; ++i) {
    if (auto created = api.Create(workload.measured_pod(i)); !created) {
      std::cerr << created.error().message() << "\n";
    }
  }
  const auto [bound, last] = bindings.Await();
  Figures figures;
  figures.bound = bound;
  figures.cpu = CpuSeconds() - cpu;
  figures.decisions = Sum(CountsOf(Decisions())) - Sum(before);
  figures.pods_per_second = bound / std::chrono::duration<double>(last - start).count();
  figures.p50 = Quantile(Decisions(), before, 0.5);
  figures.p99 = Quantile(Decisions(), before, 0.99);
  return figures;
}

int Main(const std::vector<std::string>& names) {
  log::SetLevel(log::Level::kError);
  bool complete = true;
  for (const Workload& workload : Workloads()) {
    if (!names.empty() && std::find(names.begin(), names.end(), workload.name) == names.end()) continue;
    const Figures figures = Measure(workload);
    std::cout << fmt::format("{} {} nodes: {:.0f} pods/s", workload.name, workload.nodes,
                             figures.pods_per_second);
    if (workload.threshold > 0) {
      std::cout << fmt::format(", {:.1f} times upstream's {}", figures.pods_per_second / workload.threshold,
                               workload.threshold);
    }
    const double pods = workload.measured_pods;
    std::cout << fmt::format(
        "; {:.0f} us of CPU and {:.1f} decisions a pod; p50 under {:.2f} ms, p99 under {:.2f} ms",
        figures.cpu / pods * 1e6, figures.decisions / pods, figures.p50 * 1e3, figures.p99 * 1e3);
    if (figures.bound < workload.measured_pods) {
      std::cout << fmt::format("; ONLY {} of {} bound", figures.bound, workload.measured_pods);
      complete = false;
    }
    std::cout << std::endl;
  }
  return complete ? 0 : 1;
}

}  // namespace

}  // namespace keelson::scheduler::perf

int main(int argc, char** argv) {
  return keelson::scheduler::perf::Main(std::vector<std::string>(argv + 1, argv + argc));
}
