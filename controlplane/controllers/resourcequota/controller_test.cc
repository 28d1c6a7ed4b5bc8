#include "controlplane/controllers/resourcequota/controller.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/testing.h"
#include "lib/k8s/pod_resources.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;

corev1::ResourceQuota QuotaNamed(const std::string& name, const std::map<std::string, std::string>& hard) {
  corev1::ResourceQuota quota;
  quota.mutable_metadata()->set_name(name);
  quota.mutable_metadata()->set_namespace_("default");
  for (const auto& [resource, amount] : hard)
    (*quota.mutable_spec()->mutable_hard())[resource] = api::Amount::Parse(amount)->ToQuantity();
  return quota;
}

class ResourceQuotaTest : public ::testing::Test {
 protected:
  void Start() {
    cluster_.Start();
    cluster_.Drain({&controller_});
  }
  std::string Used(const std::string& name) {
    const auto quota = cluster_.Get<corev1::ResourceQuota>("default", name);
    std::string text;
    for (const auto& [resource, amount] : k8s::ToResourceList(quota.status().used()))
      text += (text.empty() ? "" : " ") + resource + "=" + amount.ToString();
    return text;
  }
  void AddPod(const std::string& name, const std::string& cpu = "") {
    corev1::Pod pod = PodNamed(name);
    if (pod.spec().containers().empty()) pod.mutable_spec()->add_containers()->set_name("c");
    if (!cpu.empty())
      (*pod.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_requests())["cpu"] =
          api::Amount::Parse(cpu)->ToQuantity();
    ASSERT_TRUE(cluster_.api.Create(pod));
  }

  TestCluster cluster_;
  ResourceQuotaController& controller_ = cluster_.Make<ResourceQuotaController>();
};

TEST_F(ResourceQuotaTest, CountsWhatIsThere) {
  AddPod("a", "100m");
  AddPod("b", "1");
  ASSERT_TRUE(cluster_.api.Create(QuotaNamed(
      "q", {{"pods", "5"}, {"requests.cpu", "2"}, {"count/deployments.apps", "3"}, {"secrets", "9"}})));
  ASSERT_TRUE(cluster_.api.Create(DeploymentNamed("d", 1)));
  Start();
  EXPECT_EQ(Used("q"), "count/deployments.apps=1 pods=2 requests.cpu=1100m secrets=0");
  EXPECT_EQ(cluster_.Get<corev1::ResourceQuota>("default", "q").status().hard().size(), 4U);
}

TEST_F(ResourceQuotaTest, GivesBackWhatGoes) {
  AddPod("a");
  AddPod("b");
  ASSERT_TRUE(cluster_.api.Create(QuotaNamed("q", {{"pods", "5"}, {"count/pods", "9"}})));
  Start();
  EXPECT_EQ(Used("q"), "count/pods=2 pods=2");
  corev1::Pod done = cluster_.Get<corev1::Pod>("default", "a");
  done.mutable_status()->set_phase("Succeeded");
  ASSERT_TRUE(cluster_.api.UpdateStatus(done));
  cluster_.Drain({&controller_});
  EXPECT_EQ(Used("q"), "count/pods=2 pods=1");
  client::DeleteOptions now;
  now.grace_period_seconds = 0;
  ASSERT_TRUE(cluster_.api.Delete<corev1::Pod>("default", "b", now));
  cluster_.Drain({&controller_});
  EXPECT_EQ(Used("q"), "count/pods=1 pods=0");
}

TEST_F(ResourceQuotaTest, ScopesChoosePods) {
  AddPod("best");
  AddPod("burst", "1");
  corev1::ResourceQuota quota = QuotaNamed("q", {{"pods", "5"}});
  quota.mutable_spec()->add_scopes("BestEffort");
  ASSERT_TRUE(cluster_.api.Create(quota));
  Start();
  EXPECT_EQ(Used("q"), "pods=1");
}

TEST_F(ResourceQuotaTest, FollowsTheSpecAndLooksAgain) {
  ASSERT_TRUE(cluster_.api.Create(QuotaNamed("q", {{"pods", "5"}})));
  Start();
  corev1::ResourceQuota quota = cluster_.Get<corev1::ResourceQuota>("default", "q");
  *quota.mutable_spec() = QuotaNamed("q", {{"services", "2"}}).spec();
  ASSERT_TRUE(cluster_.api.Update(quota));
  cluster_.Drain({&controller_});
  EXPECT_EQ(Used("q"), "services=0");
  // Charged for what was never stored.
  quota = cluster_.Get<corev1::ResourceQuota>("default", "q");
  (*quota.mutable_status()->mutable_used())["services"] = api::Amount::FromInt(1).ToQuantity();
  ASSERT_TRUE(cluster_.api.UpdateStatus(quota));
  cluster_.Advance(6min, {&controller_});
  EXPECT_EQ(Used("q"), "services=0");
}

}  // namespace
}  // namespace keelson::controllers
