// The ServiceAccount that a pod's images are pulled for, as providers of credentials are told of it
// (KEP-4412).
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

// The API server, as far as it is asked. Both thread safe.
struct AccountSource {
  std::function<Result<std::shared_ptr<const corev1::ServiceAccount>>(const std::string& ns,
                                                                      const std::string& name)>
      get;
  std::function<Result<std::string>(const corev1::Pod& pod, const std::string& audience)> token;
};

struct PodAccount {  // `name` empty: the pod has none
  std::string ns, name, uid, token;
  std::map<std::string, std::string> annotations;

  // What a provider's answer is kept under, besides the image that it is for: the same for whom it may serve.
  std::string CacheKey(const TokenAttributes& attributes) const;
};

// nullopt: the provider is not to be asked for this pod. What is in the way is logged.
std::optional<PodAccount> FindPodAccount(const TokenAttributes& attributes, const corev1::Pod& pod,
                                         const AccountSource& source);

}  // namespace keelson::kubelet
