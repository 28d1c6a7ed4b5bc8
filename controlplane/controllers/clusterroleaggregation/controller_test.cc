#include "controlplane/controllers/clusterroleaggregation/controller.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/testing/cluster.h"

namespace keelson::controllers {
namespace {

class ClusterRoleAggregationTest : public ::testing::Test {
 protected:
  // A ClusterRole that allows get on `resource`, with the label that the role `view` aggregates.
  void Put(const std::string& name, const std::string& label, const std::string& resource) {
    rbacv1::ClusterRole role;
    role.mutable_metadata()->set_name(name);
    if (!label.empty()) (*role.mutable_metadata()->mutable_labels())[label] = "true";
    rbacv1::PolicyRule& rule = *role.add_rules();
    rule.add_verbs("get");
    rule.add_resources(resource);
    cluster_.fake->Put(role);
  }
  void PutAggregate(const std::string& name, const std::vector<std::string>& labels,
                    const std::string& own_label = "") {
    rbacv1::ClusterRole role;
    role.mutable_metadata()->set_name(name);
    if (!own_label.empty()) (*role.mutable_metadata()->mutable_labels())[own_label] = "true";
    role.mutable_aggregation_rule();
    for (const std::string& label : labels) {
      auto& selector = *role.mutable_aggregation_rule()->add_cluster_role_selectors();
      (*selector.mutable_match_labels())[label] = "true";
    }
    cluster_.fake->Put(role);
  }
  std::string Resources(const std::string& name) {
    std::string out;
    const auto role = cluster_.Get<rbacv1::ClusterRole>("", name);
    for (const auto& rule : role.rules()) out += (out.empty() ? "" : " ") + rule.resources(0);
    return out;
  }

  TestCluster cluster_;
  ClusterRoleAggregationController& controller_ = cluster_.Make<ClusterRoleAggregationController>();
};

TEST_F(ClusterRoleAggregationTest, FollowsTheRolesItIsMadeOf) {
  PutAggregate("view", {"to-view"}, "to-edit");
  PutAggregate("edit", {"to-edit", "to-extra"});
  Put("b", "to-view", "pods");
  Put("a", "to-view", "services");
  Put("c", "to-view", "pods");  // the same rule counts once
  Put("d", "to-extra", "secrets");
  Put("plain", "", "nodes");
  cluster_.Start();
  cluster_.Drain({&controller_});
  EXPECT_EQ(Resources("view"), "services pods");
  EXPECT_EQ(Resources("edit"), "services pods secrets");  // through view
  EXPECT_EQ(Resources("plain"), "nodes");

  // Manual edits of the rules are overwritten.
  auto view = cluster_.Get<rbacv1::ClusterRole>("", "view");
  view.mutable_rules(0)->set_resources(0, "everything");
  ASSERT_TRUE(cluster_.api.Update(view));
  ASSERT_TRUE(cluster_.api.Delete<rbacv1::ClusterRole>("", "d"));
  cluster_.Drain({&controller_});
  EXPECT_EQ(Resources("view"), "services pods");
  EXPECT_EQ(Resources("edit"), "services pods");
  EXPECT_TRUE(cluster_.errors.empty());

  view = cluster_.Get<rbacv1::ClusterRole>("", "view");
  cluster_.Advance(std::chrono::minutes(10), {&controller_});
  EXPECT_EQ(cluster_.Get<rbacv1::ClusterRole>("", "view").metadata().resource_version(),
            view.metadata().resource_version());
}

}  // namespace
}  // namespace keelson::controllers
