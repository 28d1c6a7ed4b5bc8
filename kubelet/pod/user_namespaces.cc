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

Result<> UserNamespaces::LoadAll() {
  if (loaded_) return {};
  auto uids = ListDir(paths_.Pods());
  if (!uids && !uids.error().Is(Code::kNotFound)) return uids.error();
  if (uids) {
    for (const std::string& uid : *uids) {
      auto text = ReadFile(File(uid));
      if (!text && (text.error().Is(Code::kNotFound))) continue;
      if (!text) return text.error();
      ASSIGN_OR_RETURN(first_ids_[uid], Parse(*text, File(uid)));
    }
  }
  loaded_ = true;
  return {};
}

Result<std::optional<cri::IdMapping>> UserNamespaces::Get(const corev1::Pod& pod) {
  if (!pod.spec().has_host_users() || pod.spec().host_users()) return std::optional<cri::IdMapping>();
  const std::string& uid = pod.metadata().uid();
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(LoadAll());
  auto known = first_ids_.find(uid);
  if (known == first_ids_.end()) {
    std::set<uint32_t> taken;
    for (const auto& [other, first] : first_ids_) taken.insert(first);
    uint32_t first = kFirst;
    while (taken.count(first)) first += kLength;
    if (first >= kFirst + kPods * kLength)
      return Error(Code::kTooManyRequests, "could not find an empty slot to allocate a user namespace");
    RETURN_IF_ERROR(WriteFileAtomic(File(uid), Format(first)));
    known = first_ids_.emplace(uid, first).first;
  }
  return std::optional<cri::IdMapping>(cri::IdMapping{known->second, 0, kLength});
}

void UserNamespaces::Forget(const std::string& uid) {
  MutexLock lock(mutex_);
  first_ids_.erase(uid);
}

}  // namespace keelson::kubelet
