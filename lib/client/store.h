// An informer's local copy of the API: wire bytes by key, decoded on demand, with indexes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/mutex.h"
#include "lib/client/informer.h"

namespace keelson::client {

class ObjectStore {  // thread safe
 public:
  using Object = InformerBase::Object;
  using IndexFunction = InformerBase::IndexFunction;

  explicit ObjectStore(const google::protobuf::Message& prototype) : prototype_(prototype) {}

  // Call before the first object is stored.
  void AddIndex(std::string name, IndexFunction function);

  // Null when the bytes cannot be decoded.
  Object Decode(std::string_view raw) const;

  // Stores an object; `object` is its decoded form. Returns the previous one (null: none).
  Object Put(const std::string& key, std::string raw, const Object& object);
  Object Remove(std::string_view key);                           // returns the removed object, or null
  bool Holds(std::string_view key, std::string_view raw) const;  // exactly these bytes

  Object Get(std::string_view key) const;
  std::vector<Object> List() const;
  std::vector<Object> ByIndex(std::string_view index, std::string_view value) const;
  std::vector<std::string> Keys() const;
  size_t size() const;

 private:
  struct Entry {
    std::shared_ptr<const std::string> raw;
    mutable std::weak_ptr<const google::protobuf::Message> decoded;
    std::vector<std::vector<std::string>> index_values;  // one list per index
  };
  struct Index {
    std::string name;
    IndexFunction function;
    std::map<std::string, std::set<std::string>, std::less<>> keys;  // by value
  };
  struct Picked {
    std::string key;
    std::shared_ptr<const std::string> raw;
    Object object;  // null when nobody holds a decoded form
  };

  static Picked Pick(const std::string& key, const Entry& entry);
  Object Materialize(Picked picked) const;
  std::vector<Object> MaterializeAll(std::vector<Picked> picked) const;
  void Unindex(const std::string& key, const Entry& entry) KEELSON_REQUIRES(mutex_);

  const google::protobuf::Message& prototype_;
  mutable Mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_ KEELSON_GUARDED_BY(mutex_);
  std::vector<Index> indexes_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::client
