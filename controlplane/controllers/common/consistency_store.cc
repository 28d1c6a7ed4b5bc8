#include "controlplane/controllers/common/consistency_store.h"

#include <charconv>
#include <optional>

namespace keelson::controllers {
namespace {

// Resource versions of one resource compare as integers (KEP-5504).
std::optional<uint64_t> VersionOf(const metav1::ObjectMeta& meta) {
  const std::string& text = meta.resource_version();
  uint64_t version = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), version);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return version;
}

}  // namespace

void ConsistencyStore::WroteAt(const std::string& key, const metav1::ObjectMeta& written) {
  const std::optional<uint64_t> version = VersionOf(written);
  MutexLock lock(mutex_);
  if (version) versions_[key] = *version;
}

bool ConsistencyStore::IsReady(const std::string& key, const metav1::ObjectMeta& stored) {
  const std::optional<uint64_t> version = VersionOf(stored);
  MutexLock lock(mutex_);
  const auto it = versions_.find(key);
  if (it == versions_.end() || !version) return true;
  if (*version < it->second) return false;
  versions_.erase(it);
  return true;
}

void ConsistencyStore::Clear(const std::string& key) {
  MutexLock lock(mutex_);
  versions_.erase(key);
}

}  // namespace keelson::controllers
