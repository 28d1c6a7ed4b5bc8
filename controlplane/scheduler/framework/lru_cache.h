// A map from numbers that keeps the entries that were used last.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

namespace keelson::scheduler {

template <typename T>
class LruCache {
 public:
  explicit LruCache(size_t capacity) : capacity_(capacity) {}

  // The entry `id`; made by `make`, which returns a unique_ptr<T>, when there is none. The cache owns it; it
  // lives until `capacity` other entries have been used, or Clear().
  template <typename Make>
  T& Get(uint64_t id, Make make) {
    const auto known = by_id_.find(id);
    if (known != by_id_.end()) {
      order_.splice(order_.begin(), order_, known->second);
      return *order_.front().second;
    }
    if (order_.size() == capacity_) {
      by_id_.erase(order_.back().first);
      order_.pop_back();
    }
    order_.emplace_front(id, make());
    by_id_[id] = order_.begin();
    return *order_.front().second;
  }
  void Clear() {
    order_.clear();
    by_id_.clear();
  }

 private:
  using Order = std::list<std::pair<uint64_t, std::unique_ptr<T>>>;
  const size_t capacity_;
  Order order_;  // latest first
  std::unordered_map<uint64_t, typename Order::iterator> by_id_;
};

}  // namespace keelson::scheduler
