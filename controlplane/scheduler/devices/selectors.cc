#include "controlplane/scheduler/devices/selectors.h"

namespace keelson::scheduler {

SelectorPtr SelectorCache::Get(const std::string& expression) {
  if (const auto it = known_.find(expression); it != known_.end()) return it->second;
  if (known_.size() >= capacity_) known_.clear();
  auto selector = std::make_shared<Selector>();
  selector->id = ++last_;
  if (auto program = k8s::CompileStoredDeviceSelector(expression)) {
    selector->program = std::move(*program);
  } else {
    selector->error = program.error().message();
  }
  return known_[expression] = std::move(selector);
}

}  // namespace keelson::scheduler
