#include "controlplane/controllers/node/node_ttl.h"

#include <fmt/format.h>

#include <cstdint>

namespace keelson::controllers {
namespace {

struct Step {
  int down_below, up_above, seconds;
};
constexpr Step kSteps[] = {
    {0, 100, 0}, {90, 500, 15}, {450, 1000, 30}, {900, 2000, 60}, {1800, INT32_MAX, 300},
};

}  // namespace

int TtlBySize::Seconds(int nodes) {
  while (nodes > kSteps[step_].up_above) ++step_;
  while (nodes < kSteps[step_].down_below) --step_;
  return kSteps[step_].seconds;
}

NodeTtlController::NodeTtlController(client::RestClient api, client::InformerFactory& informers,
                                     client::EventRecorder&, Clock& clock)
    : Controller("ttlcontroller", clock), api_(std::move(api)), nodes_(informers.Get<corev1::Node>()) {
  nodes_.AddHandler([this](const client::Change<corev1::Node>& change) {
    {
      MutexLock lock(mutex_);
      count_ += (change.new_object ? 1 : 0) - (change.old_object ? 1 : 0);
      seconds_ = by_size_.Seconds(count_);
    }
    if (change.new_object) queue().Add(change.key);
  });
}

Result<Requeue> NodeTtlController::Reconcile(const std::string& key, std::stop_token stop) {
  auto node = nodes_.Get(key);
  if (!node) return Requeue{};
  std::string wanted;
  {
    MutexLock lock(mutex_);
    wanted = std::to_string(seconds_);
  }
  const auto& annotations = node->metadata().annotations();
  const auto has = annotations.find(kTtlAnnotation);
  if (has != annotations.end() && has->second == wanted) return Requeue{};
  Result<corev1::Node> patched = api_.With(stop).Patch<corev1::Node>(
      "", key, client::PatchType::kStrategicMerge,
      fmt::format(R"({{"metadata":{{"annotations":{{"{}":"{}"}}}}}})", kTtlAnnotation, wanted));
  if (!patched && !patched.error().Is(Code::kNotFound)) return patched.error().Wrap("tell the node its TTL");
  return Requeue{};
}

}  // namespace keelson::controllers
