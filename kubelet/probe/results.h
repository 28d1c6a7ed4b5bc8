// The results of probes, by container id.
#pragma once

#include <optional>
#include <string>

namespace keelson::kubelet {

enum class ProbeKind { kStartup, kLiveness, kReadiness };

class ProbeResults {  // thread safe
 public:
  virtual ~ProbeResults() = default;
  // nullopt: the container has no such probe, or it has no result yet.
  virtual std::optional<bool> Get(ProbeKind kind, const std::string& container_id) const = 0;
};

}  // namespace keelson::kubelet
