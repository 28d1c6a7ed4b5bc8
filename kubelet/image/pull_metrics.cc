#include "kubelet/image/pull_metrics.h"

#include "lib/base/metrics.h"

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
  for (const Size& size : kSizes)
    if (bytes > size.above) return size.label;
  return "N/A";
}

void CountPull(uint64_t image_bytes, double seconds) {
  static metrics::Family& duration = metrics::Histograms(
      "kubelet_image_pull_duration_seconds", "Duration in seconds to pull an image.",
      {1, 5, 10, 20, 30, 60, 180, 300, 600, 900, 1200, 1800, 2700, 3600}, {"image_size_in_bytes"});
  duration.HistogramWith({ImageSizeLabel(image_bytes)}).Observe(seconds);
}

}  // namespace keelson::kubelet
