#include "controlplane/controllers/attachdetach/controller.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/testing/cluster.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

constexpr char kName[] = "kubernetes.io/csi/disk.example.com^vol-1";

class AttachDetachTest : public ::testing::Test {
 protected:
  void SetUp() override {
    corev1::PersistentVolumeClaim claim;
    claim.mutable_metadata()->set_name("data");
    claim.mutable_metadata()->set_namespace_("default");
    claim.mutable_spec()->set_volume_name("v");
    claim = cluster_.fake->Put(claim);
    corev1::PersistentVolume volume;
    volume.mutable_metadata()->set_name("v");
    volume.mutable_spec()->add_access_modes("ReadWriteOnce");
    auto& ref = *volume.mutable_spec()->mutable_claim_ref();
    ref.set_namespace_("default");
    ref.set_name("data");
    ref.set_uid(claim.metadata().uid());
    auto& csi = *volume.mutable_spec()->mutable_persistent_volume_source()->mutable_csi();
    csi.set_driver("disk.example.com");
    csi.set_volume_handle("vol-1");
    cluster_.fake->Put(volume);
    for (const char* node : {"n1", "n2"}) cluster_.fake->Put(NodeOf(node));
  }
  static corev1::Node NodeOf(const std::string& name, const char* ready = "True") {
    corev1::Node node = NodeNamed(name, ready);
    (*node.mutable_metadata()
          ->mutable_annotations())["volumes.kubernetes.io/controller-managed-attach-detach"] = "true";
    return node;
  }
  void PutPod(const std::string& name, const std::string& node) {
    corev1::Pod pod = PodNamed(name, {}, node);
    pod.mutable_spec()
        ->add_volumes()
        ->mutable_volume_source()
        ->mutable_persistent_volume_claim()
        ->set_claim_name("data");
    cluster_.fake->Put(pod);
  }
  void DeletePod(const std::string& name) {
    ASSERT_TRUE(cluster_.api.Delete<corev1::Pod>("default", name, {.grace_period_seconds = 0}));
  }
  void Run() {
    if (!started_) cluster_.Start();
    started_ = true;
    cluster_.Drain({controller_});
    EXPECT_EQ(cluster_.errors, Strings{});
  }
  // Acts as the external-attacher: adds its finalizer, attaches, and removes the finalizer on deletion.
  void PlayAttacher(const char* error = nullptr) {
    for (VolumeAttachment one : cluster_.List<VolumeAttachment>()) {
      if (one.metadata().has_deletion_timestamp()) {
        one.mutable_metadata()->clear_finalizers();
        ASSERT_TRUE(cluster_.api.Update(one));
        continue;
      }
      if (one.metadata().finalizers().empty()) {
        one.mutable_metadata()->add_finalizers("external-attacher/disk");
      }
      one.mutable_status()->set_attached(!error);
      if (error) one.mutable_status()->mutable_attach_error()->set_message(error);
      cluster_.fake->Put(one);
    }
    Run();
  }
  // As its kubelet reports.
  void SetInUse(const std::string& node, bool in_use, const char* ready = "True") {
    corev1::Node object = cluster_.Get<corev1::Node>("", node);
    object.mutable_status()->clear_volumes_in_use();
    if (in_use) object.mutable_status()->add_volumes_in_use(kName);
    object.mutable_status()->mutable_conditions(0)->set_status(ready);
    cluster_.fake->Put(object);
  }
  std::string AttachedTo() {  // "n1", with a minus sign during a detach
    std::string out;
    for (const VolumeAttachment& one : cluster_.List<VolumeAttachment>()) {
      out += (one.metadata().has_deletion_timestamp() ? "-" : "") + one.spec().node_name();
    }
    return out;
  }
  std::string Reported(const std::string& node) {
    std::string out;
    const corev1::Node object = cluster_.Get<corev1::Node>("", node);
    for (const corev1::AttachedVolume& one : object.status().volumes_attached()) out += one.name() + " ";
    return out;
  }

  TestCluster cluster_;
  AttachDetachController* controller_ = &cluster_.Make<AttachDetachController>();
  bool started_ = false;
};

TEST_F(AttachDetachTest, FromPodToNodeAndBack) {
  PutPod("p", "n1");
  Run();
  EXPECT_EQ(AttachedTo(), "n1");
  EXPECT_EQ(Reported("n1"), "");
  PlayAttacher();
  EXPECT_EQ(Reported("n1"), std::string(kName) + " ");
  SetInUse("n1", true);
  DeletePod("p");
  Run();
  EXPECT_EQ(AttachedTo(), "n1");  // still mounted
  EXPECT_EQ(Reported("n1"), std::string(kName) + " ");
  SetInUse("n1", false);
  Run();
  EXPECT_EQ(AttachedTo(), "-n1");
  EXPECT_EQ(Reported("n1"), "");
  PlayAttacher();
  EXPECT_EQ(AttachedTo(), "");
  EXPECT_EQ(cluster_.Events(),
            Strings{"SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume \"v\" "});
}

TEST_F(AttachDetachTest, NodeHearsFirstThatItLosesAVolume) {
  PutPod("p", "n1");
  Run();
  PlayAttacher();
  cluster_.fake->ForgetRequests();
  DeletePod("p");
  Run();
  Strings writes;
  for (const std::string& request : cluster_.fake->Requests()) {
    if (request.rfind("GET", 0) != 0 && request.find("/pods/") == std::string::npos) {
      writes.push_back(request);
    }
  }
  ASSERT_EQ(writes.size(), 2u);
  EXPECT_EQ(writes[0], "PATCH /api/v1/nodes/n1/status");
  EXPECT_EQ(writes[1].rfind("DELETE /apis/storage.k8s.io/v1/volumeattachments/csi-", 0), 0u);
}

TEST_F(AttachDetachTest, OneNodeAtATime) {
  PutPod("p1", "n1");
  Run();
  PlayAttacher();
  SetInUse("n1", true);
  PutPod("p2", "n2");
  Run();
  EXPECT_EQ(AttachedTo(), "n1");
  SetInUse("n1", false);  // looks at it again, and says nothing again
  Run();
  SetInUse("n1", true);
  Run();
  DeletePod("p1");
  SetInUse("n1", false);
  Run();
  EXPECT_EQ(AttachedTo(), "-n1");
  PlayAttacher();
  EXPECT_EQ(AttachedTo(), "n2");
  const Strings events = cluster_.Events();
  EXPECT_TRUE(std::find(events.begin(), events.end(),
                        "FailedAttachVolume: Multi-Attach error for volume \"v\" Volume is already used by "
                        "pod(s) p1") != events.end());
  for (const corev1::Event& event : cluster_.List<corev1::Event>()) {
    EXPECT_EQ(event.count(), 1) << event.message();
  }
}

TEST_F(AttachDetachTest, FailureIsTold) {
  PutPod("p", "n1");
  Run();
  PlayAttacher("no such disk");
  EXPECT_EQ(Reported("n1"), "");
  EXPECT_EQ(cluster_.Events(),
            Strings{"FailedAttachVolume: AttachVolume.Attach failed for volume \"v\" : no such disk"});
}

TEST_F(AttachDetachTest, AnAttacherThatDoesNotAnswerIsTold) {
  PutPod("p", "n1");
  Run();
  cluster_.Advance(121s, {controller_});
  DeletePod("p");
  Run();
  cluster_.Advance(5min, {controller_});
  EXPECT_EQ(cluster_.Events(),
            Strings{"FailedAttachVolume: AttachVolume.Attach failed for volume \"v\" : timed out waiting for "
                    "external-attacher of disk.example.com CSI driver to attach volume vol-1"})
      << "once, as no pod waits any more";
}

TEST_F(AttachDetachTest, AnAttacherHasTwoMinutes) {
  PutPod("p", "n1");
  Run();
  cluster_.Advance(119s, {controller_});
  DeletePod("p");
  Run();
  cluster_.Advance(5min, {controller_});
  EXPECT_EQ(cluster_.Events(), Strings{});
}

TEST_F(AttachDetachTest, SilentNodeIsForcedAfterAWhile) {
  PutPod("p", "n1");
  Run();
  PlayAttacher();
  SetInUse("n1", true, "Unknown");
  DeletePod("p");
  Run();
  cluster_.Advance(5min, {controller_});
  EXPECT_EQ(AttachedTo(), "n1");
  cluster_.Advance(61s, {controller_});
  EXPECT_EQ(AttachedTo(), "-n1");
}

// The machine may still be running.
TEST_F(AttachDetachTest, NodeThatIsGoneIsForcedAfterAWhileUnlessItHadLetGo) {
  for (const bool mounted : {true, false}) {
    SCOPED_TRACE(mounted);
    cluster_.fake->Put(NodeOf("n1"));
    PutPod("p", "n1");
    Run();
    PlayAttacher();
    SetInUse("n1", mounted);
    Run();
    ASSERT_TRUE(cluster_.api.Delete<corev1::Node>("", "n1"));
    DeletePod("p");
    Run();
    if (mounted) {
      EXPECT_EQ(AttachedTo(), "n1");
      cluster_.Advance(6min + 1s, {controller_});
    }
    EXPECT_EQ(AttachedTo(), "-n1");
    PlayAttacher();
    EXPECT_EQ(AttachedTo(), "");
  }
}

TEST_F(AttachDetachTest, PodThatGoesWithNothingRunningNeedsNothing) {
  PutPod("p", "n1");
  Run();
  PlayAttacher();
  corev1::Pod pod = cluster_.Get<corev1::Pod>("default", "p");
  pod.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(1);
  pod.mutable_status()->add_container_statuses()->mutable_state()->mutable_running();
  cluster_.fake->Put(pod);
  Run();
  EXPECT_EQ(AttachedTo(), "n1");
  pod.mutable_status()->mutable_container_statuses(0)->mutable_state()->mutable_terminated();
  cluster_.fake->Put(pod);
  Run();
  EXPECT_EQ(AttachedTo(), "-n1");
}

TEST_F(AttachDetachTest, KubeletsMayKeepVolumesOfPodsThatHaveEnded) {
  PutPod("p", "n1");
  Run();
  PlayAttacher();
  corev1::Node node = cluster_.Get<corev1::Node>("", "n1");
  auto& annotations = *node.mutable_metadata()->mutable_annotations();
  annotations["volumes.kubernetes.io/keep-terminated-pod-volumes"] = "true";
  cluster_.fake->Put(node);
  corev1::Pod pod = cluster_.Get<corev1::Pod>("default", "p");
  pod.mutable_status()->set_phase("Succeeded");
  cluster_.fake->Put(pod);
  Run();
  EXPECT_EQ(AttachedTo(), "n1");
  DeletePod("p");
  Run();
  EXPECT_EQ(AttachedTo(), "-n1");
}

TEST_F(AttachDetachTest, NodeOutOfServiceIsNotAsked) {
  PutPod("p", "n1");
  Run();
  PlayAttacher();
  SetInUse("n1", true, "Unknown");
  DeletePod("p");
  Run();
  corev1::Node node = cluster_.Get<corev1::Node>("", "n1");
  node.mutable_spec()->add_taints()->set_key("node.kubernetes.io/out-of-service");
  cluster_.fake->Put(node);
  Run();
  EXPECT_EQ(AttachedTo(), "-n1");
}

TEST_F(AttachDetachTest, DriverWithoutAttaching) {
  api::storage::v1::CSIDriver driver;
  driver.mutable_metadata()->set_name("disk.example.com");
  driver.mutable_spec()->set_attach_required(false);
  cluster_.fake->Put(driver);
  PutPod("p", "n1");
  Run();
  EXPECT_EQ(AttachedTo(), "");
}

// Its CSIDriver is another one now.
TEST_F(AttachDetachTest, ADriverMayStopAttaching) {
  PutPod("p", "n1");
  Run();
  PlayAttacher();
  SetInUse("n1", true);
  Run();
  api::storage::v1::CSIDriver driver;
  driver.mutable_metadata()->set_name("disk.example.com");
  driver.mutable_spec()->set_attach_required(false);
  cluster_.fake->Put(driver);
  Run();
  EXPECT_EQ(AttachedTo(), "n1") << "the kubelet has not heard of it";
  SetInUse("n1", false);
  Run();
  EXPECT_EQ(AttachedTo(), "-n1");
  PlayAttacher();
  EXPECT_EQ(AttachedTo(), "");
}

TEST_F(AttachDetachTest, NodeThatAttachesItself) {
  cluster_.fake->Put(NodeNamed("n1"));  // without the annotation
  PutPod("p", "n1");
  Run();
  EXPECT_EQ(AttachedTo(), "");
  cluster_.fake->Put(NodeOf("n1"));  // not any more
  Run();
  EXPECT_EQ(AttachedTo(), "n1");
}

TEST_F(AttachDetachTest, FinishedPodNeedsNothing) {
  PutPod("p", "n1");
  Run();
  corev1::Pod pod = cluster_.Get<corev1::Pod>("default", "p");
  pod.mutable_status()->set_phase("Succeeded");
  cluster_.fake->Put(pod);
  Run();
  EXPECT_EQ(AttachedTo(), "");  // it was never attached
}

TEST_F(AttachDetachTest, SuccessorGoesOnWithoutANoise) {
  PutPod("p", "n1");
  Run();
  PlayAttacher();
  cluster_.Stop();
  controller_ = &cluster_.Make<AttachDetachController>();
  started_ = false;
  cluster_.fake->ForgetRequests();
  Run();
  for (const std::string& request : cluster_.fake->Requests()) {
    EXPECT_EQ(request.rfind("GET", 0), 0u) << request;
  }
  DeletePod("p");
  Run();
  EXPECT_EQ(AttachedTo(), "-n1");
}

TEST_F(AttachDetachTest, VolumesOfOthersStayReported) {
  corev1::Node node = NodeOf("n1");
  corev1::AttachedVolume& other = *node.mutable_status()->add_volumes_attached();
  other.set_name("example.com/own^x");
  other.set_device_path("/dev/x");
  cluster_.fake->Put(node);
  PutPod("p", "n1");
  Run();
  PlayAttacher();
  EXPECT_EQ(Reported("n1"), "example.com/own^x " + std::string(kName) + " ");
}

// Kills the controller before each of its writes: the volume is attached and detached all the same.
TEST_F(AttachDetachTest, KilledAfterAnyWrite) {
  int writes = 0;
  for (bool killed = true; killed; ++writes) {
    SCOPED_TRACE(writes);
    killed = false;
    auto left = std::make_shared<int>(writes);
    auto own = std::make_shared<bool>(false);  // it is the controller that writes
    cluster_.fake->SetInterceptor(
        [left, own,
         &killed](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
          if (!*own || request.method == "GET" || (!killed && (*left)-- > 0)) return std::nullopt;
          killed = true;
          return client::FakeApi::Refuse(Error(Code::kUnavailable, "killed"));
        });
    auto round = [&] {
      if (!started_) cluster_.Start();
      started_ = true;
      *own = true;
      cluster_.Drain({controller_});
      *own = false;
      cluster_.errors.clear();
      if (!killed || *left == -100) return;
      *left = -100;  // the next one is not killed
      cluster_.fake->SetInterceptor(nullptr);
      cluster_.Stop();
      controller_ = &cluster_.Make<AttachDetachController>();
      cluster_.Start();
      cluster_.Drain({controller_});
    };
    PutPod("p", "n1");
    round();
    EXPECT_EQ(AttachedTo(), "n1");
    for (VolumeAttachment one : cluster_.List<VolumeAttachment>()) {
      one.mutable_status()->set_attached(true);
      cluster_.fake->Put(one);
    }
    round();
    EXPECT_EQ(Reported("n1"), std::string(kName) + " ");
    DeletePod("p");
    round();
    EXPECT_EQ(AttachedTo(), "");
    EXPECT_EQ(Reported("n1"), "");
  }
  EXPECT_GT(writes, 4);  // attach, report, take back, detach
}

}  // namespace
}  // namespace keelson::controllers
