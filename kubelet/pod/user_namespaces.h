// Which ids of the host the pods with user namespaces of their own have. Each pod has 65536 of them, or
// as many as the configuration says, none of the host's own and none of another pod. Written down in the
// pod's directory, and free again with it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "kubelet/container/paths.h"
#include "kubelet/cri/types.h"
#include "lib/api/types.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class UserNamespaces {  // thread safe
 public:
  // ids: of each pod from now on; a multiple of 65536.
  explicit UserNamespaces(Paths paths, uint32_t ids = 65536) : paths_(std::move(paths)), ids_(ids) {}

  // nullopt for pods that run with the host's ids (spec.hostUsers is not false). The same answer for as long
  // as the pod's directory is there. kTooManyRequests when all ids are given away.
  Result<std::optional<cri::IdMapping>> Get(const corev1::Pod& pod);
  void Forget(const std::string& uid);  // its directory has been removed

 private:
  struct Range {
    uint32_t first, length;
  };
  static Result<Range> Parse(const std::string& text, const std::string& path);
  Result<std::map<std::string, Range>> ReadAll() const;
  // The first ids that no pod has; nullopt: there are not so many.
  std::optional<uint32_t> FindFree() const REQUIRES(mutex_);
  std::string File(const std::string& uid) const { return paths_.Pod(uid) + "/userns"; }

  const Paths paths_;
  const uint32_t ids_;
  Mutex mutex_;
  bool loaded_ GUARDED_BY(mutex_) = false;
  std::map<std::string, Range> ranges_ GUARDED_BY(mutex_);  // by uid of the pod
};

}  // namespace keelson::kubelet
