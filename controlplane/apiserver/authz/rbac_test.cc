#include "controlplane/apiserver/authz/rbac.h"

#include <gtest/gtest.h>

#include "controlplane/apiserver/authz/bootstrap_policy.h"
#include "controlplane/apiserver/authz/testing/attributes.h"
#include "lib/k8s/aggregate_rules.h"

namespace keelson::apiserver {
namespace {

class RbacTest : public testing::Test {
 protected:
  RbacTest() {
    k8s::ClusterRoles all;
    for (const auto& role : BootstrapClusterRoles(NoGate)) {
      all[role.metadata().name()] = std::make_shared<rbacv1::ClusterRole>(role);
    }
    // Twice: admin takes edit in, which takes view in.
    for (int round = 0; round < 3; ++round) {
      for (auto& entry : all) {
        if (!entry.second->has_aggregation_rule()) continue;
        rbacv1::ClusterRole filled = *entry.second;
        *filled.mutable_rules() = k8s::AggregateRules(filled, all);
        entry.second = std::make_shared<rbacv1::ClusterRole>(filled);
      }
    }
    for (const auto& entry : all) rbac_.Put(*entry.second);
    for (const auto& binding : BootstrapClusterRoleBindings(NoGate)) rbac_.Put(binding);
    for (const auto& role : BootstrapRoles()) rbac_.Put(role);
    for (const auto& binding : BootstrapRoleBindings()) rbac_.Put(binding);
  }

  bool Can(const User& user, const RequestInfo& request) { return rbac_.Authorize({user, request}).allowed; }
  void Bind(const char* ns, const char* role, const char* kind, const char* name,
            const char* subject_ns = "") {
    rbacv1::RoleBinding binding;
    binding.mutable_metadata()->set_name(std::string(role) + "-" + name);
    binding.mutable_metadata()->set_namespace_(ns);
    binding.mutable_role_ref()->set_kind("ClusterRole");
    binding.mutable_role_ref()->set_name(role);
    rbacv1::Subject& subject = *binding.add_subjects();
    subject.set_kind(kind);
    subject.set_name(name);
    subject.set_namespace_(subject_ns);
    rbac_.Put(binding);
  }

  RbacAuthorizer rbac_;
  const User anonymous_ = AnonymousUser();
  const User alice_{"alice", "", {"system:authenticated"}, {}};
};

TEST_F(RbacTest, AnonymousSeesHealthAndVersionOnly) {
  for (const char* path : {"/healthz", "/livez", "/readyz", "/version"}) {
    EXPECT_TRUE(Can(anonymous_, Path("get", path))) << path;
  }
  EXPECT_FALSE(Can(anonymous_, Path("get", "/api")));
  EXPECT_FALSE(Can(anonymous_, Path("post", "/version")));
  EXPECT_FALSE(Can(anonymous_, Resource("list", "", "pods")));
  EXPECT_TRUE(Can(alice_, Path("get", "/apis/apps/v1")));
  EXPECT_TRUE(Can(alice_, Resource("create", "authorization.k8s.io", "selfsubjectaccessreviews")));
  EXPECT_FALSE(Can(alice_, Path("get", "/metrics")));
}

TEST_F(RbacTest, UserRolesAreNestedAndStayInTheirNamespace) {
  Bind("dev", "view", "User", "alice");
  EXPECT_TRUE(Can(alice_, Resource("list", "", "pods", "dev")));
  EXPECT_TRUE(Can(alice_, Resource("get", "apps", "deployments/scale", "dev", "web")));
  EXPECT_FALSE(Can(alice_, Resource("get", "", "secrets", "dev", "s")));
  EXPECT_FALSE(Can(alice_, Resource("list", "", "pods", "prod")));
  EXPECT_FALSE(Can(alice_, Resource("list", "", "pods")));
  EXPECT_FALSE(Can(alice_, Resource("delete", "", "pods", "dev", "x")));
  Bind("dev", "admin", "Group", "ops");
  User op{"olga", "", {"ops", "system:authenticated"}, {}};
  EXPECT_TRUE(Can(op, Resource("delete", "", "pods", "dev", "x")));
  EXPECT_TRUE(Can(op, Resource("get", "", "secrets", "dev", "s")));
  EXPECT_TRUE(Can(op, Resource("create", "rbac.authorization.k8s.io", "rolebindings", "dev")));
  rbac_.RemoveBinding("dev/view-alice");
  EXPECT_FALSE(Can(alice_, Resource("list", "", "pods", "dev")));
}

TEST_F(RbacTest, ServiceAccountsAreSubjects) {
  Bind("dev", "edit", "ServiceAccount", "builder");
  User builder{"system:serviceaccount:dev:builder", "", {"system:serviceaccounts"}, {}};
  User other{"system:serviceaccount:prod:builder", "", {"system:serviceaccounts"}, {}};
  EXPECT_TRUE(Can(builder, Resource("create", "", "pods", "dev")));
  EXPECT_FALSE(Can(other, Resource("create", "", "pods", "dev")));
  EXPECT_TRUE(Can(other, Path("get", "/openid/v1/jwks")));
}

TEST_F(RbacTest, Components) {
  User scheduler{"system:kube-scheduler", "", {"system:authenticated"}, {}};
  EXPECT_TRUE(Can(scheduler, Resource("create", "", "pods/binding", "a", "p")));
  EXPECT_TRUE(Can(scheduler, Resource("watch", "", "pods")));
  EXPECT_TRUE(Can(scheduler, Resource("create", "events.k8s.io", "events", "a")));
  EXPECT_FALSE(Can(scheduler, Resource("list", "", "secrets")));
  EXPECT_TRUE(
      Can(scheduler, Resource("update", "coordination.k8s.io", "leases", "kube-system", "kube-scheduler")));
  EXPECT_FALSE(Can(scheduler, Resource("update", "coordination.k8s.io", "leases", "default", "other")));
  User proxy{"system:kube-proxy", "", {"system:authenticated"}, {}};
  EXPECT_TRUE(Can(proxy, Resource("watch", "discovery.k8s.io", "endpointslices")));
  User manager{"system:kube-controller-manager", "", {"system:authenticated"}, {}};
  EXPECT_TRUE(Can(manager, Resource("create", "apps", "replicasets", "a")));
  EXPECT_TRUE(Can(manager, Resource("update", "", "namespaces/finalize", "", "a")));
  EXPECT_TRUE(Can(manager, Resource("delete", "batch", "jobs", "a", "j")));
}

TEST_F(RbacTest, ReasonsAndRefusals) {
  Bind("dev", "view", "User", "alice");
  RequestInfo list = Resource("list", "", "pods", "dev");
  EXPECT_EQ(rbac_.Authorize({alice_, list}).reason,
            "RBAC: allowed by RoleBinding \"view-alice/dev\" of ClusterRole \"view\" to User \"alice\"");
  RequestInfo get = Resource("get", "", "pods/log", "prod", "web");
  EXPECT_EQ(
      ForbiddenTo({alice_, get}).message(),
      "pods \"web\" is forbidden: User \"alice\" cannot get resource \"pods/log\" in API group \"\" in the "
      "namespace \"prod\"");
  RequestInfo cluster = Resource("list", "apps", "deployments");
  EXPECT_EQ(ForbiddenTo({alice_, cluster}).message(),
            "deployments.apps is forbidden: User \"alice\" cannot list resource \"deployments\" in API group "
            "\"apps\" "
            "at the cluster scope");
  RequestInfo path = Path("get", "/metrics");
  EXPECT_EQ(ForbiddenTo({alice_, path}).message(), "forbidden: User \"alice\" cannot get path \"/metrics\"");
  Bind("dev", "no-such-role", "User", "bob");
  User bob{"bob", "", {}, {}};
  Decision decision = rbac_.Authorize({bob, list});
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.reason, "RBAC: clusterrole.rbac.authorization.k8s.io \"no-such-role\" not found");
}

TEST(Allows, Wildcards) {
  PolicyRule scale{{"get"}, {"*"}, {"*/scale"}, {}, {}};
  EXPECT_TRUE(Allows(scale, Resource("get", "apps", "deployments/scale")));
  EXPECT_FALSE(Allows(scale, Resource("get", "apps", "deployments")));
  PolicyRule named{{"*"}, {""}, {"configmaps"}, {"one"}, {}};
  EXPECT_TRUE(Allows(named, Resource("delete", "", "configmaps", "a", "one")));
  EXPECT_FALSE(Allows(named, Resource("list", "", "configmaps", "a")));
  PolicyRule pods{{"get"}, {""}, {"pods"}, {}, {}};
  EXPECT_FALSE(Allows(pods, Resource("get", "", "pods/log", "a", "p")));
}

}  // namespace
}  // namespace keelson::apiserver
