// The whole scheduler, and pods whose binding has to wait for volumes or for a Permit plugin.
#include <deque>

#include "controlplane/scheduler/testing/cluster.h"
#include "controlplane/scheduler/volumes/volume_plan.h"
#include "lib/api/proto/storage_v1.pb.h"
#include "lib/base/mutex.h"

namespace keelson::scheduler {
namespace {

storagev1::StorageClass WaitingClass(const std::string& provisioner) {
  storagev1::StorageClass out;
  out.mutable_metadata()->set_name("waiting");
  out.set_provisioner(provisioner);
  out.set_volume_binding_mode("WaitForFirstConsumer");
  return out;
}

corev1::PersistentVolumeClaim WaitingClaim(const std::string& name) {
  corev1::PersistentVolumeClaim out;
  out.mutable_metadata()->set_name(name);
  out.mutable_metadata()->set_namespace_("default");
  out.mutable_spec()->set_storage_class_name("waiting");
  return out;
}

corev1::Pod PodWith(const std::string& name, const std::string& claim) {
  corev1::Pod pod = MakePod(name);
  corev1::Volume& volume = *pod.mutable_spec()->add_volumes();
  volume.set_name("v");
  volume.mutable_volume_source()->mutable_persistent_volume_claim()->set_claim_name(claim);
  return pod;
}

TEST_F(SchedulerTest, BindsClaimsForTheChosenNode) {
  fake_->Put(MakeNode("n1"));
  fake_->Put(WaitingClass("example.com/csi"));
  fake_->Put(WaitingClaim("c"));
  Start();
  Create(PodWith("p", "c"));
  // The provisioner sees which node it is for, and binds.
  corev1::PersistentVolumeClaim asked =
      AwaitClaim("c", [](const auto& c) { return c.metadata().annotations().contains(kSelectedNode); });
  EXPECT_EQ(asked.metadata().annotations().at(kSelectedNode), "n1");
  corev1::PersistentVolume made;
  made.mutable_metadata()->set_name("pv");
  fake_->Put(made);
  asked.mutable_spec()->set_volume_name("pv");
  (*asked.mutable_metadata()->mutable_annotations())["pv.kubernetes.io/bind-completed"] = "yes";
  ASSERT_TRUE(api_.Update(asked));
  EXPECT_EQ(NodeOf("p"), "n1");
}

TEST_F(SchedulerTest, ANodeThatAProvisionerRefusesIsChosenAnew) {
  fake_->Put(MakeNode("n1"));
  fake_->Put(WaitingClass("example.com/full"));
  fake_->Put(WaitingClaim("c"));
  Start();
  Create(PodWith("p", "c"));
  const auto selected = [](const auto& c) { return c.metadata().annotations().contains(kSelectedNode); };
  corev1::PersistentVolumeClaim asked = AwaitClaim("c", selected);
  asked.mutable_metadata()->mutable_annotations()->erase(kSelectedNode);
  ASSERT_TRUE(api_.Update(asked));
  EXPECT_EQ(WhyNot("p"), "SchedulerError: VolumeBinding: binding volumes: provisioning failed for PVC \"c\"");
  AwaitClaim("c", selected);
}

TEST_F(SchedulerTest, VolumesThatAreLongInComingHoldUpNobodyElse) {
  fake_->Put(WaitingClass("example.com/never"));
  fake_->Put(MakeNode("n1", "100"));
  Start();
  constexpr int kWaiting = 100;  // and the scheduler has two dispatcher threads
  for (int i = 0; i < kWaiting; ++i) {
    const std::string name = "c" + std::to_string(i);
    ASSERT_TRUE(api_.Create(WaitingClaim(name)));
    Create(PodWith("waits-for-" + name, name));
  }
  Create(MakePod("p"));
  EXPECT_EQ(NodeOf("p"), "n1");
  corev1::PersistentVolume made;
  made.mutable_metadata()->set_name("pv");
  fake_->Put(made);
  // The last one first: they do not wait for each other.
  for (int i = kWaiting - 1; i >= 0; --i) {
    const std::string name = "c" + std::to_string(i);
    corev1::PersistentVolumeClaim claim =
        AwaitClaim(name, [](const auto& c) { return c.metadata().annotations().contains(kSelectedNode); });
    claim.mutable_spec()->set_volume_name("pv");
    (*claim.mutable_metadata()->mutable_annotations())["pv.kubernetes.io/bind-completed"] = "yes";
    ASSERT_TRUE(api_.Update(claim));
    EXPECT_EQ(NodeOf("waits-for-" + name), "n1");
  }
}

TEST_F(SchedulerTest, VolumesThatDoNotComeInTimeAreGivenUp) {
  fake_->Put(MakeNode("n1"));
  fake_->Put(WaitingClass("example.com/never"));
  fake_->Put(WaitingClaim("c"));
  const Result<Config> config = ParseConfig(
      "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
      "- {pluginConfig: [{name: VolumeBinding, args: {bindTimeoutSeconds: 1}}]}\n");
  ASSERT_TRUE(config) << config.error().message();
  Start(*config);
  Create(PodWith("p", "c"));
  EXPECT_EQ(WhyNot("p"),
            "SchedulerError: VolumeBinding: binding volumes: timed out waiting for the condition");
}

// A Permit plugin that makes the pod "waiting" wait for Answer().
class FakePermit : public PermitPlugin {
 public:
  std::string_view name() const override { return "FakePermit"; }
  Status Permit(CycleState&, const PodInfo& pod, const std::string&) override {
    return pod.name == "waiting" ? Status{Status::Code::kWait, ""} : Status();
  }
  Status PollPermit(CycleState&, const PodInfo& pod, const std::string&) override {
    MutexLock lock(mutex_);
    if (pod.name != "waiting") return {};
    if (answers_.empty()) return {Status::Code::kWait, ""};
    Status answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }
  void OnPermitChange(std::function<void()> changed) override { changed_ = std::move(changed); }
  void Answer(Status answer) {
    MutexLock lock(mutex_);
    answers_.push_back(std::move(answer));
    changed_();
  }

 private:
  std::function<void()> changed_;
  Mutex mutex_;
  std::deque<Status> answers_ KEELSON_GUARDED_BY(mutex_);
};

TEST_F(SchedulerTest, PodsMayHaveToWaitForPermission) {
  fake_->Put(MakeNode("n1", "2"));
  const auto permit = std::make_shared<FakePermit>();
  Start({}, {permit});
  Create(MakePod("waiting", "1"));
  Create(MakePod("other", "1"));
  EXPECT_EQ(NodeOf("other"), "n1");
  // The waiting pod keeps its room.
  Create(MakePod("late", "1"));
  EXPECT_EQ(WhyNot("late"),
            "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are "
            "available: 1 No preemption victims found for incoming pod.");
  EXPECT_EQ(api_.Get<corev1::Pod>("default", "waiting")->spec().node_name(), "");
  ASSERT_TRUE(api_.Delete<corev1::Pod>("default", "late"));
  permit->Answer(Status::Unschedulable("not today"));
  EXPECT_EQ(WhyNot("waiting"), "Unschedulable: not today");
  permit->Answer({});  // for the next attempt
  EXPECT_EQ(NodeOf("waiting"), "n1");
}

}  // namespace
}  // namespace keelson::scheduler
