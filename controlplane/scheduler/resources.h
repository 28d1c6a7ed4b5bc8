// Amounts as plain numbers: what filters and scores calculate with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/base/mutex.h"
#include "lib/k8s/pod_resources.h"

namespace keelson::scheduler {

// Small numbers for the names of resources other than cpu, memory and ephemeral storage. Thread safe.
class ResourceNames {
 public:
  uint32_t Id(std::string_view name);
  std::string Name(uint32_t id) const;

 private:
  mutable Mutex mutex_;
  std::unordered_map<std::string, uint32_t> ids_ GUARDED_BY(mutex_);
  std::vector<std::string> names_ GUARDED_BY(mutex_);
};

struct Resources {
  int64_t milli_cpu = 0;
  int64_t memory = 0;             // bytes
  int64_t ephemeral_storage = 0;  // bytes
  int64_t pods = 0;
  std::vector<std::pair<uint32_t, int64_t>> others;  // by id, sorted

  static Resources From(const k8s::ResourceList& list, ResourceNames& names);
  int64_t Other(uint32_t id) const;
  void Add(const Resources& by);
  void Subtract(const Resources& by);
  bool operator==(const Resources&) const = default;
};

// What a container that asks for nothing counts for when nodes are scored.
inline constexpr int64_t kDefaultMilliCpu = 100;
inline constexpr int64_t kDefaultMemory = 200 * 1024 * 1024;

}  // namespace keelson::scheduler
