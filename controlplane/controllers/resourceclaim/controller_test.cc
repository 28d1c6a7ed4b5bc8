#include "controlplane/controllers/resourceclaim/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/common/metrics.h"
#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/resource_claims.h"

namespace keelson::controllers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::Test;
using Claim = resourcev1::ResourceClaim;

class ResourceClaimTest : public Test {
 protected:
  void PutTemplate() {
    resourcev1::ResourceClaimTemplate source;
    source.mutable_metadata()->set_name("gpu");
    source.mutable_metadata()->set_namespace_("default");
    (*source.mutable_spec()->mutable_metadata()->mutable_labels())["tier"] = "fast";
    (*source.mutable_spec()->mutable_metadata()->mutable_annotations())["note"] = "x";
    auto& request = *source.mutable_spec()->mutable_spec()->mutable_devices()->add_requests();
    request.set_name("one");
    request.mutable_exactly()->set_device_class_name("gpu.example.com");
    ASSERT_TRUE(cluster_.api.Create(source));
  }
  // A pod with a claim from the template; of another name: with that claim.
  corev1::Pod PutPod(const std::string& name, const std::string& claim = "", const std::string& node = "") {
    corev1::Pod pod = PodNamed(name, {}, node);
    corev1::PodResourceClaim& entry = *pod.mutable_spec()->add_resource_claims();
    entry.set_name("device");
    if (claim.empty()) {
      entry.set_resource_claim_template_name("gpu");
    } else {
      entry.set_resource_claim_name(claim);
    }
    Result<corev1::Pod> stored = cluster_.api.Create(pod);
    EXPECT_TRUE(stored);
    return *stored;
  }
  Claim PutClaim(const std::string& name, const std::vector<corev1::Pod>& users) {
    Claim claim;
    claim.mutable_metadata()->set_name(name);
    claim.mutable_metadata()->set_namespace_("default");
    claim.mutable_metadata()->add_finalizers(k8s::kResourceClaimFinalizer);
    claim.mutable_status()->mutable_allocation();
    for (const corev1::Pod& user : users) {
      auto& reference = *claim.mutable_status()->add_reserved_for();
      reference.set_resource("pods");
      reference.set_name(user.metadata().name());
      reference.set_uid(user.metadata().uid());
    }
    cluster_.fake->Put(claim);
    return Read(name);
  }
  void Finish(const std::string& name) {
    corev1::Pod pod = cluster_.Get<corev1::Pod>("default", name);
    pod.mutable_status()->set_phase("Succeeded");
    cluster_.fake->Put(pod);
  }
  void Run() {
    cluster_.Start();
    Drain();
  }
  void Drain() { cluster_.Drain({&controller_}); }
  Claim Read(const std::string& name) { return cluster_.Get<Claim>("default", name); }
  std::vector<std::string> Users(const std::string& name) {
    const Claim claim = Read(name);
    std::vector<std::string> out;
    for (const auto& user : claim.status().reserved_for()) out.push_back(user.name());
    return out;
  }
  // The one claim that exists.
  Claim Made() {
    const std::vector<Claim> all = cluster_.List<Claim>();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? Claim() : all.front();
  }

  TestCluster cluster_;
  ResourceClaimController& controller_ = cluster_.Make<ResourceClaimController>();
};

TEST_F(ResourceClaimTest, ClaimIsMadeFromTheTemplate) {
  PutTemplate();
  const corev1::Pod pod = PutPod("web");
  Run();
  const Claim claim = Made();
  EXPECT_THAT(claim.metadata().name(), StartsWith("web-device-"));
  EXPECT_EQ(claim.metadata().labels().at("tier"), "fast");
  EXPECT_EQ(claim.metadata().annotations().at("note"), "x");
  EXPECT_EQ(claim.metadata().annotations().at(ResourceClaimController::kPodClaimName), "device");
  const metav1::OwnerReference* owner = api::ControllerOf(claim.metadata());
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->uid(), pod.metadata().uid());
  EXPECT_TRUE(owner->block_owner_deletion());
  EXPECT_EQ(claim.spec().devices().requests(0).exactly().device_class_name(), "gpu.example.com");
  const corev1::PodStatus status = cluster_.Get<corev1::Pod>("default", "web").status();
  ASSERT_EQ(status.resource_claim_statuses_size(), 1);
  EXPECT_EQ(status.resource_claim_statuses(0).name(), "device");
  EXPECT_EQ(status.resource_claim_statuses(0).resource_claim_name(), claim.metadata().name());
  EXPECT_THAT(cluster_.errors, IsEmpty());
}

TEST_F(ResourceClaimTest, LongNamesAreCutInProportion) {
  PutTemplate();
  PutPod(std::string(200, 'p'));
  Run();
  const std::string name = Made().metadata().name();
  EXPECT_LE(name.size(), 63u);
  EXPECT_NE(name.find("pppp-d"), std::string::npos) << name;
}

TEST_F(ResourceClaimTest, ClaimOfAnEarlierTryIsUsed) {
  PutTemplate();
  PutPod("web");
  Run();
  const std::string name = Made().metadata().name();
  corev1::Pod pod = cluster_.Get<corev1::Pod>("default", "web");
  pod.mutable_status()
      ->clear_resource_claim_statuses();  // as if the controller had died before it wrote the status
  cluster_.fake->Put(pod);
  cluster_.Settle();
  Drain();
  EXPECT_EQ(Made().metadata().name(), name);
  EXPECT_EQ(
      cluster_.Get<corev1::Pod>("default", "web").status().resource_claim_statuses(0).resource_claim_name(),
      name);
}

TEST_F(ResourceClaimTest, DeletedClaimIsMadeAgain) {
  PutTemplate();
  PutPod("web");
  Run();
  const std::string first = Made().metadata().name();
  ASSERT_TRUE(cluster_.api.Delete<Claim>("default", first));
  cluster_.Settle();
  Drain();
  const std::string second = Made().metadata().name();
  EXPECT_NE(second, first);
  EXPECT_EQ(
      cluster_.Get<corev1::Pod>("default", "web").status().resource_claim_statuses(0).resource_claim_name(),
      second);
}

TEST_F(ResourceClaimTest, MissingTemplateIsAnEvent) {
  PutPod("web");
  Run();
  EXPECT_EQ(cluster_.Events(),
            std::vector<std::string>{
                "FailedResourceClaimCreation: PodResourceClaim device: resource claim template "
                "\"gpu\": resourceclaimtemplate.resource.k8s.io \"gpu\" not found"});
}

TEST_F(ResourceClaimTest, PodThatSkippedTheSchedulerIsAdded) {
  PutClaim("shared", {});
  PutPod("web", "shared", "n1");
  Run();
  EXPECT_THAT(Users("shared"), ElementsAre("web"));
  EXPECT_TRUE(Read("shared").status().has_allocation());
}

TEST_F(ResourceClaimTest, FinishedPodsLeaveAndTheLastOneFreesTheDevices) {
  const corev1::Pod one = PutPod("one", "shared", "n1"), two = PutPod("two", "shared", "n1");
  PutClaim("shared", {one, two});
  Run();
  EXPECT_THAT(Users("shared"), ElementsAre("one", "two"));
  Finish("one");
  cluster_.Settle();
  Drain();
  EXPECT_THAT(Users("shared"), ElementsAre("two"));
  EXPECT_TRUE(Read("shared").status().has_allocation());
  ASSERT_TRUE(cluster_.api.Delete<corev1::Pod>("default", "two", {.grace_period_seconds = 0}));
  cluster_.Settle();
  Drain();
  EXPECT_THAT(Users("shared"), IsEmpty());
  EXPECT_FALSE(Read("shared").status().has_allocation());
  EXPECT_THAT(Read("shared").metadata().finalizers(), IsEmpty());
}

TEST_F(ResourceClaimTest, PodOfTheSameNameIsAnotherUser) {
  corev1::Pod former = PodNamed("web");
  former.mutable_metadata()->set_uid("former");
  PutPod("web", "shared");
  PutClaim("shared", {former});
  Run();
  EXPECT_THAT(Users("shared"), IsEmpty());
  EXPECT_FALSE(Read("shared").status().has_allocation());
}

TEST_F(ResourceClaimTest, ClaimInUseOutlivesItsDeletion) {
  const corev1::Pod pod = PutPod("web", "shared", "n1");
  Claim claim = PutClaim("shared", {pod});
  *claim.mutable_metadata()->mutable_deletion_timestamp() = api::ToTime(cluster_.clock.Now());
  cluster_.fake->Put(claim);
  Run();
  EXPECT_THAT(Read("shared").metadata().finalizers(), ElementsAre(k8s::kResourceClaimFinalizer));
  Finish("web");
  cluster_.Settle();
  Drain();
  EXPECT_FALSE(cluster_.api.Get<Claim>("default", "shared"));
}

TEST_F(ResourceClaimTest, GeneratedClaimGoesWithItsFinishedPod) {
  PutTemplate();
  PutPod("web", "", "n1");
  Run();
  Finish("web");
  cluster_.Settle();
  Drain();
  EXPECT_THAT(cluster_.List<Claim>(), IsEmpty());
}

TEST_F(ResourceClaimTest, OtherUsersThanPodsAreLeftAlone) {
  Claim claim = PutClaim("shared", {});
  auto& user = *claim.mutable_status()->add_reserved_for();
  user.set_api_group("example.com");
  user.set_resource("things");
  user.set_name("t");
  user.set_uid("tu");
  cluster_.fake->Put(claim);
  Run();
  EXPECT_THAT(Users("shared"), ElementsAre("t"));
  EXPECT_FALSE(cluster_.errors.empty());
}

TEST_F(ResourceClaimTest, CountsClaimsByStateAndSource) {
  PutTemplate();
  PutPod("web");
  PutClaim("shared", {PutPod("user", "shared", "n1")});
  Run();
  auto count = [](const char* allocated, const char* source) {
    return TheMetrics().resource_claims.With({allocated, "false", source}).Get();
  };
  EXPECT_EQ(count("false", "resource_claim_template"), 1);
  EXPECT_EQ(count("true", ""), 1);
  for (const Claim& claim : cluster_.List<Claim>()) {
    if (claim.metadata().name() == "shared") continue;
    ASSERT_TRUE(cluster_.api.Delete<Claim>("default", claim.metadata().name()));
  }
  cluster_.Settle();
  EXPECT_EQ(count("false", "resource_claim_template"), 0);
}

TEST(DeletedPodsTest, ForgetsTheOldest) {
  DeletedPods pods(2);
  for (const char* uid : {"a", "b", "b", "c"}) pods.Add(uid);
  EXPECT_FALSE(pods.Has("a"));
  EXPECT_TRUE(pods.Has("b"));
  EXPECT_TRUE(pods.Has("c"));
}

}  // namespace
}  // namespace keelson::controllers
