// The pod's ServiceAccount as credential provider plugins get it (KEP-4412).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "kubelet/image/credential_config.h"
#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

// Access to the API server. Both thread safe.
struct AccountSource {
  std::function<Result<std::shared_ptr<const corev1::ServiceAccount>>(const std::string& ns,
                                                                      const std::string& name)>
      get;
  std::function<Result<std::string>(const corev1::Pod& pod, const std::string& audience)> token;
};

struct PodAccount {  // `name` empty: the pod has none
  std::string ns, name, uid, token;
  std::map<std::string, std::string> annotations;

  // Part of the cache key: equal for all pods that may share a provider's answer.
  std::string CacheKey(const TokenAttributes& attributes) const;
};

// nullopt: do not run the provider for this pod. The reason is logged.
std::optional<PodAccount> FindPodAccount(const TokenAttributes& attributes, const corev1::Pod& pod,
                                         const AccountSource& source);

}  // namespace keelson::kubelet
