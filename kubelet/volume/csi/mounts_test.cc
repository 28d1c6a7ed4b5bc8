// Mounts of CSI volumes: the calls that a driver gets, and their arguments.
#include "kubelet/volume/csi/mounts.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "kubelet/volume/csi/testing/csi_test.h"

namespace keelson::kubelet::csi {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kInternal = 13, kUnavailable = 14;

class MountsTest : public CsiTest {};

TEST_F(MountsTest, StagedOnceAndPublishedToEachPod) {
  auto paths = manager_->Mount(Claiming("one"), node_, {});
  ASSERT_TRUE(paths) << paths.error().message();
  EXPECT_EQ(paths->at("v").path, dir_ + "/pods/one/volumes/kubernetes.io~csi/pv-1/mount");
  EXPECT_TRUE(PathExists(paths->at("v").path));
  EXPECT_EQ(Problem(Claiming("two")), "");
  EXPECT_EQ(Problem(Claiming("one")), "") << "a sync of the pod calls nothing again";
  EXPECT_EQ(driver_->Calls(), (Strings{"stage vol-1", "publish vol-1 one", "publish vol-1 two"}));
  // printf vol-1 | sha256sum
  EXPECT_EQ(Staging(), dir_ +
                           "/plugins/kubernetes.io/csi/disk.example.com/"
                           "d2e8363faaac7ae76def3b14091d8eb5755f6b92e9531627aeec833a8731cc49/globalmount");
  EXPECT_EQ(driver_->Staged(), std::set<std::string>{Staging()});
  ASSERT_TRUE(Remove("one"));
  EXPECT_EQ(driver_->Calls(), (Strings{"unpublish vol-1 one"})) << "another pod has it";
  ASSERT_TRUE(Remove("two"));
  EXPECT_EQ(driver_->Calls(), (Strings{"unpublish vol-1 two", "unstage vol-1"}));
  EXPECT_FALSE(PathExists(dir_ + "/pods/two"));
  EXPECT_EQ(ListDir(dir_ + "/plugins/kubernetes.io/csi/disk.example.com")->size(), 0u);
}

TEST_F(MountsTest, WhatIsOnDiskIsUpstreams) {
  ASSERT_EQ(Problem(Claiming()), "");
  EXPECT_EQ(*ReadFile(VolumeDir(kPluginName, "pv-1") + "/vol_data.json"),
            R"({"attachmentID":")" + AttachmentName("vol-1", kDriver, "node-1") +
                R"(","driverName":"disk.example.com","nodeName":"node-1","specVolID":"pv-1",)"
                R"("volumeHandle":"vol-1","volumeLifecycleMode":"Persistent"})"
                "\n");
  EXPECT_EQ(*ReadFile(Staging() + "/../vol_data.json"),
            R"({"driverName":"disk.example.com","volumeHandle":"vol-1"})"
            "\n");
}

TEST_F(MountsTest, WithoutStagingThereIsARecordOnly) {
  driver_->SetCapabilities({});
  ASSERT_EQ(Problem(Claiming()), "");
  EXPECT_EQ(driver_->Calls(), (Strings{"publish vol-1 u"}));
  EXPECT_THAT(driver_->LastRequest("NodePublishVolume"), Not(HasSubstr("staging_target_path")));
  EXPECT_TRUE(PathExists(Staging()));
  ASSERT_TRUE(Remove());
  EXPECT_EQ(driver_->Calls(), (Strings{"unpublish vol-1 u"}));
  EXPECT_FALSE(PathExists(Staging()));
}

TEST_F(MountsTest, TheDriverIsToldOfTheVolume) {
  Bind(R"(,"fsType":"xfs","volumeAttributes":{"kind":"fast"},
       "nodeStageSecretRef":{"namespace":"s","name":"stage"},"nodePublishSecretRef":{"namespace":"s","name":"publish"})",
       R"(,"accessModes":["ReadWriteMany"],"mountOptions":["noatime"])");
  objects_.Put<corev1::Secret>(R"({"metadata":{"name":"stage","namespace":"s"},"data":{"a":"b25l"}})");
  objects_.Put<corev1::Secret>(R"({"metadata":{"name":"publish","namespace":"s"},"data":{"a":"dHdv"}})");
  ASSERT_EQ(Problem(Claiming()), "");
  const auto both =
      AllOf(HasSubstr("volume_context { key: \"kind\" value: \"fast\" }"), HasSubstr("fs_type: \"xfs\""),
            HasSubstr("mount_flags: \"noatime\""), HasSubstr("mode: MULTI_NODE_MULTI_WRITER"),
            HasSubstr("staging_target_path: \"" + Staging() + "\""));
  EXPECT_THAT(driver_->LastRequest("NodeStageVolume"), AllOf(both, HasSubstr("value: \"one\"")));
  EXPECT_THAT(driver_->LastRequest("NodePublishVolume"),
              AllOf(both, HasSubstr("value: \"two\""), HasSubstr("target_path: \"" + Target() + "\""),
                    Not(HasSubstr("csi.storage.k8s.io")), Not(HasSubstr("readonly"))));
}

TEST_F(MountsTest, SecretsThatAreMissingKeepThePodWaiting) {
  Bind(R"(,"nodeStageSecretRef":{"namespace":"s","name":"stage"})");
  EXPECT_EQ(
      Problem(Claiming()),
      "MountVolume.MountDevice failed for volume \"pv-1\" : fetching NodeStageSecretRef s/stage failed: "
      "\"stage\" not found");
  EXPECT_TRUE(driver_->Calls().empty());
}

TEST_F(MountsTest, AttachedVolumesWaitForBothListsOfTheNode) {
  DriverObject(R"("fsGroupPolicy":"None","volumeLifecycleModes":["Persistent"])");
  objects_.Put<api::storage::v1::VolumeAttachment>(
      R"({"metadata":{"name":")" + AttachmentName("vol-1", kDriver, "node-1") +
      R"("},"status":{"attached":true,"attachmentMetadata":{"lun":"7"}}})");
  EXPECT_EQ(Problem(Claiming()), "Volume not attached according to node status for volume \"pv-1\"");
  EXPECT_EQ(manager_->VolumesInUse(), Strings{kAttached});
  EXPECT_EQ(manager_->WaitingForAttach(), std::set<std::string>{"u"});
  Attach(false);
  EXPECT_EQ(Problem(Claiming()),
            "Volume has not been added to the list of VolumesInUse in the node's volume status for volume "
            "\"pv-1\"")
      << "the controller may be detaching it";
  EXPECT_TRUE(driver_->Calls().empty());
  Attach();
  EXPECT_EQ(Problem(Claiming()), "");
  EXPECT_TRUE(manager_->WaitingForAttach().empty());
  for (const char* method : {"NodeStageVolume", "NodePublishVolume"}) {
    EXPECT_THAT(driver_->LastRequest(method), HasSubstr("publish_context { key: \"lun\" value: \"7\" }"));
  }
  ASSERT_TRUE(Remove());
  EXPECT_TRUE(manager_->VolumesInUse().empty());
}

TEST_F(MountsTest, APodThatTheNodeHasNoRoomForIsTold) {
  const std::string attachment = R"({"metadata":{"name":")" + AttachmentName("vol-1", kDriver, "node-1") +
                                 R"("},"status":{"attachError":{"message":"too many","errorCode":)";
  struct Case {
    const char *period, *code;
    bool exceeds;
  };
  for (const Case& c : {Case{"", "8", false},
                        {R"("nodeAllocatableUpdatePeriodSeconds":60,)", "13", false},
                        {R"("nodeAllocatableUpdatePeriodSeconds":60,)", "8", true}}) {
    DriverObject(std::string(c.period) + R"("volumeLifecycleModes":["Persistent"])");
    objects_.Put<api::storage::v1::VolumeAttachment>(attachment + c.code + "}}}");
    EXPECT_NE(Problem(Claiming()), "");
    EXPECT_EQ(manager_->ExceedsAttachLimit("u"), c.exceeds) << c.period << c.code;
  }
  ASSERT_TRUE(Remove());
  EXPECT_FALSE(manager_->ExceedsAttachLimit("u"));
}

TEST_F(MountsTest, ADriverWithoutAnObjectAttaches) {
  objects_.Map<api::storage::v1::CSIDriver>().clear();
  EXPECT_EQ(Problem(Claiming()), "Volume not attached according to node status for volume \"pv-1\"");
}

TEST_F(MountsTest, DriversThatAreNotThere) {
  drivers_->Remove(kDriver, dir_ + "/csi.sock");
  const std::string missing = "driver name disk.example.com not found in the list of registered CSI drivers";
  EXPECT_EQ(Problem(Claiming()),
            "MountVolume.MountDevice failed for volume \"pv-1\" : kubernetes.io/csi: attacher.MountDevice "
            "failed to create newCsiDriverClient: " +
                missing);
  EXPECT_EQ(
      Problem(Inline("", "w")),
      "MountVolume.SetUp failed for volume \"v\" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI "
      "client: " +
          missing);
  Register();
  ASSERT_EQ(Problem(Claiming()), "");
  drivers_->Remove(kDriver, dir_ + "/csi.sock");
  EXPECT_EQ(Remove().error().message(),
            "kubernetes.io/csi: Unmounter.TearDownAt failed to get CSI client: " + missing);
  EXPECT_TRUE(PathExists(Target())) << "the volume stays until its driver is back";
  Register();
  EXPECT_TRUE(Remove());
}

TEST_F(MountsTest, FailuresAreToldAndTriedAgainAfterAWait) {
  driver_->Fail("NodeStageVolume", kInternal, "no disk", 3);
  const std::string problem =
      "MountVolume.MountDevice failed for volume \"pv-1\" : rpc error: code = Internal desc = no disk";
  EXPECT_EQ(Problem(Claiming()), problem);
  EXPECT_FALSE(PathExists(Staging())) << "nothing is under way";
  EXPECT_EQ(Problem(Claiming()), problem);
  EXPECT_EQ(driver_->Calls(), Strings{"stage vol-1"}) << "not yet again";
  clock_.Advance(std::chrono::milliseconds(500));
  EXPECT_EQ(Problem(Claiming()), problem);
  clock_.Advance(std::chrono::milliseconds(500));
  EXPECT_EQ(Problem(Claiming()), problem);
  EXPECT_EQ(driver_->Calls(), Strings{"stage vol-1"}) << "the second wait is longer";
  clock_.Advance(std::chrono::milliseconds(500));
  EXPECT_EQ(Problem(Claiming()), problem);
  clock_.Advance(std::chrono::seconds(2));
  driver_->Fail("NodePublishVolume", kUnavailable, "busy");
  EXPECT_EQ(Problem(Claiming()),
            "MountVolume.SetUp failed for volume \"pv-1\" : rpc error: code = Unavailable desc = busy");
  clock_.Advance(std::chrono::milliseconds(500));
  EXPECT_EQ(Problem(Claiming()), "");
  driver_->Calls();
  driver_->Fail("NodeUnpublishVolume", kInternal, "busy");
  EXPECT_EQ(Remove().error().message(),
            "kubernetes.io/csi: Unmounter.TearDownAt failed: rpc error: code = Internal desc = busy");
  EXPECT_FALSE(Remove());
  clock_.Advance(std::chrono::milliseconds(500));
  driver_->Fail("NodeUnstageVolume", kInternal, "busy");
  EXPECT_EQ(Remove().error().message(),
            "kubernetes.io/csi: attacher.UnmountDevice failed: rpc error: code = Internal desc = busy");
  clock_.Advance(std::chrono::milliseconds(500));
  ASSERT_TRUE(Remove());
  EXPECT_EQ(driver_->Calls(),
            (Strings{"unpublish vol-1 u", "unpublish vol-1 u", "unstage vol-1", "unstage vol-1"}));
}

// As upstream's: what is mounted once for all pods is no matter of the pod that ends.
TEST_F(MountsTest, APodEndsBeforeItsDriverHasUnstaged) {
  Bind("", R"(,"accessModes":["ReadWriteOncePod"])");
  ASSERT_EQ(Problem(Claiming("one")), "");
  driver_->Fail("NodeUnstageVolume", kInternal, "busy", 100);
  ASSERT_TRUE(manager_->Unmount(node_.paths, "one"));
  EXPECT_FALSE(manager_->RemoveUnmounted(node_.paths, "one"));
  EXPECT_TRUE(PathExists(node_.paths.Pod("one"))) << "tells of the stage";
  EXPECT_EQ(manager_->LeftBehind(), std::set<std::string>{"one"});
  driver_->Calls();
  ASSERT_EQ(Problem(Claiming("two")), "") << "no other pod uses the volume";
  EXPECT_EQ(driver_->Calls(), (Strings{"stage vol-1", "publish vol-1 two"})) << "it may be half unstaged";
  ASSERT_TRUE(manager_->RemoveLeftBehind(node_.paths));
  EXPECT_EQ(driver_->Calls(), Strings{}) << "the next pod needs the stage, and it was unpublished once";
  EXPECT_TRUE(manager_->LeftBehind().empty());
  driver_->Fail("NodeUnstageVolume", kInternal, "busy", 0);
  ASSERT_TRUE(Remove("two")) << "a stage begins without waits";
  EXPECT_EQ(driver_->Calls(), (Strings{"unpublish vol-1 two", "unstage vol-1"}));
  EXPECT_EQ(ListDir(node_.paths.Pods())->size(), 0u);
}

// A static pod comes back with its UID.
TEST_F(MountsTest, WhatAPodHasLeftIsItsOwnWhenItBeginsAgain) {
  ASSERT_EQ(Problem(Claiming()), "");
  driver_->Fail("NodeUnstageVolume", kInternal, "busy");
  ASSERT_TRUE(manager_->Unmount(node_.paths, "u"));
  EXPECT_FALSE(manager_->RemoveUnmounted(node_.paths, "u"));
  ASSERT_EQ(Problem(Claiming()), "");
  EXPECT_TRUE(manager_->LeftBehind().empty());
  driver_->Calls();
  ASSERT_TRUE(manager_->RemoveLeftBehind(node_.paths));
  EXPECT_EQ(driver_->Calls(), Strings{});
  EXPECT_TRUE(PathExists(Target()));
  ASSERT_TRUE(Remove());
  EXPECT_EQ(driver_->Calls(), (Strings{"unpublish vol-1 u", "unstage vol-1"}));
}

TEST_F(MountsTest, AnotherVolumesDriverDoesNotKeepAVolume) {
  DriverObject(R"("attachRequired":false,"fsGroupPolicy":"None",
      "volumeLifecycleModes":["Persistent","Ephemeral"])");
  const corev1::Pod pod = PodWith(R"({"name":"v","persistentVolumeClaim":{"claimName":"c"}},
      {"name":"w","csi":{"driver":"disk.example.com"}})");
  ASSERT_EQ(Problem(pod), "");
  driver_->Calls();
  driver_->Fail("NodeUnpublishVolume", kInternal, "busy");
  EXPECT_FALSE(Remove());
  const Strings calls = driver_->Calls();
  EXPECT_EQ(calls.size(), 2u) << "one has failed, the other is unpublished";
  clock_.Advance(std::chrono::milliseconds(500));
  ASSERT_TRUE(Remove());
  EXPECT_EQ(driver_->Calls(), (Strings{calls.front(), "unstage vol-1"}));
}

TEST_F(MountsTest, ADriverMayStopAttaching) {
  const std::string rest = R"("fsGroupPolicy":"None","volumeLifecycleModes":["Persistent"])";
  DriverObject(rest);
  EXPECT_NE(Problem(Claiming()), "");
  EXPECT_EQ(manager_->VolumesInUse(), Strings{kAttached});
  DriverObject(R"("attachRequired":false,)" + rest);
  ASSERT_EQ(Problem(Claiming()), "");
  EXPECT_EQ(manager_->VolumesInUse(), Strings{}) << "the controller may detach it";
}

TEST_F(MountsTest, WhatMayHaveBeenDoneIsUndone) {
  driver_->Fail("NodeStageVolume", kUnavailable, "gone", 1, true);
  EXPECT_NE(Problem(Claiming()), "");
  EXPECT_TRUE(PathExists(Staging())) << "it may be staged";
  ASSERT_TRUE(Remove());
  EXPECT_EQ(driver_->Calls(), (Strings{"stage vol-1", "unpublish vol-1 u", "unstage vol-1"}));
  EXPECT_TRUE(driver_->Staged().empty());
}

TEST_F(MountsTest, InlineVolumesAreOfOnePod) {
  DriverObject(R"("podInfoOnMount":true,"fsGroupPolicy":"File","volumeLifecycleModes":["Ephemeral"])");
  objects_.Put<corev1::Secret>(R"({"metadata":{"name":"key","namespace":"n"},"data":{"a":"b25l"}})");
  const corev1::Pod pod = Inline(R"(,"readOnly":true,"volumeAttributes":{"size":"1"},
      "nodePublishSecretRef":{"name":"key"})");
  auto paths = manager_->Mount(pod, node_, {});
  ASSERT_TRUE(paths) << paths.error().message();
  EXPECT_TRUE(paths->at("v").read_only);
  const std::string handle = EphemeralHandle("u", "v");
  EXPECT_EQ(driver_->Calls(), Strings{"publish " + handle + " u"});
  EXPECT_THAT(driver_->LastRequest("NodePublishVolume"),
              AllOf(HasSubstr("key: \"csi.storage.k8s.io/ephemeral\" value: \"true\""),
                    HasSubstr("key: \"csi.storage.k8s.io/pod.name\" value: \"p\""),
                    HasSubstr("key: \"csi.storage.k8s.io/pod.namespace\" value: \"n\""),
                    HasSubstr("key: \"csi.storage.k8s.io/pod.uid\" value: \"u\""),
                    HasSubstr("key: \"csi.storage.k8s.io/serviceAccount.name\""),
                    HasSubstr("key: \"size\" value: \"1\""), HasSubstr("readonly: true"),
                    HasSubstr("secrets { key: \"a\" value: \"one\" }"), HasSubstr("mode: SINGLE_NODE_WRITER"),
                    Not(HasSubstr("staging"))));
  EXPECT_TRUE(manager_->VolumesInUse().empty());
  ASSERT_TRUE(Remove());
  EXPECT_EQ(driver_->Calls(), Strings{"unpublish " + handle + " u"});
  EXPECT_FALSE(PathExists(node_.paths.Pod("u")));
}

TEST_F(MountsTest, DriversSayWhichSortOfVolumeTheyHave) {
  DriverObject(R"("attachRequired":false,"fsGroupPolicy":"None","volumeLifecycleModes":["Persistent"])");
  EXPECT_EQ(
      Problem(Inline()),
      "MountVolume.SetUp failed for volume \"v\" : kubernetes.io/csi: mounter.SetupAt failed to check volume "
      "lifecycle mode: volume mode \"Ephemeral\" not supported by driver disk.example.com (only supports "
      "[\"Persistent\"])");
  EXPECT_TRUE(driver_->Calls().empty());
}

TEST_F(MountsTest, TokensOfThePodsAccount) {
  const std::string requests = R"("attachRequired":false,"fsGroupPolicy":"None","requiresRepublish":true,
      "volumeLifecycleModes":["Persistent"],"tokenRequests":[{"audience":"vault","expirationSeconds":1000}])";
  DriverObject(requests);
  ASSERT_EQ(Problem(Claiming()), "");
  EXPECT_THAT(
      driver_->LastRequest("NodePublishVolume"),
      AllOf(HasSubstr("volume_context { key: \"csi.storage.k8s.io/serviceAccount.tokens\" value: "
                      "\"{\\\"vault\\\":{\\\"token\\\":\\\"token-vault-1\\\",\\\"expirationTimestamp\\\":"),
            Not(HasSubstr("secrets"))));
  driver_->Calls();
  clock_.Advance(std::chrono::seconds(900));
  ASSERT_EQ(Problem(Claiming()), "");
  EXPECT_EQ(driver_->Calls(), Strings{"publish vol-1 u"}) << "again at each sync";
  EXPECT_THAT(driver_->LastRequest("NodePublishVolume"), HasSubstr("token-vault-2"));
  driver_->Fail("NodePublishVolume", kInternal, "no");
  EXPECT_EQ(Problem(Claiming()), "") << "the pod has its volume";
  EXPECT_TRUE(PathExists(Target()));
  clock_.Advance(std::chrono::seconds(1));
  DriverObject(requests + R"(,"serviceAccountTokenInSecrets":true)");
  ASSERT_EQ(Problem(Claiming()), "");
  EXPECT_THAT(driver_->LastRequest("NodePublishVolume"),
              AllOf(HasSubstr("secrets { key: \"csi.storage.k8s.io/serviceAccount.tokens\""),
                    Not(HasSubstr("volume_context"))));
}

TEST_F(MountsTest, TheFsGroupIsTheKubeletsOrTheDriversToApply) {
  struct Case {
    const char *what, *policy, *fs_type, *mode;
    bool mount_group, applied;
  };
  int uid = 0;
  for (const Case& c : {Case{"by default", "ReadWriteOnceWithFSType", "ext4", "ReadWriteOnce", false, true},
                        {"no type", "ReadWriteOnceWithFSType", "", "ReadWriteOnce", false, false},
                        {"shared", "ReadWriteOnceWithFSType", "ext4", "ReadWriteMany", false, false},
                        {"always", "File", "", "ReadWriteMany", false, true},
                        {"never", "None", "ext4", "ReadWriteOnce", false, false},
                        {"by the driver", "File", "ext4", "ReadWriteOnce", true, false}}) {
    SCOPED_TRACE(c.what);
    driver_->SetCapabilities(c.mount_group ? std::set<std::string>{"VOLUME_MOUNT_GROUP"}
                                           : std::set<std::string>());
    DriverObject(
        std::string(R"("attachRequired":false,"volumeLifecycleModes":["Persistent"],"fsGroupPolicy":")") +
        c.policy + "\"");
    Bind(std::string(R"(,"fsType":")") + c.fs_type + "\"",
         std::string(R"(,"accessModes":[")") + c.mode + "\"]");
    corev1::Pod pod = Claiming(std::to_string(++uid));
    pod.mutable_spec()->mutable_security_context()->set_fs_group(::getgid());
    ASSERT_EQ(Problem(pod), "");
    struct stat info = {};
    ASSERT_EQ(::stat(Target(std::to_string(uid)).c_str(), &info), 0);
    EXPECT_EQ((info.st_mode & S_ISGID) != 0, c.applied);
    const std::string group = "volume_mount_group: \"" + std::to_string(::getgid()) + "\"";
    EXPECT_EQ(driver_->LastRequest("NodePublishVolume").find(group) != std::string::npos, c.mount_group);
  }
}

TEST_F(MountsTest, TheDriverTellsUsage) {
  ASSERT_EQ(Problem(Claiming()), "");
  const std::string path = manager_->volumes().All().at(0).Directory();
  EXPECT_EQ(path, VolumeDir(kPluginName, "pv-1"));
  auto none = manager_->Measure(node_.paths, path, {});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->error().code(), Code::kUnimplemented);
  driver_->SetCapabilities({"STAGE_UNSTAGE_VOLUME", "GET_VOLUME_STATS", "VOLUME_CONDITION"});
  driver_->SetUsage({100, 60, 40}, {10, 7, 3}, "sick");
  auto measured = manager_->Measure(node_.paths, path, {});
  ASSERT_TRUE(measured && *measured);
  EXPECT_EQ((*measured)->capacity, 100u);
  EXPECT_EQ((*measured)->available, 60u);
  EXPECT_EQ((*measured)->inodes_used, 3u);
  EXPECT_EQ((*measured)->abnormal, true);
  EXPECT_THAT(driver_->LastRequest("NodeGetVolumeStats"), HasSubstr("volume_path: \"" + Target() + "\""));
  EXPECT_FALSE(manager_->Measure(node_.paths, VolumeDir("kubernetes.io/empty-dir", "x"), {}))
      << "its file system tells";
  EXPECT_FALSE(manager_->Measure(node_.paths, "/srv", {}));
}

TEST_F(MountsTest, WhatADriverLeavesInItsTargetIsNotRemoved) {
  ASSERT_EQ(Problem(Claiming()), "");
  driver_->Fail("NodeUnpublishVolume", 0, "");
  ASSERT_TRUE(WriteFile(Target() + "/data", "x"));
  // The driver says that it has unpublished, and has not.
  EXPECT_THAT(Remove().error().message(), HasSubstr("failed to clean mount dir"));
  EXPECT_TRUE(PathExists(Target() + "/data"));
  EXPECT_TRUE(Remove());
}

}  // namespace
}  // namespace keelson::kubelet::csi
