#include "kubelet/pod/user_namespaces.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "lib/base/file.h"

namespace keelson::kubelet {

namespace {

constexpr uint32_t kUnit = 65536, kFirst = 65536;
constexpr uint32_t kPods = 1024;  // at most on a node, by far
constexpr char kHostId[] = "\"hostId\":", kLength[] = "\"length\":";

// The form that other kubelets write too.
std::string Format(uint32_t first, uint32_t length) {
  std::string range = fmt::format("[{{{}{},\"containerId\":0,{}{}}}]", kHostId, first, kLength, length);
  return fmt::format("{{\"uidMappings\":{0},\"gidMappings\":{0}}}", range);
}

uint64_t NumberAfter(const std::string& text, std::string_view key) {
  size_t at = text.find(key);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + key.size(), nullptr, 10);
}

}  // namespace

Result<UserNamespaces::Range> UserNamespaces::Parse(const std::string& text, const std::string& path) {
  const uint64_t first = NumberAfter(text, kHostId), length = NumberAfter(text, kLength);
  const bool whole = first % kUnit == 0 && length % kUnit == 0 && first >= kFirst && length > 0;
  if (!whole || first > UINT32_MAX || length > UINT32_MAX || first + length - 1 > UINT32_MAX) {
    return Error(Code::kInternal, path + ": not a user namespace of a pod");
  }
  return Range{static_cast<uint32_t>(first), static_cast<uint32_t>(length)};
}

Result<std::map<std::string, UserNamespaces::Range>> UserNamespaces::ReadAll() const {
  std::map<std::string, Range> out;
  auto uids = ListDir(paths_.Pods());
  if (!uids && uids.error().Is(Code::kNotFound)) return out;
  if (!uids) return uids.error();
  for (const std::string& uid : *uids) {
    auto text = ReadFile(File(uid));
    if (!text && text.error().Is(Code::kNotFound)) continue;
    if (!text) return text.error();
    KEELSON_ASSIGN_OR_RETURN(out[uid], Parse(*text, File(uid)));
  }
  return out;
}

std::optional<uint32_t> UserNamespaces::FindFree() const {
  std::map<uint64_t, uint64_t> taken;  // first id to the one after the last
  for (const auto& [uid, range] : ranges_) taken[range.first] = uint64_t{range.first} + range.length;
  uint64_t first = kFirst;
  for (const auto& [begin, end] : taken) {
    if (first + ids_ <= begin) break;
    first = std::max(first, end);
  }
  if (first + ids_ - 1 > UINT32_MAX || ranges_.size() >= kPods) return std::nullopt;
  return static_cast<uint32_t>(first);
}

// Take the ids first and then write them down: no other pod gets them, and only written ids are handed out.
Result<std::optional<cri::IdMapping>> UserNamespaces::Get(const corev1::Pod& pod) {
  if (!pod.spec().has_host_users() || pod.spec().host_users()) return std::optional<cri::IdMapping>();
  const std::string& uid = pod.metadata().uid();
  bool loaded = false;
  {
    MutexLock lock(mutex_);
    loaded = loaded_;
  }
  std::map<std::string, Range> written;
  if (!loaded) {
    KEELSON_ASSIGN_OR_RETURN(written, ReadAll());
  }
  uint32_t first = 0;
  {
    MutexLock lock(mutex_);
    if (!loaded_) ranges_.insert(written.begin(), written.end());
    loaded_ = true;
    if (auto known = ranges_.find(uid); known != ranges_.end()) {
      return std::optional<cri::IdMapping>(cri::IdMapping{known->second.first, 0, known->second.length});
    }
    auto free = FindFree();
    if (!free) {
      return Error(Code::kTooManyRequests, "could not find an empty slot to allocate a user namespace");
    }
    first = *free;
    ranges_[uid] = {first, ids_};
  }
  if (auto kept = WriteFileAtomic(File(uid), Format(first, ids_)); !kept) {
    Forget(uid);
    return kept.error();
  }
  return std::optional<cri::IdMapping>(cri::IdMapping{first, 0, ids_});
}

void UserNamespaces::Forget(const std::string& uid) {
  MutexLock lock(mutex_);
  ranges_.erase(uid);
}

}  // namespace keelson::kubelet
