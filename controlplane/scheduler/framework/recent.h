// A few things by number, those used last.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

namespace keelson::scheduler {

template <typename T>
class Recent {
 public:
  explicit Recent(size_t most) : most_(most) {}

  // The one of this number, made by `make` where it is not there.
  template <typename Make>
  T& Get(uint64_t id, Make make) {
    const auto known = by_id_.find(id);
    if (known != by_id_.end()) {
      order_.splice(order_.begin(), order_, known->second);
      return *order_.front().second;
    }
    if (order_.size() == most_) {
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
  const size_t most_;
  Order order_;  // latest first
  std::unordered_map<uint64_t, typename Order::iterator> by_id_;
};

}  // namespace keelson::scheduler
