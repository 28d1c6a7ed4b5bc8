#include "kubelet/pod/user_namespaces.h"

#include <fmt/format.h>

#include <cstdlib>
#include <set>

#include "lib/base/file.h"

namespace keelson::kubelet {

namespace {

constexpr uint32_t kLength = 65536, kFirst = 65536;
constexpr uint32_t kPods = 1024;  // at most on a node, by far
constexpr char kHostId[] = "\"hostId\":";

// The form that other kubelets write too.
std::string Format(uint32_t first) {
  std::string range = fmt::format("[{{{}{},\"containerId\":0,\"length\":{}}}]", kHostId, first, kLength);
  return fmt::format("{{\"uidMappings\":{0},\"gidMappings\":{0}}}", range);
}

Result<uint32_t> Parse(const std::string& text, const std::string& path) {
  size_t at = text.find(kHostId);
  if (at != std::string::npos) {
    unsigned long id = std::strtoul(text.c_str() + at + sizeof(kHostId) - 1, nullptr, 10);
    if (id >= kFirst && id % kLength == 0 && id <= UINT32_MAX - kLength) return static_cast<uint32_t>(id);
  }
  return Error(Code::kInternal, path + ": not a user namespace of a pod");
}

}  // namespace

Result<std::map<std::string, uint32_t>> UserNamespaces::ReadAll() const {
  std::map<std::string, uint32_t> out;
  auto uids = ListDir(paths_.Pods());
  if (!uids && uids.error().Is(Code::kNotFound)) return out;
  if (!uids) return uids.error();
  for (const std::string& uid : *uids) {
    auto text = ReadFile(File(uid));
    if (!text && text.error().Is(Code::kNotFound)) continue;
    if (!text) return text.error();
    ASSIGN_OR_RETURN(out[uid], Parse(*text, File(uid)));
  }
  return out;
}

// Taken first, written down then: nobody else has the ids, and only what is written is handed out.
Result<std::optional<cri::IdMapping>> UserNamespaces::Get(const corev1::Pod& pod) {
  if (!pod.spec().has_host_users() || pod.spec().host_users()) return std::optional<cri::IdMapping>();
  const std::string& uid = pod.metadata().uid();
  bool loaded = false;
  {
    MutexLock lock(mutex_);
    loaded = loaded_;
  }
  std::map<std::string, uint32_t> written;
  if (!loaded) {
    ASSIGN_OR_RETURN(written, ReadAll());
  }
  uint32_t first = kFirst;
  {
    MutexLock lock(mutex_);
    if (!loaded_) first_ids_.insert(written.begin(), written.end());
    loaded_ = true;
    if (auto known = first_ids_.find(uid); known != first_ids_.end())
      return std::optional<cri::IdMapping>(cri::IdMapping{known->second, 0, kLength});
    std::set<uint32_t> taken;
    for (const auto& [other, id] : first_ids_) taken.insert(id);
    while (taken.count(first)) first += kLength;
    if (first >= kFirst + kPods * kLength)
      return Error(Code::kTooManyRequests, "could not find an empty slot to allocate a user namespace");
    first_ids_[uid] = first;
  }
  if (auto kept = WriteFileAtomic(File(uid), Format(first)); !kept) {
    Forget(uid);
    return kept.error();
  }
  return std::optional<cri::IdMapping>(cri::IdMapping{first, 0, kLength});
}

void UserNamespaces::Forget(const std::string& uid) {
  MutexLock lock(mutex_);
  first_ids_.erase(uid);
}

}  // namespace keelson::kubelet
