#include "controlplane/scheduler/types/resources.h"

#include <algorithm>

#include "lib/k8s/pods/fit.h"

namespace keelson::scheduler {

Resources Resources::From(const k8s::ResourceList& list, NameIds& names) {
  Resources out;
  for (const auto& [name, amount] : list) {
    const int64_t value = k8s::ScaledValue(name, amount);
    if (name == "cpu") {
      out.milli_cpu = value;
    } else if (name == "memory") {
      out.memory = value;
    } else if (name == "ephemeral-storage") {
      out.ephemeral_storage = value;
    } else if (name == "pods") {
      out.pods = value;
    } else {
      out.scalar_resources.emplace_back(names.Id(name), value);
    }
  }
  std::sort(out.scalar_resources.begin(), out.scalar_resources.end());
  return out;
}

int64_t Resources::Other(uint32_t id) const {
  for (const auto& [other, value] : scalar_resources) {
    if (other == id) return value;
  }
  return 0;
}

void Resources::Add(const Resources& by) {
  milli_cpu += by.milli_cpu;
  memory += by.memory;
  ephemeral_storage += by.ephemeral_storage;
  pods += by.pods;
  for (const auto& [id, value] : by.scalar_resources) {
    const auto at = std::lower_bound(scalar_resources.begin(), scalar_resources.end(),
                                     std::pair<uint32_t, int64_t>(id, INT64_MIN));
    if (at != scalar_resources.end() && at->first == id) {
      at->second += value;
    } else {
      scalar_resources.insert(at, {id, value});
    }
  }
}

void Resources::Subtract(const Resources& by) {
  Resources negative = by;
  negative.milli_cpu = -by.milli_cpu;
  negative.memory = -by.memory;
  negative.ephemeral_storage = -by.ephemeral_storage;
  negative.pods = -by.pods;
  for (auto& [id, value] : negative.scalar_resources) value = -value;
  Add(negative);
  std::erase_if(scalar_resources, [](const auto& other) { return other.second == 0; });
}

}  // namespace keelson::scheduler
