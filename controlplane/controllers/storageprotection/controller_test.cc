#include "controlplane/controllers/storageprotection/controller.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/testing.h"

namespace keelson::controllers {
namespace {

TEST(StorageProtection, ClaimStaysWhileAPodUsesIt) {
  TestCluster cluster;
  auto& controller = cluster.Make<ClaimProtectionController>();
  corev1::PersistentVolumeClaim claim;
  claim.mutable_metadata()->set_name("data");
  claim.mutable_metadata()->set_namespace_("default");
  ASSERT_TRUE(cluster.api.Create(claim));
  corev1::Pod pod = PodNamed("user", {}, "n1");
  auto& volume = *pod.mutable_spec()->add_volumes();
  volume.set_name("v");
  volume.mutable_volume_source()->mutable_persistent_volume_claim()->set_claim_name("data");
  ASSERT_TRUE(cluster.api.Create(pod));
  cluster.Start();
  cluster.Drain({&controller});
  using Claim = corev1::PersistentVolumeClaim;
  ASSERT_EQ(cluster.Get<Claim>("default", "data").metadata().finalizers_size(), 1);
  EXPECT_EQ(cluster.Get<Claim>("default", "data").metadata().finalizers(0), "kubernetes.io/pvc-protection");
  ASSERT_TRUE(cluster.api.Delete<Claim>("default", "data", {}));
  cluster.Drain({&controller});
  EXPECT_TRUE(cluster.api.Get<Claim>("default", "data"));
  client::DeleteOptions now;
  now.grace_period_seconds = 0;
  ASSERT_TRUE(cluster.api.Delete<corev1::Pod>("default", "user", now));
  cluster.Drain({&controller});
  EXPECT_FALSE(cluster.api.Get<Claim>("default", "data"));
}

TEST(StorageProtection, VolumeStaysWhileItIsBound) {
  TestCluster cluster;
  auto& controller = cluster.Make<VolumeProtectionController>();
  using Volume = corev1::PersistentVolume;
  Volume volume;
  volume.mutable_metadata()->set_name("v");
  volume.mutable_status()->set_phase("Bound");
  cluster.fake->Put(volume);
  cluster.Start();
  cluster.Drain({&controller});
  ASSERT_TRUE(cluster.api.Delete<Volume>("", "v", {}));
  cluster.Drain({&controller});
  ASSERT_TRUE(cluster.api.Get<Volume>("", "v"));
  volume = cluster.Get<Volume>("", "v");
  volume.mutable_status()->set_phase("Released");
  ASSERT_TRUE(cluster.api.UpdateStatus(volume));
  cluster.Drain({&controller});
  EXPECT_FALSE(cluster.api.Get<Volume>("", "v"));
}

}  // namespace
}  // namespace keelson::controllers
