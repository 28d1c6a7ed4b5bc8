#include "lib/client/store.h"

#include <algorithm>

#include "lib/api/codec/codec.h"

namespace keelson::client {

void ObjectStore::AddIndex(std::string name, IndexFunction function) {
  MutexLock lock(mutex_);
  for (const Index& index : indexes_) {
    if (index.name == name) return;  // controllers that share an informer share its indexes by name
  }
  indexes_.push_back({std::move(name), std::move(function), {}});
}

ObjectStore::Object ObjectStore::Decode(std::string_view raw) const {
  std::shared_ptr<google::protobuf::Message> object(prototype_.New());
  if (!api::DecodeRaw(raw, *object)) return nullptr;
  return object;
}

ObjectStore::Picked ObjectStore::Pick(const std::string& key, const Entry& entry) {
  return {key, entry.raw, entry.decoded.lock()};
}

ObjectStore::Object ObjectStore::Materialize(Picked picked) const {
  if (picked.object) return picked.object;
  Object object = Decode(*picked.raw);
  MutexLock lock(mutex_);
  auto it = entries_.find(picked.key);
  if (it == entries_.end() || it->second.raw != picked.raw) return object;
  if (Object other = it->second.decoded.lock()) return other;
  it->second.decoded = object;
  return object;
}

std::vector<ObjectStore::Object> ObjectStore::MaterializeAll(std::vector<Picked> picked) const {
  std::vector<Object> out;
  out.reserve(picked.size());
  for (Picked& one : picked) {
    if (Object object = Materialize(std::move(one))) out.push_back(std::move(object));
  }
  return out;
}

void ObjectStore::Unindex(const std::string& key, const Entry& entry) {
  for (size_t i = 0; i < entry.index_values.size(); ++i) {
    for (const std::string& value : entry.index_values[i]) {
      auto it = indexes_[i].keys.find(value);
      if (it == indexes_[i].keys.end()) continue;
      it->second.erase(key);
      if (it->second.empty()) indexes_[i].keys.erase(it);
    }
  }
}

ObjectStore::Object ObjectStore::Put(const std::string& key, std::string raw, const Object& object) {
  // Index functions are the users' code: run them without the lock.
  std::vector<IndexFunction> functions;
  {
    MutexLock lock(mutex_);
    for (const Index& index : indexes_) functions.push_back(index.function);
  }
  Entry entry;
  for (const IndexFunction& function : functions) entry.index_values.push_back(function(*object));
  entry.raw = std::make_shared<const std::string>(std::move(raw));
  entry.decoded = object;

  Picked before;
  {
    MutexLock lock(mutex_);
    auto [it, added] = entries_.try_emplace(key);
    if (!added) {
      before = Pick(key, it->second);
      Unindex(key, it->second);
    }
    it->second = std::move(entry);
    for (size_t i = 0; i < it->second.index_values.size(); ++i) {
      for (const std::string& value : it->second.index_values[i]) indexes_[i].keys[value].insert(key);
    }
  }
  if (before.object || !before.raw) return before.object;
  return Decode(*before.raw);
}

ObjectStore::Object ObjectStore::Remove(std::string_view key) {
  Picked before;
  {
    MutexLock lock(mutex_);
    auto it = entries_.find(key);
    if (it == entries_.end()) return nullptr;
    before = Pick(it->first, it->second);
    Unindex(it->first, it->second);
    entries_.erase(it);
  }
  return before.object ? before.object : Decode(*before.raw);
}

bool ObjectStore::Holds(std::string_view key, std::string_view raw) const {
  MutexLock lock(mutex_);
  auto it = entries_.find(key);
  return it != entries_.end() && *it->second.raw == raw;
}

ObjectStore::Object ObjectStore::Get(std::string_view key) const {
  Picked picked;
  {
    MutexLock lock(mutex_);
    auto it = entries_.find(key);
    if (it == entries_.end()) return nullptr;
    picked = Pick(it->first, it->second);
  }
  return Materialize(std::move(picked));
}

std::vector<ObjectStore::Object> ObjectStore::List() const {
  std::vector<Picked> picked;
  {
    MutexLock lock(mutex_);
    picked.reserve(entries_.size());
    for (const auto& [key, entry] : entries_) picked.push_back(Pick(key, entry));
  }
  return MaterializeAll(std::move(picked));
}

std::vector<ObjectStore::Object> ObjectStore::ByIndex(std::string_view index, std::string_view value) const {
  std::vector<Picked> picked;
  {
    MutexLock lock(mutex_);
    auto it = std::find_if(indexes_.begin(), indexes_.end(), [&](const Index& i) { return i.name == index; });
    if (it == indexes_.end()) return {};
    auto keys = it->keys.find(value);
    if (keys == it->keys.end()) return {};
    for (const std::string& key : keys->second) {
      auto entry = entries_.find(key);
      picked.push_back(Pick(entry->first, entry->second));
    }
  }
  return MaterializeAll(std::move(picked));
}

std::vector<std::string> ObjectStore::Keys() const {
  MutexLock lock(mutex_);
  std::vector<std::string> keys;
  keys.reserve(entries_.size());
  for (const auto& [key, entry] : entries_) keys.push_back(key);
  return keys;
}

size_t ObjectStore::size() const {
  MutexLock lock(mutex_);
  return entries_.size();
}

}  // namespace keelson::client
