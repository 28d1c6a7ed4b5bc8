#include "kubelet/image/pull_metrics.h"

#include <algorithm>
#include <cctype>

#include "kubelet/metrics/buckets.h"
#include "lib/base/text.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

std::string ImageSizeLabel(uint64_t bytes) {
  constexpr uint64_t kMb = 1024 * 1024, kGb = 1024 * kMb;
  struct Size {
    uint64_t above;
    const char* label;
  };
  constexpr Size kSizes[] = {{100 * kGb, "GT100GB"},     {60 * kGb, "60GB-100GB"}, {40 * kGb, "40GB-60GB"},
                             {30 * kGb, "30GB-40GB"},    {20 * kGb, "20GB-30GB"},  {10 * kGb, "10GB-20GB"},
                             {5 * kGb, "5GB-10GB"},      {kGb, "1GB-5GB"},         {500 * kMb, "500MB-1GB"},
                             {100 * kMb, "100MB-500MB"}, {10 * kMb, "10MB-100MB"}, {0, "0-10MB"}};
  for (const Size& size : kSizes) {
    if (bytes > size.above) return size.label;
  }
  return "N/A";
}

void CountPull(uint64_t image_bytes, double seconds) {
  static metrics::Family& duration = metrics::Histograms(
      "kubelet_image_pull_duration_seconds", "Duration in seconds to pull an image.",
      {1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600},
      {"image_size_in_bytes"});
  duration.HistogramWith({ImageSizeLabel(image_bytes)}).Observe(seconds);
}

void CountEnsuredImage(const std::string& pull_policy, std::optional<bool> present,
                       std::optional<bool> pull_required) {
  static metrics::Family& requests =
      metrics::Counter("kubelet_image_manager_ensure_image_requests_total",
                       "Number of ensure-image requests processed by the kubelet.",
                       {"pull_policy", "present_locally", "pull_required"});
  auto text = [](std::optional<bool> known) { return !known ? "unknown" : *known ? "true" : "false"; };
  requests.With({Lower(pull_policy), text(present), text(pull_required)}).Increment();
}

void CountMustPullCheck(const char* result) {
  static metrics::Family& checks = metrics::Counter("kubelet_imagemanager_image_mustpull_checks_total",
                                                    "Counter for how many times kubelet checked whether "
                                                    "credentials need to be re-verified to access an image",
                                                    {"result"});
  checks.With({result}).Increment();
}

void SetPullRecordCounts(size_t intents, size_t records) {
  metrics::Gauge("kubelet_imagemanager_ondisk_pullintents", "Number of ImagePullIntents stored on disk.")
      .With()
      .Set(static_cast<double>(intents));
  metrics::Gauge("kubelet_imagemanager_ondisk_pulledrecords", "Number of ImagePulledRecords stored on disk.")
      .With()
      .Set(static_cast<double>(records));
}

void CountCredentialPlugin(const std::string& name, bool good, double seconds) {
  static metrics::Family& duration = metrics::Histograms(
      "kubelet_credential_provider_plugin_duration",
      "Duration of execution in seconds for credential provider plugin", DefaultBuckets(), {"plugin_name"});
  static metrics::Family& errors =
      metrics::Counter("kubelet_credential_provider_plugin_errors_total",
                       "Number of errors from credential provider plugin", {"plugin_name"});
  duration.HistogramWith({name}).Observe(seconds);
  if (!good) errors.With({name}).Increment();
}

void SetCredentialConfigHash(const std::string& sha256) {
  metrics::Family& info = metrics::Gauge(
      "kubelet_credential_provider_config_info",
      "Information about the last applied credential provider configuration with hash as label", {"hash"});
  info.Clear();
  info.With({"sha256:" + sha256}).Set(1);
}

}  // namespace keelson::kubelet
