#include "controlplane/scheduler/plugins/plugins.h"

namespace keelson::scheduler {

namespace {

class SchedulingGates : public PreEnqueuePlugin {
 public:
  std::string_view name() const override { return "SchedulingGates"; }
  bool PreEnqueue(const PodInfo& pod) const override { return !pod.gated(); }
};

}  // namespace

std::unique_ptr<Plugin> NewSchedulingGates() { return std::make_unique<SchedulingGates>(); }

}  // namespace keelson::scheduler
