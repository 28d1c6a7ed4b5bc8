// Restricts the tokens that a kubelet may request: bound to pods on its own node, for audiences that these
// pods use. It complements the admission plugin NodeRestriction for TokenRequests.
#pragma once

#include "controlplane/apiserver/authz/authorizer.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

class NodeTokenRestriction {  // thread safe
 public:
  NodeTokenRestriction(registry::Registry& registry, std::shared_ptr<const Authorizer> authorizer)
      : registry_(registry), authorizer_(std::move(authorizer)) {}

  // Checks a TokenRequest of `user` if it is a node. kForbidden, or kNotFound when the pod does not exist.
  Result<> Check(const User& user, std::string_view ns, std::string_view account,
                 const authenticationv1::TokenRequestSpec& spec) const;

 private:
  Result<> CheckAudience(const User& user, const corev1::Pod& pod,
                         const authenticationv1::TokenRequestSpec& spec) const;
  bool Refers(const corev1::Pod& pod, const corev1::Volume& volume, const std::string& audience) const;
  std::string DriverOf(const corev1::Pod& pod, const corev1::Volume& volume) const;

  registry::Registry& registry_;
  const std::shared_ptr<const Authorizer> authorizer_;
};

}  // namespace keelson::apiserver
