// Which tokens a kubelet may ask for: those of the pods on its own node, bound to them, for audiences that
// they refer to. The other half of admission's NodeRestriction, where tokens are made.
#pragma once

#include "controlplane/apiserver/authz/authorizer.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

class NodeTokenRules {  // thread safe
 public:
  NodeTokenRules(registry::Registry& registry, std::shared_ptr<const Authorizer> authorizer)
      : registry_(registry), authorizer_(std::move(authorizer)) {}

  // Whether `user`, if it is a node, may have such a token of a service account. kForbidden, kNotFound.
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
