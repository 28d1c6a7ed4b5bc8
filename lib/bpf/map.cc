#include "lib/bpf/map.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <cerrno>

namespace keelson::bpf {
namespace {

constexpr size_t kBatch = 4096;

}  // namespace

Result<Map> Map::FromFd(UniqueFd fd, std::string name) {
  bpf_map_info info{};
  uint32_t size = sizeof info;
  if (::bpf_obj_get_info_by_fd(fd.get(), &info, &size) != 0) return ErrnoError("look at BPF map " + name);
  return Map(std::move(fd), std::move(name),
             {info.type, info.key_size, info.value_size, info.max_entries, info.map_flags});
}

Result<Map> Map::OpenPinned(const std::string& path) {
  UniqueFd fd(::bpf_obj_get(path.c_str()));
  if (!fd) return ErrnoError("open BPF map " + path);
  return FromFd(std::move(fd), path);
}

Result<> Map::Pin(const std::string& path) const {
  if (::bpf_obj_pin(fd_.get(), path.c_str()) != 0) return ErrnoError("pin BPF map " + path);
  return {};
}

Result<> Map::Check(std::string_view key, std::string_view value) const {
  if (key.size() == shape_.key_size && value.size() == shape_.value_size) return {};
  return Error(Code::kInternal, name_ + ": keys or values of another size");
}

Result<std::optional<std::string>> Map::Lookup(std::string_view key) const {
  std::string value(shape_.value_size, '\0');
  KEELSON_RETURN_IF_ERROR(Check(key, value));
  if (::bpf_map_lookup_elem(fd_.get(), key.data(), value.data()) == 0) return std::optional(value);
  if (errno == ENOENT) return std::optional<std::string>();
  return ErrnoError("read BPF map " + name_);
}

Result<> Map::Update(std::string_view key, std::string_view value) const {
  KEELSON_RETURN_IF_ERROR(Check(key, value));
  if (::bpf_map_update_elem(fd_.get(), key.data(), value.data(), BPF_ANY) == 0) return {};
  return ErrnoError("write BPF map " + name_);
}

Result<> Map::Delete(std::string_view key) const {
  if (key.size() != shape_.key_size) return Error(Code::kInternal, name_ + ": keys of another size");
  if (::bpf_map_delete_elem(fd_.get(), key.data()) == 0 || errno == ENOENT) return {};
  return ErrnoError("write BPF map " + name_);
}

Result<> Map::UpdateAll(const std::vector<Entry>& entries) const {
  if (entries.size() == 1) return Update(entries[0].first, entries[0].second);
  std::string keys, values;
  for (size_t at = 0; at < entries.size(); at += kBatch) {
    keys.clear();
    values.clear();
    const size_t end = std::min(entries.size(), at + kBatch);
    for (size_t i = at; i < end; ++i) {
      KEELSON_RETURN_IF_ERROR(Check(entries[i].first, entries[i].second));
      keys += entries[i].first;
      values += entries[i].second;
    }
    auto count = static_cast<uint32_t>(end - at);
    if (::bpf_map_update_batch(fd_.get(), keys.data(), values.data(), &count, nullptr) != 0) {
      return ErrnoError("write BPF map " + name_);
    }
  }
  return {};
}

// One by one: a batch stops at the first absent key.
Result<> Map::DeleteAll(const std::vector<std::string>& keys) const {
  for (const std::string& key : keys) KEELSON_RETURN_IF_ERROR(Delete(key));
  return {};
}

Result<std::vector<Map::Entry>> Map::Dump() const {
  std::vector<Entry> out;
  size_t room = kBatch;
  std::string keys, values;
  // The token holds a bucket number, whatever the size of the keys.
  std::string token(std::max<size_t>(shape_.key_size, sizeof(uint32_t)), '\0');
  bool first = true;
  while (true) {
    keys.resize(room * shape_.key_size);
    values.resize(room * shape_.value_size);
    auto count = static_cast<uint32_t>(room);
    const int failed = ::bpf_map_lookup_batch(fd_.get(), first ? nullptr : token.data(), token.data(),
                                              keys.data(), values.data(), &count, nullptr);
    if (failed != 0 && errno == ENOSPC) {  // one bucket has more entries than that
      room *= 2;
      continue;
    }
    if (failed != 0 && errno != ENOENT) return ErrnoError("read BPF map " + name_);
    const bool last = failed != 0;
    first = false;
    for (size_t i = 0; i < count; ++i) {
      out.emplace_back(keys.substr(i * shape_.key_size, shape_.key_size),
                       values.substr(i * shape_.value_size, shape_.value_size));
    }
    if (last) return out;
  }
}

}  // namespace keelson::bpf
