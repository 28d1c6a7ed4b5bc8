// Interning: small numbers for names, and one shared object for equal parts of pods.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/base/mutex.h"

namespace keelson::scheduler {

class NameIds {  // thread safe
 public:
  // The number of a name; the same name always has the same number.
  uint32_t Id(std::string_view name);
  std::string Name(uint32_t id) const;

 private:
  mutable Mutex mutex_;
  std::unordered_map<std::string, uint32_t> ids_ KEELSON_GUARDED_BY(mutex_);
  std::vector<std::string> names_ KEELSON_GUARDED_BY(mutex_);
};

// One shared T for each key, as long as anybody holds it. T's constructor takes a number, which is unique among
// all Ts, and then the arguments of Get().
template <typename T>
class Interned {  // thread safe
 public:
  template <typename... Args>
  std::shared_ptr<const T> Get(std::string_view key, Args&&... args) {
    MutexLock lock(mutex_);
    if (const auto it = known_.find(std::string(key)); it != known_.end()) {
      if (std::shared_ptr<const T> alive = it->second.lock()) return alive;
    }
    if (known_.size() >= sweep_at_) Sweep();
    auto made = std::make_shared<const T>(++last_, std::forward<Args>(args)...);
    known_[std::string(key)] = made;
    return made;
  }

 private:
  void Sweep() KEELSON_REQUIRES(mutex_) {
    std::erase_if(known_, [](const auto& item) { return item.second.expired(); });
    sweep_at_ = 2 * known_.size() + 1024;
  }

  Mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<const T>> known_ KEELSON_GUARDED_BY(mutex_);
  uint64_t last_ KEELSON_GUARDED_BY(mutex_) = 0;
  size_t sweep_at_ KEELSON_GUARDED_BY(mutex_) = 1024;
};

struct PodShape;
struct PodClass;
struct SpreadSpec;

struct Vocabulary {
  NameIds resources;      // all but cpu, memory and ephemeral-storage
  NameIds topology_keys;  // node labels of affinity terms and spread constraints
  Interned<PodShape> shapes;
  Interned<PodClass> classes;
  Interned<SpreadSpec> spreads;
};

}  // namespace keelson::scheduler
