// Amounts of resources as plain numbers, for filters and scores.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "controlplane/scheduler/types/vocabulary.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::scheduler {

struct Resources {
  int64_t milli_cpu = 0;
  int64_t memory = 0;             // bytes
  int64_t ephemeral_storage = 0;  // bytes
  int64_t pods = 0;
  std::vector<std::pair<uint32_t, int64_t>> scalar_resources;  // by id, sorted

  static Resources From(const k8s::ResourceList& list, NameIds& names);
  int64_t Other(uint32_t id) const;
  void Add(const Resources& by);
  void Subtract(const Resources& by);
  bool operator==(const Resources&) const = default;
};

// What a container without requests counts for in scores.
inline constexpr int64_t kDefaultMilliCpu = 100;
inline constexpr int64_t kDefaultMemory = 200 * 1024 * 1024;

}  // namespace keelson::scheduler
