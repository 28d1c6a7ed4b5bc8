// Registry credentials from Docker configuration files, and the images that they are for.
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
  std::string ns, name, uid;  // of the source
  std::string hash;           // identifies the credential in pull records
};

// Whether a pattern ("*.azurecr.io", "registry.io:8080/path") matches an image ("sub.azurecr.io/app"): as many host
// name labels, '*' within a label, the same port, the path as a prefix.
bool CoversImage(std::string_view pattern, std::string_view image);

// The credentials for a normalized image in the pull secrets; in each, longer patterns come first.
std::vector<Credential> FindCredentials(const std::string& image, const std::vector<corev1::Secret>& secrets);
// The same from the node's files: config.json in `dirs`.
std::vector<Credential> FindNodeCredentials(const std::string& image, const std::vector<std::string>& dirs);

}  // namespace keelson::kubelet
