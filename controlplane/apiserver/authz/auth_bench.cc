// Authentication and authorization of a ServiceAccount's request, with 10 000 role bindings.
#include <benchmark/benchmark.h>

#include <fmt/format.h>

#include "controlplane/apiserver/authn/authenticator.h"
#include "controlplane/apiserver/authn/token.h"
#include "controlplane/apiserver/authz/bootstrap_policy.h"
#include "controlplane/apiserver/authz/node.h"
#include "controlplane/apiserver/authz/rbac.h"
#include "controlplane/apiserver/authz/testing/attributes.h"

namespace keelson::apiserver {
namespace {

constexpr const char* kIssuer = "https://kubernetes.default.svc";
constexpr int kBindings = 10000;

std::shared_ptr<RbacAuthorizer> FullRbac() {
  auto rbac = std::make_shared<RbacAuthorizer>();
  for (const auto& role : BootstrapClusterRoles(NoGate)) rbac->Put(role);
  for (const auto& binding : BootstrapClusterRoleBindings(NoGate)) rbac->Put(binding);
  rbacv1::ClusterRole role;
  role.mutable_metadata()->set_name("app");
  rbacv1::PolicyRule& rule = *role.add_rules();
  for (const char* verb : {"get", "list", "watch"}) rule.add_verbs(verb);
  rule.add_api_groups("");
  rule.add_resources("configmaps");
  rbac->Put(role);
  for (int i = 0; i < kBindings; ++i) {
    rbacv1::RoleBinding binding;
    binding.mutable_metadata()->set_namespace_(fmt::format("ns-{}", i % 100));
    binding.mutable_metadata()->set_name(fmt::format("binding-{}", i));
    binding.mutable_role_ref()->set_kind("ClusterRole");
    binding.mutable_role_ref()->set_name("app");
    rbacv1::Subject& subject = *binding.add_subjects();
    subject.set_kind("ServiceAccount");
    subject.set_name(fmt::format("app-{}", i / 100));
    subject.set_namespace_(binding.metadata().namespace_());
    rbac->Put(binding);
  }
  return rbac;
}

void AuthenticateAndAuthorize(benchmark::State& state) {
  crypto::SigningKey key = *crypto::SigningKey::GenerateRsa();
  Authenticator::Options options;
  options.api_audiences = {kIssuer};
  options.tokens = {std::make_shared<TokenAuthenticator>(
      TokenAuthenticator::Options{{kIssuer}, {key}, {kIssuer}},
      [](std::string_view, std::string_view, std::string_view) -> std::optional<ObjectIdentity> {
        return ObjectIdentity{"uid", std::nullopt};
      })};
  Authenticator authenticator(options);
  UnionAuthorizer authorizer({std::make_shared<MastersAuthorizer>(),
                              std::make_shared<NodeAuthorizer>(std::make_shared<NodeGraph>(), NoGate),
                              FullRbac()});
  std::vector<http::ServerRequest> requests(64);
  int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(Clock::Real().Now().time_since_epoch()).count();
  for (size_t i = 0; i < requests.size(); ++i) {
    TokenClaims claims;
    claims.issuer = kIssuer;
    claims.ns = fmt::format("ns-{}", i);
    claims.service_account = {"app-7", "uid"};
    claims.subject = "system:serviceaccount:" + claims.ns + ":app-7";
    claims.audiences = {kIssuer};
    claims.id = fmt::format("id-{}", i);
    claims.issued_at = claims.not_before = now;
    claims.expires = now + 3600;
    claims.pod = TokenClaims::Object{"web-0", "uid"};
    requests[i].headers.Set("Authorization", "Bearer " + *SignToken(claims, key));
  }
  const bool allowed = state.range(0) != 0;
  size_t at = 0;
  for (auto _ : state) {
    size_t i = at++ % requests.size();
    Result<User> user = authenticator.Authenticate(requests[i]);
    if (!user) abort();
    RequestInfo info = Resource("list", "", allowed ? "configmaps" : "secrets", fmt::format("ns-{}", i));
    if (authorizer.Authorize({*user, info}).allowed != allowed) abort();
  }
}
BENCHMARK(AuthenticateAndAuthorize)->Arg(1)->Arg(0);

}  // namespace
}  // namespace keelson::apiserver
