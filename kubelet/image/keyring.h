// Registry credentials in the formats of Docker's configuration files, and whom they are for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kubelet/cri/types.h"
#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

struct Credential {
  enum class From { kNode, kSecret, kServiceAccount };
  cri::AuthConfig auth;
  From from = From::kNode;
  std::string ns, name, uid;  // of the Secret or ServiceAccount that it comes from
  std::string hash;           // of the credential, to know it again by
};

// Whether a pattern ("*.azurecr.io", "registry.io:8080/path") covers an image ("sub.azurecr.io/app"): the
// same number of parts of the host's name, '*' within a part, the same port, the path as a prefix.
bool CoversImage(std::string_view pattern, std::string_view image);

// The credentials for a (normalized) image in the pull secrets, those of the longest pattern of each first.
std::vector<Credential> FindCredentials(const std::string& image, const std::vector<corev1::Secret>& secrets);
// The same in the node's own files: config.json of `dirs`.
std::vector<Credential> FindNodeCredentials(const std::string& image, const std::vector<std::string>& dirs);

}  // namespace keelson::kubelet
