// Allocates host ids to pods with user namespaces: 65536 per pod, or as configured, not the host's own and not another
// pod's. The allocation is a file in the pod's directory, and ends with it.
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
  // `ids`: per pod, for new allocations; a multiple of 65536.
  explicit UserNamespaces(Paths paths, uint32_t ids = 65536) : paths_(std::move(paths)), ids_(ids) {}

  // nullopt for pods that run with the host's ids (spec.hostUsers is not false). The same answer as long as
  // the pod's directory exists. kTooManyRequests: all ids are allocated.
  Result<std::optional<cri::IdMapping>> Get(const corev1::Pod& pod);
  void Forget(const std::string& uid);  // the pod's directory has been removed

 private:
  struct Range {
    uint32_t first, length;
  };
  static Result<Range> Parse(const std::string& text, const std::string& path);
  Result<std::map<std::string, Range>> ReadAll() const;
  // The first free range; nullopt: none.
  std::optional<uint32_t> FindFree() const KEELSON_REQUIRES(mutex_);
  std::string File(const std::string& uid) const { return paths_.Pod(uid) + "/userns"; }

  const Paths paths_;
  const uint32_t ids_;
  Mutex mutex_;
  bool loaded_ KEELSON_GUARDED_BY(mutex_) = false;
  std::map<std::string, Range> ranges_ KEELSON_GUARDED_BY(mutex_);  // by uid of the pod
};

}  // namespace keelson::kubelet
