// BPF maps (bpf(2)): keys and values as bytes, one at a time or many per system call. Thread safe.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/fd.h"

namespace keelson::bpf {

struct MapShape {
  uint32_t type = 0, key_size = 0, value_size = 0, max_entries = 0, flags = 0;
};

class Map {
 public:
  using Entry = std::pair<std::string, std::string>;  // key, value

  static Result<Map> FromFd(UniqueFd fd, std::string name);
  static Result<Map> OpenPinned(const std::string& path);  // kNotFound when nothing is there
  // Keeps the map alive by a file on a BPF file system.
  Result<> Pin(const std::string& path) const;

  int fd() const { return fd_.get(); }
  const std::string& name() const { return name_; }
  const MapShape& shape() const { return shape_; }

  Result<std::optional<std::string>> Lookup(std::string_view key) const;
  Result<> Update(std::string_view key, std::string_view value) const;  // E2BIG: full
  Result<> Delete(std::string_view key) const;                          // absent is fine
  // Splits into as many system calls as needed. E2BIG: full; the entries before that are in the map.
  Result<> UpdateAll(const std::vector<Entry>& entries) const;
  Result<> DeleteAll(const std::vector<std::string>& keys) const;  // absent is fine
  Result<std::vector<Entry>> Dump() const;                         // hash maps only

  template <typename K, typename V>
  Result<std::optional<V>> Get(const K& key) const {
    static_assert(std::is_trivially_copyable_v<K> && std::is_trivially_copyable_v<V>);
    if (sizeof(V) != shape_.value_size) return Error(Code::kInternal, name_ + ": values of another size");
    KEELSON_ASSIGN_OR_RETURN(std::optional<std::string> bytes, Lookup(Bytes(key)));
    if (!bytes) return std::optional<V>();
    V out;
    std::memcpy(&out, bytes->data(), sizeof out);
    return std::optional<V>(out);
  }
  template <typename K, typename V>
  Result<> Put(const K& key, const V& value) const {
    return Update(Bytes(key), Bytes(value));
  }
  template <typename T>
  static std::string_view Bytes(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }

 private:
  Map(UniqueFd fd, std::string name, MapShape shape)
      : fd_(std::move(fd)), name_(std::move(name)), shape_(shape) {}
  Result<> Check(std::string_view key, std::string_view value) const;

  UniqueFd fd_;
  std::string name_;
  MapShape shape_;
};

}  // namespace keelson::bpf
