#include "controlplane/controllers/ephemeralvolume/controller.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using Claim = corev1::PersistentVolumeClaim;
using ::testing::Test;

class EphemeralVolumeTest : public Test {
 protected:
  void SetUp() override {
    corev1::Pod pod = PodNamed("web");
    corev1::Volume& volume = *pod.mutable_spec()->add_volumes();
    volume.set_name("scratch");
    auto& source = *volume.mutable_volume_source()->mutable_ephemeral()->mutable_volume_claim_template();
    (*source.mutable_metadata()->mutable_labels())["tier"] = "fast";
    (*source.mutable_metadata()->mutable_annotations())["note"] = "x";
    source.mutable_spec()->set_storage_class_name("local");
    source.mutable_spec()->add_access_modes("ReadWriteOnce");
    ASSERT_TRUE(cluster_.api.Create(pod));
  }
  void Run() {
    cluster_.Start();
    cluster_.Drain({&controller_});
  }

  TestCluster cluster_;
  EphemeralVolumeController& controller_ = cluster_.Make<EphemeralVolumeController>();
};

TEST_F(EphemeralVolumeTest, ClaimBelongsToItsPod) {
  Run();
  const Claim claim = cluster_.Get<Claim>("default", "web-scratch");
  const metav1::OwnerReference* owner = api::ControllerOf(claim.metadata());
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->kind(), "Pod");
  EXPECT_EQ(owner->uid(), cluster_.Get<corev1::Pod>("default", "web").metadata().uid());
  EXPECT_TRUE(owner->block_owner_deletion());
  EXPECT_EQ(claim.metadata().labels().at("tier"), "fast");
  EXPECT_EQ(claim.metadata().annotations().at("note"), "x");
  EXPECT_EQ(claim.spec().storage_class_name(), "local");
}

TEST_F(EphemeralVolumeTest, ClaimIsMadeAgain) {
  Run();
  ASSERT_TRUE(cluster_.api.Delete<Claim>("default", "web-scratch", {}));
  cluster_.Drain({&controller_});
  EXPECT_TRUE(cluster_.api.Get<Claim>("default", "web-scratch"));
}

TEST_F(EphemeralVolumeTest, PodThatLeavesGetsNone) {
  corev1::Pod pod = cluster_.Get<corev1::Pod>("default", "web");
  *pod.mutable_metadata()->mutable_deletion_timestamp() = api::ToTime(cluster_.clock.Now());
  cluster_.fake->Put(pod);
  Run();
  EXPECT_TRUE(cluster_.List<Claim>().empty());
}

TEST_F(EphemeralVolumeTest, ClaimOfAnotherIsLeftAlone) {
  Claim other;
  other.mutable_metadata()->set_name("web-scratch");
  other.mutable_metadata()->set_namespace_("default");
  ASSERT_TRUE(cluster_.api.Create(other));
  Run();
  EXPECT_EQ(cluster_.Get<Claim>("default", "web-scratch").metadata().owner_references_size(), 0);
  EXPECT_EQ(cluster_.Events(),
            std::vector<std::string>{"FailedBinding: ephemeral volume scratch: PVC default/web-scratch was "
                                     "not created for pod default/web (pod is not owner)"});
}

}  // namespace
}  // namespace keelson::controllers
