#include "controlplane/scheduler/types/vocabulary.h"

namespace keelson::scheduler {

uint32_t NameIds::Id(std::string_view name) {
  MutexLock lock(mutex_);
  const auto [it, added] = ids_.try_emplace(std::string(name), static_cast<uint32_t>(names_.size()));
  if (added) names_.emplace_back(name);
  return it->second;
}

std::string NameIds::Name(uint32_t id) const {
  MutexLock lock(mutex_);
  return names_[id];
}

}  // namespace keelson::scheduler
