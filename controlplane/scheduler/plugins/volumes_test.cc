// Plugins that look at volumes.
#include "controlplane/scheduler/plugins/testing/plugin_test.h"
#include "controlplane/scheduler/volumes/volume_plan.h"

namespace keelson::scheduler {
namespace {

corev1::Pod WithClaim(const std::string& name, const std::string& claim) {
  corev1::Pod pod = MakePod(name);
  corev1::Volume& volume = *pod.mutable_spec()->add_volumes();
  volume.set_name("v");
  volume.mutable_volume_source()->mutable_persistent_volume_claim()->set_claim_name(claim);
  return pod;
}

corev1::PersistentVolumeClaim MakeClaim(const std::string& name, const std::string& volume = "") {
  corev1::PersistentVolumeClaim claim;
  claim.mutable_metadata()->set_name(name);
  claim.mutable_metadata()->set_namespace_("default");
  claim.mutable_metadata()->set_uid("uid-" + name);
  claim.mutable_spec()->set_storage_class_name("wait");
  claim.mutable_spec()->add_access_modes("ReadWriteOnce");
  (*claim.mutable_spec()->mutable_resources()->mutable_requests())["storage"].set_string("1Gi");
  if (!volume.empty()) {
    claim.mutable_spec()->set_volume_name(volume);
    (*claim.mutable_metadata()->mutable_annotations())[kBindCompleted] = "yes";
  }
  return claim;
}

corev1::PersistentVolume MakeVolume(const std::string& name, const std::string& node,
                                    const char* size = "1Gi") {
  corev1::PersistentVolume volume;
  volume.mutable_metadata()->set_name(name);
  (*volume.mutable_spec()->mutable_capacity())["storage"].set_string(size);
  volume.mutable_spec()->add_access_modes("ReadWriteOnce");
  volume.mutable_spec()->set_storage_class_name("wait");
  volume.mutable_status()->set_phase("Available");
  auto& expression = *volume.mutable_spec()
                          ->mutable_node_affinity()
                          ->mutable_required()
                          ->add_node_selector_terms()
                          ->add_match_expressions();
  expression.set_key("kubernetes.io/hostname");
  expression.set_operator_("In");
  expression.add_values(node);
  return volume;
}

storagev1::StorageClass MakeClass(const std::string& provisioner) {
  storagev1::StorageClass out;
  out.mutable_metadata()->set_name("wait");
  out.set_provisioner(provisioner);
  out.set_volume_binding_mode("WaitForFirstConsumer");
  return out;
}

TEST_F(ClusterPluginTest, ClaimsThatAreNotThereStopThePod) {
  Zoned("a", "z1");
  Zoned("b", "z2");
  SetNodes();
  EXPECT_EQ(Schedule(WithClaim("p", "c")),
            std::string("0/2 nodes are available: persistentvolumeclaim \"c\" not found.") + kNotHelpful);
  corev1::PersistentVolumeClaim claim = MakeClaim("c");
  claim.mutable_spec()->set_storage_class_name("immediate");
  volumes_.SetClaim("default/c", Shared(claim));
  EXPECT_EQ(Schedule(WithClaim("p", "c")),
            std::string("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.") +
                kNotHelpful);
  claim = MakeClaim("c", "pv");
  claim.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(1);
  volumes_.SetClaim("default/c", Shared(claim));
  EXPECT_EQ(
      Schedule(WithClaim("p", "c")),
      std::string("0/2 nodes are available: persistentvolumeclaim \"c\" is being deleted.") + kNotHelpful);
}

TEST_F(ClusterPluginTest, BoundVolumesDecideTheNode) {
  Zoned("a", "z1");
  Zoned("b", "z2");
  SetNodes();
  volumes_.SetClaim("default/c", Shared(MakeClaim("c", "pv")));
  EXPECT_EQ(
      Schedule(WithClaim("p", "c")),
      std::string(
          "0/2 nodes are available: 2 node(s) unavailable due to one or more pvc(s) bound to non-existent "
          "pv(s).") +
          kNotHelpful);
  volumes_.SetVolume("pv", Shared(MakeVolume("pv", "b")));
  EXPECT_EQ(Schedule(WithClaim("p", "c")), "b");
  corev1::PersistentVolume far = MakeVolume("pv", "b");
  far.mutable_spec()->clear_node_affinity();
  (*far.mutable_metadata()->mutable_labels())["topology.kubernetes.io/zone"] = "z1__z3";
  volumes_.SetVolume("pv", Shared(far));
  EXPECT_EQ(Schedule(WithClaim("p", "c")), "a");
  (*far.mutable_metadata()->mutable_labels())["topology.kubernetes.io/zone"] = "z9";
  volumes_.SetVolume("pv", Shared(far));
  EXPECT_EQ(Schedule(WithClaim("p", "c")),
            std::string("0/2 nodes are available: 2 node(s) had no available volume zone.") + kNotHelpful);
}

TEST_F(ClusterPluginTest, DelayedClaimsFindAVolumeOrARoomForOne) {
  Zoned("a", "z1");
  Zoned("b", "z2");
  SetNodes();
  volumes_.SetClaim("default/c", Shared(MakeClaim("c")));
  volumes_.SetClass("wait", Shared(MakeClass("kubernetes.io/no-provisioner")));
  const std::string none =
      std::string("0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.") +
      kNotHelpful;
  EXPECT_EQ(Schedule(WithClaim("p", "c")), none);
  volumes_.SetVolume("small", Shared(MakeVolume("small", "a", "1Mi")));
  EXPECT_EQ(Schedule(WithClaim("p", "c")), none);
  volumes_.SetVolume("right", Shared(MakeVolume("right", "b")));
  EXPECT_EQ(Schedule(WithClaim("p", "c")), "b");
  // Reserved for one pod it is no more for another.
  CycleState state;
  volumes_.SetClaim("default/d", Shared(MakeClaim("d")));
  const PodPtr pod = Info(WithClaim("p", "c"), words_);
  ASSERT_EQ(algorithm_->SchedulePod(state, pod, snapshot_).suggested_host, "b");
  ASSERT_TRUE(framework_->RunReservePluginsReserve(state, *pod, *snapshot_.Find("b")).status.ok());
  EXPECT_EQ(volumes_.FindVolume("right")->spec().claim_ref().name(), "c");
  EXPECT_EQ(Schedule(WithClaim("q", "d")), none);
  framework_->RunReservePluginsUnreserve(state, *pod, "b");
  EXPECT_EQ(Schedule(WithClaim("q", "d")), "b");

  // A provisioner that tells where it has room.
  volumes_.SetVolume("right", nullptr);
  volumes_.SetClass("wait", Shared(MakeClass("example.com/csi")));
  storagev1::CSIDriver driver;
  driver.mutable_spec()->set_storage_capacity(true);
  volumes_.SetDriver("example.com/csi", Shared(driver));
  EXPECT_EQ(
      Schedule(WithClaim("p", "c")),
      std::string("0/2 nodes are available: 2 node(s) did not have enough free storage.") + kNotHelpful);
  storagev1::CSIStorageCapacity capacity;
  capacity.set_storage_class_name("wait");
  capacity.mutable_capacity()->set_string("5Gi");
  (*capacity.mutable_node_topology()->mutable_match_labels())["kubernetes.io/hostname"] = "a";
  volumes_.SetCapacity("x/cap", Shared(capacity));
  EXPECT_EQ(Schedule(WithClaim("p", "c")), "a");
}

TEST_F(ClusterPluginTest, ExclusiveClaimsAndDisks) {
  Zoned("a", "z1");
  SetNodes();
  corev1::PersistentVolumeClaim claim = MakeClaim("c", "pv");
  claim.mutable_spec()->set_access_modes(0, "ReadWriteOncePod");
  volumes_.SetClaim("default/c", Shared(claim));
  volumes_.SetVolume("pv", Shared(MakeVolume("pv", "a")));
  Place(WithClaim("first", "c"), "a");
  EXPECT_EQ(
      Schedule(WithClaim("second", "c")),
      "0/1 nodes are available: 1 node has pod using PersistentVolumeClaim with the same name and "
      "ReadWriteOncePod "
      "access mode. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.");
  corev1::Pod important = WithClaim("third", "c");
  important.mutable_spec()->set_priority(10);
  Schedule(important);
  EXPECT_EQ(executor_.evicted_, "a: first");

  corev1::Pod disk = MakePod("disk");
  disk.mutable_spec()->add_volumes()->mutable_volume_source()->mutable_gce_persistent_disk()->set_pd_name(
      "d");
  Place(disk, "a");
  disk.mutable_metadata()->set_name("disk2");
  EXPECT_EQ(Schedule(disk).find("0/1 nodes are available: 1 node(s) had no available disk."), 0u);
}

// Node "a" takes one volume of example.com/csi. Claims "c" and "d" have one each.
class VolumeLimitTest : public ClusterPluginTest {
 protected:
  VolumeLimitTest() {
    Zoned("a", "z1");
    SetNodes();
    storagev1::CSINode drivers;
    storagev1::CSINodeDriver& driver = *drivers.mutable_spec()->add_drivers();
    driver.set_name("example.com/csi");
    driver.mutable_allocatable()->set_count(1);
    volumes_.SetNodeDrivers("a", Shared(drivers));
    for (const std::string name : {"c", "d"}) {
      volumes_.SetClaim("default/" + name, Shared(MakeClaim(name, "pv-" + name)));
      corev1::PersistentVolume volume = MakeVolume("pv-" + name, "a");
      auto& csi = *volume.mutable_spec()->mutable_persistent_volume_source()->mutable_csi();
      csi.set_driver("example.com/csi");
      csi.set_volume_handle(name);
      volumes_.SetVolume(volume.metadata().name(), Shared(volume));
    }
  }
};

TEST_F(VolumeLimitTest, NodesTakeOnlySoManyVolumes) {
  EXPECT_EQ(Schedule(WithClaim("p", "c")), "a");
  Place(WithClaim("p", "c"), "a");
  EXPECT_EQ(Schedule(WithClaim("again", "c")), "a");  // the same volume
  EXPECT_EQ(Schedule(WithClaim("q", "d")).find("0/1 nodes are available: 1 node(s) exceed max volume count."),
            0u);
  corev1::Pod with_inline = MakePod("r");
  with_inline.mutable_spec()->add_volumes()->mutable_volume_source()->mutable_csi()->set_driver(
      "example.com/csi");
  EXPECT_EQ(Schedule(with_inline), "a") << "nothing attaches its volume";
}

TEST_F(VolumeLimitTest, AVolumeCountsUntilItIsDetached) {
  storagev1::VolumeAttachment attachment;
  attachment.mutable_spec()->set_node_name("a");
  attachment.mutable_spec()->mutable_source()->set_persistent_volume_name("pv-c");
  volumes_.SetAttachment("va", Shared(attachment));
  volumes_.SetAttachment("va", Shared(attachment));
  EXPECT_EQ(Schedule(WithClaim("p", "c")), "a") << "it is there already";
  EXPECT_EQ(Schedule(WithClaim("q", "d")).find("0/1 nodes are available: 1 node(s) exceed max volume count."),
            0u);
  volumes_.SetAttachment("va", nullptr);
  EXPECT_EQ(Schedule(WithClaim("q", "d")), "a");
}

}  // namespace
}  // namespace keelson::scheduler
