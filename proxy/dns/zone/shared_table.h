// A map by name whose copies share unchanged shards: the writer has one table and copies it for readers, which do not
// change theirs. T has a member `key`. A change copies one of 1024 shards, so its cost is nearly independent of the
// size; a copy of the table costs 1024 reference counts.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace keelson::proxy::dns {

template <typename T>
class SharedTable {
 public:
  SharedTable() : shards_(kShards) {}
  // Shares all shards with the copy. For the writer's thread only.
  SharedTable(const SharedTable& other) : shards_(other.shards_) { other.own_.clear(); }
  SharedTable& operator=(const SharedTable&) = delete;
  SharedTable(SharedTable&&) noexcept = default;
  SharedTable& operator=(SharedTable&&) noexcept = default;

  const T* Find(std::string_view key) const {
    size_t hash = std::hash<std::string_view>()(key);
    const Shard* shard = shards_[hash % kShards].get();
    if (!shard) return nullptr;
    for (const Slot& slot : *shard) {
      if (slot.hash == hash && slot.value->key == key) return slot.value.get();
    }
    return nullptr;
  }

  // Null: none any more.
  void Set(std::string_view key, std::shared_ptr<const T> value) {
    size_t hash = std::hash<std::string_view>()(key);
    Shard& shard = Own(hash % kShards);
    for (size_t i = 0; i < shard.size(); ++i) {
      if (shard[i].hash != hash || shard[i].value->key != key) continue;
      if (value) {
        shard[i].value = std::move(value);
      } else {
        shard[i] = std::move(shard.back());
        shard.pop_back();
      }
      return;
    }
    if (value) shard.push_back({hash, std::move(value)});
  }

 private:
  static constexpr size_t kShards = 1024;
  struct Slot {
    size_t hash;
    std::shared_ptr<const T> value;
  };
  using Shard = std::vector<Slot>;

  // The shard for writing: copied first if another table shares it.
  Shard& Own(size_t index) {
    own_.resize(kShards);
    if (!own_[index]) {
      auto copy = shards_[index] ? std::make_shared<Shard>(*shards_[index]) : std::make_shared<Shard>();
      own_[index] = copy.get();
      shards_[index] = std::move(copy);
    }
    return *own_[index];
  }

  std::vector<std::shared_ptr<const Shard>> shards_;
  mutable std::vector<Shard*> own_;  // shards that no copy shares; else null
};

}  // namespace keelson::proxy::dns
