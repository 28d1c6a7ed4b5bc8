#include "controlplane/scheduler/framework/metrics.h"

namespace keelson::scheduler {

namespace {

constexpr const char* kPoints[] = {"PreFilter", "Filter", "PostFilter", "PreScore", "Score",
                                   "Reserve",   "Permit", "PreBind",    "Bind"};
// In the order of Status::Code.
constexpr const char* kCodeNames[] = {
    "Success", "Skip", "Wait", "Unschedulable", "UnschedulableAndUnresolvable", "Error"};

}  // namespace

Metrics& TheMetrics() {
  static Metrics all;
  return all;
}

void ExtensionPointTimes::Observe(Point point, Status::Code code, PointTime start) const {
  auto& known = known_[point][static_cast<size_t>(code)];
  metrics::Histogram* histogram = known.load(std::memory_order_acquire);
  if (!histogram) {
    histogram = &TheMetrics().point_duration.HistogramWith(
        {kPoints[point], kCodeNames[static_cast<size_t>(code)], profile_});
    known.store(histogram, std::memory_order_release);
  }
  histogram->Observe(SecondsSince(start));
}

std::string EventName(ClusterEvent::Kind kind) {
  using Kind = ClusterEvent::Kind;
  switch (kind) {
    case Kind::kNodeAdd:
      return "NodeAdd";
    case Kind::kNodeUpdate:
      return "NodeUpdate";
    case Kind::kAssignedPodAdd:
      return "AssignedPodAdd";
    case Kind::kAssignedPodUpdate:
      return "AssignedPodUpdate";
    case Kind::kAssignedPodDelete:
      return "AssignedPodDelete";
    case Kind::kStorageUpdate:
      return "StorageUpdate";  // of a claim, volume, class or driver: they are not told apart here
    case Kind::kUnschedulableTimeout:
      return "UnschedulableTimeout";
    case Kind::kNamespaceUpdate:
      return "NamespaceUpdate";
  }
  return "";
}

}  // namespace keelson::scheduler
