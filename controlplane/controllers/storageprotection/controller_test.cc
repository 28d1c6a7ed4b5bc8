#include "controlplane/controllers/storageprotection/controller.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/storageprotection/classes.h"
#include "controlplane/controllers/testing/cluster.h"

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

TEST(StorageProtection, ClassStaysWhileItIsNamed) {
  using Class = ClassProtectionController::Class;
  using Claim = corev1::PersistentVolumeClaim;
  struct Case {
    const char* what;
    std::function<void(TestCluster&cluster)> use, leave;
  };
  auto claim = [](auto change) {
    return [change](TestCluster& cluster) {
      Claim object;
      object.mutable_metadata()->set_name("data");
      object.mutable_metadata()->set_namespace_("default");
      change(object);
      cluster.fake->Put(object);
    };
  };
  auto unclaim = claim([](Claim& object) { object.mutable_status()->set_phase("Bound"); });
  auto volume = [](const char* name) {
    return [name](TestCluster& cluster) {
      corev1::PersistentVolume object;
      object.mutable_metadata()->set_name("v");
      object.mutable_spec()->set_volume_attributes_class_name(name);
      cluster.fake->Put(object);
    };
  };
  const Case cases[] = {
      {"wanted",
       claim([](Claim& object) { object.mutable_spec()->set_volume_attributes_class_name("gold"); }),
       unclaim},
      {"present", claim([](Claim& object) {
         object.mutable_spec()->set_volume_attributes_class_name("silver");
         object.mutable_status()->set_current_volume_attributes_class_name("gold");
       }),
       unclaim},
      {"on its way", claim([](Claim& object) {
         object.mutable_status()->mutable_modify_volume_status()->set_target_volume_attributes_class_name(
             "gold");
       }),
       unclaim},
      {"of a volume", volume("gold"), volume("silver")}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    TestCluster cluster;
    auto& controller = cluster.Make<ClassProtectionController>();
    Class made;
    made.mutable_metadata()->set_name("gold");
    ASSERT_TRUE(cluster.api.Create(made));
    one.use(cluster);
    cluster.Start();
    cluster.Drain({&controller});
    ASSERT_EQ(cluster.Get<Class>("", "gold").metadata().finalizers_size(), 1);
    EXPECT_EQ(cluster.Get<Class>("", "gold").metadata().finalizers(0), "kubernetes.io/vac-protection");
    ASSERT_TRUE(cluster.api.Delete<Class>("", "gold", {}));
    cluster.Drain({&controller});
    ASSERT_TRUE(cluster.api.Get<Class>("", "gold"));
    one.leave(cluster);
    cluster.Drain({&controller});
    EXPECT_FALSE(cluster.api.Get<Class>("", "gold"));
  }
}

}  // namespace
}  // namespace keelson::controllers
