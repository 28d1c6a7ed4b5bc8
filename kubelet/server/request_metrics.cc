#include "kubelet/server/request_metrics.h"

#include <algorithm>
#include <chrono>

#include "lib/metrics/metrics.h"

namespace keelson::kubelet::server {

namespace {

constexpr std::string_view kPaths[] = {"attach",
                                       "checkpoint",
                                       "configz",
                                       "containerLogs",
                                       "debug",
                                       "exec",
                                       "flagz",
                                       "healthz",
                                       "logs",
                                       "metrics",
                                       "metrics/cadvisor",
                                       "metrics/probes",
                                       "metrics/resource",
                                       "metrics/slis",
                                       "pods",
                                       "portForward",
                                       "run",
                                       "runningpods",
                                       "stats",
                                       "statusz"};
constexpr std::string_view kLongRunning[] = {"attach", "debug", "exec", "portForward"};
constexpr std::string_view kMethods[] = {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS",
                                         "PATCH",   "POST",   "PUT", "TRACE"};

template <size_t N>
bool Has(const std::string_view (&names)[N], const std::string& name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

std::string PathLabel(const std::string& path) {
  const size_t begin = path.find_first_not_of('/');
  if (begin == std::string::npos) return "other";
  size_t end = path.find('/', begin);
  if (path.compare(begin, end - begin, "metrics") == 0 && end != std::string::npos) {
    end = path.find('/', end + 1);
  }
  const std::string label = path.substr(begin, end == std::string::npos ? end : end - begin);
  return Has(kPaths, label) ? label : "other";
}

void CountRequest(const http::ServerRequest& request, http::ResponseWriter& writer,
                  const std::string& server_type) {
  static const std::vector<std::string> names = {"long_running", "method", "path", "server_type"};
  static metrics::Family& total = metrics::Counter(
      "kubelet_http_requests_total", "Number of the http requests received since the server started", names);
  static metrics::Family& inflight =
      metrics::Gauge("kubelet_http_inflight_requests", "Number of the inflight http requests", names);
  static metrics::Family& duration = metrics::Histograms(
      "kubelet_http_requests_duration_seconds", "Duration in seconds to serve http requests",
      {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}, names);
  const std::string path = PathLabel(request.path);
  const std::vector<std::string> labels = {Has(kLongRunning, path) ? "true" : "false",
                                           Has(kMethods, request.method) ? request.method : "other", path,
                                           server_type};
  total.With(labels).Increment();
  metrics::Value& now = inflight.With(labels);
  metrics::Histogram& times = duration.HistogramWith(labels);
  now.Increment();
  writer.OnClose([&now, &times, begin = std::chrono::steady_clock::now()] {
    now.Add(-1);
    times.Observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  });
}

}  // namespace keelson::kubelet::server
