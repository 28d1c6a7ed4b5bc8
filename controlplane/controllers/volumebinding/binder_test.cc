#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "controlplane/controllers/testing/cluster.h"
#include "controlplane/controllers/testing/metrics.h"
#include "controlplane/controllers/volumebinding/claims.h"
#include "controlplane/controllers/volumebinding/testing/volumes.h"
#include "controlplane/controllers/volumebinding/volumes.h"
#include "lib/api/quantity.h"
#include "lib/base/file.h"

namespace keelson::controllers {
namespace {

class BinderTest : public ::testing::Test {
 protected:
  void Run() {
    if (!started_) cluster_.Start();
    started_ = true;
    cluster_.Drain({&claims_, &volumes_});
    EXPECT_EQ(cluster_.errors, std::vector<std::string>{});
  }
  PersistentVolumeClaim Claim(const std::string& name = "c") {
    return cluster_.Get<PersistentVolumeClaim>("default", name);
  }
  PersistentVolume Volume(const std::string& name = "v") { return cluster_.Get<PersistentVolume>("", name); }
  // A claim and a volume that are bound to each other.
  void MakeBound(const char* policy = "Retain", const char* provisioner = nullptr,
                 const std::string& path = "") {
    PersistentVolume volume = VolumeNamed("v");
    if (!path.empty()) {
      volume.mutable_spec()->mutable_persistent_volume_source()->mutable_host_path()->set_path(path);
    }
    volume.mutable_spec()->set_persistent_volume_reclaim_policy(policy);
    if (provisioner) (*volume.mutable_metadata()->mutable_annotations())[kProvisionedBy] = provisioner;
    cluster_.fake->Put(volume);
    cluster_.fake->Put(ClaimNamed("c"));
    Run();
    ASSERT_EQ(Claim().status().phase(), "Bound");
  }
  void DeleteClaim() {
    ASSERT_TRUE(cluster_.api.Delete<PersistentVolumeClaim>("default", "c", {}));
    Run();
  }
  std::vector<std::string> Events() { return cluster_.Events(); }

  TestCluster cluster_;
  bool started_ = false;
  ClaimBinder& claims_ = cluster_.Make<ClaimBinder>();
  VolumeBinder& volumes_ = cluster_.Make<VolumeBinder>();
};

using Strings = std::vector<std::string>;

TEST_F(BinderTest, BindsBothWays) {
  cluster_.fake->Put(VolumeNamed("v", "7Gi", "slow", {"ReadWriteOnce", "ReadOnlyMany"}));
  cluster_.fake->Put(ClaimNamed("c", "5Gi"));
  Run();
  const PersistentVolumeClaim claim = Claim();
  const PersistentVolume volume = Volume();
  EXPECT_EQ(claim.spec().volume_name(), "v");
  EXPECT_EQ(claim.metadata().annotations().at(kBindCompleted), "yes");
  EXPECT_EQ(claim.metadata().annotations().at(kBoundByController), "yes");
  EXPECT_EQ(claim.status().phase(), "Bound");
  EXPECT_EQ(claim.status().access_modes_size(), 2);
  EXPECT_EQ(claim.status().capacity().at("storage").string(), "7Gi");
  EXPECT_EQ(volume.metadata().annotations().at(kBoundByController), "yes");
  EXPECT_EQ(volume.status().phase(), "Bound");
  const corev1::ObjectReference& ref = volume.spec().claim_ref();
  EXPECT_EQ(ref.kind() + ref.api_version() + ref.namespace_() + ref.name(),
            "PersistentVolumeClaimv1defaultc");
  EXPECT_EQ(ref.uid(), claim.metadata().uid());
}

TEST_F(BinderTest, AtRestWritesNothing) {
  MakeBound();
  cluster_.fake->ForgetRequests();
  claims_.queue().Add("default/c");
  volumes_.queue().Add("v");
  Run();
  EXPECT_EQ(cluster_.fake->Requests(), Strings{});
}

TEST_F(BinderTest, NewVolumeIsMadeAvailableAndFindsWhoWaits) {
  cluster_.fake->Put(ClaimNamed("c"));
  Run();
  PersistentVolume volume = VolumeNamed("v");
  volume.clear_status();
  cluster_.fake->Put(volume);
  Run();
  EXPECT_EQ(Claim().spec().volume_name(), "v");
}

TEST_F(BinderTest, TwoClaimsGetTwoVolumes) {
  for (const char* name : {"v1", "v2"}) cluster_.fake->Put(VolumeNamed(name));
  for (const char* name : {"a", "b", "c"}) cluster_.fake->Put(ClaimNamed(name));
  Run();
  EXPECT_NE(Claim("a").spec().volume_name(), Claim("b").spec().volume_name());
  EXPECT_EQ(Claim("c").status().phase(), "Pending");
}

TEST_F(BinderTest, MakerOfVolumeMayReserveIt) {
  cluster_.fake->Put(MeantFor(VolumeNamed("v", "9Gi", "other"), "c"));
  cluster_.fake->Put(VolumeNamed("w"));
  cluster_.fake->Put(ClaimNamed("c"));
  Run();
  EXPECT_EQ(Claim().spec().volume_name(), "v");
  EXPECT_FALSE(HasAnnotation(Volume().metadata(), kBoundByController));
  EXPECT_EQ(Volume().spec().claim_ref().uid(), Claim().metadata().uid());
}

TEST_F(BinderTest, ClaimMayNameItsVolume) {
  PersistentVolumeClaim claim = ClaimNamed("c");
  claim.mutable_spec()->set_volume_name("v");
  cluster_.fake->Put(claim);
  Run();
  EXPECT_EQ(Claim().status().phase(), "Pending");
  cluster_.fake->Put(VolumeNamed("v"));
  Run();
  EXPECT_EQ(Claim().status().phase(), "Bound");
  EXPECT_FALSE(HasAnnotation(Claim().metadata(), kBoundByController));
  EXPECT_EQ(Volume().status().phase(), "Bound");
}

TEST_F(BinderTest, NamedVolumeThatDoesNotFit) {
  PersistentVolumeClaim claim = ClaimNamed("c", "2Gi");
  claim.mutable_spec()->set_volume_name("v");
  cluster_.fake->Put(claim);
  cluster_.fake->Put(VolumeNamed("v", "1Gi"));
  Run();
  EXPECT_EQ(Claim().status().phase(), "Pending");
  EXPECT_EQ(Events(),
            Strings{"VolumeMismatch: Cannot bind to requested volume \"v\": requested PV is too small"});
}

TEST_F(BinderTest, NamedVolumeOfAnother) {
  PersistentVolumeClaim claim = ClaimNamed("c");
  claim.mutable_spec()->set_volume_name("v");
  cluster_.fake->Put(claim);
  cluster_.fake->Put(MeantFor(VolumeNamed("v"), "other"));
  Run();
  EXPECT_EQ(Claim().status().phase(), "Pending");
  EXPECT_EQ(Events(), Strings{"FailedBinding: volume \"v\" already bound to a different claim."});
}

TEST_F(BinderTest, DefaultClassComesLate) {
  const Growth late("retroactive_storageclass_total");
  cluster_.fake->Put(ClaimNamed("c", "1Gi", nullptr));
  cluster_.fake->Put(ClaimNamed("none", "1Gi", ""));
  Run();
  EXPECT_FALSE(Claim().spec().has_storage_class_name());
  StorageClass fallback = ClassNamed("late");
  (*fallback.mutable_metadata()->mutable_annotations())["storageclass.kubernetes.io/is-default-class"] =
      "true";
  cluster_.fake->Put(fallback);
  Run();
  EXPECT_EQ(Claim().spec().storage_class_name(), "late");
  EXPECT_EQ(Claim().metadata().annotations().at(kProvisioner), "example.com/disk");
  EXPECT_EQ(Claim("none").spec().storage_class_name(), "");
  EXPECT_EQ(late(), 1);
}

TEST_F(BinderTest, NothingFitsAndNoClass) {
  cluster_.fake->Put(ClaimNamed("c", "1Gi", ""));
  Run();
  cluster_.fake->Put(VolumeNamed("small", "1Mi", ""));  // synced again without another event
  Run();
  EXPECT_EQ(
      Events(),
      Strings{"FailedBinding: no persistent volumes available for this claim and no storage class is set"});
  EXPECT_EQ(cluster_.List<corev1::Event>().at(0).count(), 1);
}

TEST_F(BinderTest, ExternalProvisionerIsAsked) {
  cluster_.fake->Put(ClassNamed("slow"));
  cluster_.fake->Put(ClaimNamed("c"));
  Run();
  PersistentVolumeClaim claim = Claim();
  EXPECT_EQ(claim.metadata().annotations().at("volume.kubernetes.io/storage-provisioner"),
            "example.com/disk");
  EXPECT_EQ(claim.metadata().annotations().at("volume.beta.kubernetes.io/storage-provisioner"),
            "example.com/disk");
  EXPECT_EQ(claim.status().phase(), "Pending");
  // What the provisioner makes names the claim, uid and all.
  cluster_.fake->Put(MeantFor(VolumeNamed("pvc-1"), "c", claim.metadata().uid()));
  Run();
  EXPECT_EQ(Claim().spec().volume_name(), "pvc-1");
  EXPECT_EQ(Events(), Strings{"ExternalProvisioning: Waiting for a volume to be created either by the "
                              "external provisioner 'example.com/disk' or manually by the system "
                              "administrator. If volume creation is delayed, please verify that the "
                              "provisioner is running and correctly registered."});
}

TEST_F(BinderTest, ClassThatIsNotThereOrCannotProvision) {
  cluster_.fake->Put(ClassNamed("static", "kubernetes.io/no-provisioner"));
  cluster_.fake->Put(ClaimNamed("a", "1Gi", "static"));
  cluster_.fake->Put(ClaimNamed("b", "1Gi", "absent"));
  Run();
  EXPECT_EQ(Events(),
            (Strings{"ProvisioningFailed: no volume plugin matched name: kubernetes.io/no-provisioner",
                     "ProvisioningFailed: storageclass.storage.k8s.io \"absent\" not found"}));
  EXPECT_EQ(Claim("a").metadata().annotations_size(), 0);
}

TEST_F(BinderTest, WaitsForItsFirstConsumer) {
  cluster_.fake->Put(ClassNamed("slow", "example.com/disk", "WaitForFirstConsumer"));
  cluster_.fake->Put(VolumeNamed("v"));
  cluster_.fake->Put(ClaimNamed("c"));
  Run();
  EXPECT_EQ(Claim().status().phase(), "Pending");
  for (const char* name : {"p1", "p2"}) {
    corev1::Pod pod = PodNamed(name);
    corev1::Volume& volume = *pod.mutable_spec()->add_volumes();
    volume.mutable_volume_source()->mutable_persistent_volume_claim()->set_claim_name("c");
    cluster_.fake->Put(pod);
    Run();
  }
  EXPECT_EQ(Volume().status().phase(), "Available");
  // The scheduler has chosen a volume.
  cluster_.fake->Put(MeantFor(Volume(), "c", Claim().metadata().uid()));
  Run();
  EXPECT_EQ(Claim().spec().volume_name(), "v");
  EXPECT_EQ(Events(),
            (Strings{"WaitForFirstConsumer: waiting for first consumer to be created before binding",
                     "WaitForPodScheduled: waiting for pod p1 to be scheduled",
                     "WaitForPodScheduled: waiting for pods p1,p2 to be scheduled"}));
}

TEST_F(BinderTest, NodeIsSelectedForTheProvisioner) {
  cluster_.fake->Put(ClassNamed("slow", "example.com/disk", "WaitForFirstConsumer"));
  cluster_.fake->Put(VolumeNamed("elsewhere"));
  PersistentVolumeClaim claim = ClaimNamed("c");
  (*claim.mutable_metadata()->mutable_annotations())[kSelectedNode] = "n1";
  cluster_.fake->Put(claim);
  Run();
  EXPECT_EQ(Claim().metadata().annotations().at(kProvisioner), "example.com/disk");
  EXPECT_EQ(Claim().spec().volume_name(), "");
}

TEST_F(BinderTest, ClaimThatLosesItsVolume) {
  MakeBound();
  ASSERT_TRUE(cluster_.api.Delete<PersistentVolume>("", "v", {}));
  Run();
  EXPECT_EQ(Claim().status().phase(), "Lost");
  EXPECT_EQ(Claim().status().access_modes_size(), 0);
  EXPECT_TRUE(Claim().status().capacity().empty());
  EXPECT_EQ(Events(),
            Strings{"ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!"});
}

TEST_F(BinderTest, VolumeThatWasGivenToAnother) {
  MakeBound();
  PersistentVolume volume = Volume();
  volume.mutable_spec()->mutable_claim_ref()->set_name("other");
  volume.mutable_spec()->mutable_claim_ref()->set_uid("other-uid");
  cluster_.fake->Put(volume);
  Run();
  EXPECT_EQ(Claim().status().phase(), "Lost");
  EXPECT_EQ(Volume().status().phase(), "Released");
  EXPECT_EQ(Events(),
            Strings{"ClaimMisbound: Two claims are bound to the same volume, this one is bound incorrectly"});
}

TEST_F(BinderTest, VolumeThatForgotItsClaimIsBoundAgain) {
  MakeBound();
  PersistentVolume volume = Volume();
  volume.mutable_spec()->clear_claim_ref();
  cluster_.fake->Put(volume);
  Run();
  EXPECT_EQ(Volume().spec().claim_ref().uid(), Claim().metadata().uid());
  EXPECT_EQ(Volume().status().phase(), "Bound");
}

TEST_F(BinderTest, CapacityOfBoundClaimIsTheResizersToSay) {
  MakeBound();
  PersistentVolume volume = Volume();
  (*volume.mutable_spec()->mutable_capacity())["storage"].set_string("8Gi");
  cluster_.fake->Put(volume);
  Run();
  EXPECT_EQ(Claim().status().capacity().at("storage").string(), "1Gi");
}

TEST_F(BinderTest, RetainedVolumeIsReleasedAndStays) {
  const Growth bound("pv_collector_bound_pv_count{storage_class=\"slow\"}"),
      unbound("pv_collector_unbound_pv_count{storage_class=\"slow\"}"),
      claims(
          "pv_collector_bound_pvc_count{namespace=\"default\",storage_class=\"slow\",volume_attributes_class="
          "\"\"}"),
      total("pv_collector_total_pv_count{plugin_name=\"N/A\",volume_mode=\"Filesystem\"}");
  MakeBound();
  EXPECT_EQ(bound(), 1);
  EXPECT_EQ(unbound(), 0);
  EXPECT_EQ(claims(), 1);
  DeleteClaim();
  EXPECT_EQ(bound(), 0);
  EXPECT_EQ(unbound(), 1);
  EXPECT_EQ(claims(), 0);
  EXPECT_EQ(total(), 1);
  EXPECT_EQ(Volume().status().phase(), "Released");
  // A claim of that name is another one.
  cluster_.fake->Put(ClaimNamed("c"));
  Run();
  EXPECT_EQ(Claim().status().phase(), "Pending");
  EXPECT_EQ(Volume().status().phase(), "Released");
  // The administrator frees it.
  PersistentVolume volume = Volume();
  volume.mutable_spec()->clear_claim_ref();
  cluster_.fake->Put(volume);
  Run();
  EXPECT_EQ(Claim().spec().volume_name(), "v");
}

TEST_F(BinderTest, ProvisionerReclaimsWhatItMade) {
  MakeBound("Delete", "example.com/disk");
  DeleteClaim();
  EXPECT_EQ(Volume().status().phase(), "Released");
  EXPECT_EQ(Events(), Strings{});
}

TEST_F(BinderTest, DeleteWithoutProvisionerFails) {
  MakeBound("Delete");
  DeleteClaim();
  const char* message =
      "error getting deleter volume plugin for volume \"v\": no deletable volume plugin matched";
  EXPECT_EQ(Volume().status().phase(), "Failed");
  EXPECT_EQ(Volume().status().message(), message);
  EXPECT_EQ(Events(), Strings{std::string("VolumeFailedDelete: ") + message});
}

TEST_F(BinderTest, DirectoriesBelowTmpAreRemoved) {
  const std::string path = "/tmp/binder-test-" + std::to_string(getpid());
  ASSERT_TRUE(MakeDirs(path + "/data"));
  MakeBound("Delete", nullptr, path);
  DeleteClaim();
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(cluster_.List<PersistentVolume>().empty());
  EXPECT_EQ(Events(), Strings{});
}

TEST_F(BinderTest, OtherDirectoriesStay) {
  for (const char* path : {"/srv/data", "/tmp/../srv", "/tmp/", "/srv/tmp/data"}) {
    TestCluster cluster;
    VolumeBinder& binder = cluster.Make<VolumeBinder>();
    PersistentVolume volume = MeantFor(VolumeNamed("v"), "c", "gone");
    volume.mutable_spec()->set_persistent_volume_reclaim_policy("Delete");
    volume.mutable_spec()->mutable_persistent_volume_source()->mutable_host_path()->set_path(path);
    cluster.fake->Put(volume);
    cluster.Start();
    cluster.Drain({&binder});
    EXPECT_EQ(cluster.Get<PersistentVolume>("", "v").status().phase(), "Failed") << path;
    EXPECT_EQ(cluster.Events(),
              Strings{std::string("VolumeFailedDelete: host_path deleter only supports /tmp/.+ "
                                  "but received provided ") +
                      path});
  }
}

TEST_F(BinderTest, RecycleFails) {
  MakeBound("Recycle");
  DeleteClaim();
  EXPECT_EQ(Volume().status().phase(), "Failed");
  EXPECT_EQ(Events(), Strings{"VolumeFailedRecycle: No recycler plugin found for the volume!"});
}

TEST_F(BinderTest, VolumeOfAClaimThatWentElsewhere) {
  PersistentVolumeClaim claim = cluster_.fake->Put(ClaimNamed("c"));
  claim.mutable_spec()->set_volume_name("v");
  (*claim.mutable_metadata()->mutable_annotations())[kBindCompleted] = "yes";
  claim = cluster_.fake->Put(claim);
  const std::string& uid = claim.metadata().uid();
  cluster_.fake->Put(MeantFor(VolumeNamed("v"), "c", uid));
  cluster_.fake->Put(MeantFor(VolumeNamed("by-maker"), "c", uid));
  PersistentVolume chosen = MeantFor(VolumeNamed("by-controller"), "c", uid);
  (*chosen.mutable_metadata()->mutable_annotations())[kBoundByController] = "yes";
  cluster_.fake->Put(chosen);
  PersistentVolume made = MeantFor(VolumeNamed("made"), "c", uid);
  made.mutable_spec()->set_persistent_volume_reclaim_policy("Delete");
  (*made.mutable_metadata()->mutable_annotations())[kProvisionedBy] = "example.com/disk";
  cluster_.fake->Put(made);
  Run();
  EXPECT_EQ(Volume("by-maker").spec().claim_ref().name(), "c");
  EXPECT_EQ(Volume("by-maker").spec().claim_ref().uid(), "");
  EXPECT_EQ(Volume("by-maker").status().phase(), "Available");
  EXPECT_FALSE(Volume("by-controller").spec().has_claim_ref());
  EXPECT_FALSE(HasAnnotation(Volume("by-controller").metadata(), kBoundByController));
  EXPECT_EQ(Volume("made").status().phase(), "Released");
}

TEST_F(BinderTest, ModesThatDoNotGoTogetherAreTold) {
  PersistentVolumeClaim claim = cluster_.fake->Put(ClaimNamed("c"));
  PersistentVolume volume = MeantFor(VolumeNamed("v"), "c", claim.metadata().uid());
  volume.mutable_spec()->set_volume_mode("Block");
  cluster_.fake->Put(volume);
  Run();
  const Strings events = Events();
  EXPECT_EQ(
      std::count(events.begin(), events.end(),
                 "VolumeMismatch: Cannot bind PersistentVolume \"v\" to requested PersistentVolumeClaim "
                 "due to incompatible volumeMode."),
      1);
  EXPECT_EQ(Claim().status().phase(), "Pending");
}

// A binder that is killed before any of its writes leaves what the next one finishes.
TEST(BinderKillTest, EndsTheSameAfterAnyWrite) {
  int writes = 0;
  for (bool killed = true; killed; ++writes) {
    SCOPED_TRACE(writes);
    TestCluster cluster;
    for (const char* name : {"v1", "v2", "v3"}) cluster.fake->Put(VolumeNamed(name));
    for (const char* name : {"a", "b", "c"}) cluster.fake->Put(ClaimNamed(name));
    killed = false;
    {
      auto& claims = cluster.Make<ClaimBinder>();
      auto& volumes = cluster.Make<VolumeBinder>();
      int left = writes;
      cluster.fake->SetInterceptor(
          [&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
            if (request.method == "GET" || (!killed && left-- > 0)) return std::nullopt;
            killed = true;
            return client::FakeApi::Refuse(Error(Code::kUnavailable, "killed"));
          });
      cluster.Start();
      cluster.Drain({&claims, &volumes});
    }
    cluster.Stop();
    cluster.fake->SetInterceptor(nullptr);
    auto& claims = cluster.Make<ClaimBinder>();
    auto& volumes = cluster.Make<VolumeBinder>();
    cluster.Start();
    cluster.Drain({&claims, &volumes});
    std::set<std::string> taken;
    for (const PersistentVolumeClaim& claim : cluster.List<PersistentVolumeClaim>()) {
      EXPECT_EQ(claim.status().phase(), "Bound");
      EXPECT_TRUE(taken.insert(claim.spec().volume_name()).second);
    }
    EXPECT_EQ(taken.size(), 3u);
    for (const PersistentVolume& volume : cluster.List<PersistentVolume>()) {
      EXPECT_EQ(volume.status().phase(), "Bound");
    }
  }
  EXPECT_GT(writes, 12);  // four a claim
}

}  // namespace
}  // namespace keelson::controllers
