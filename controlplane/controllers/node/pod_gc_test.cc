#include <gtest/gtest.h>

#include "controlplane/controllers/node/pod_gc.h"
#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;

TEST(PodGcTest, RemovesWhatNobodyElseWill) {
  TestCluster cluster;
  PodGcController& gc = cluster.Make<PodGcController>(1);
  cluster.fake->Put(NodeNamed("n1"));
  cluster.fake->Put(PodNamed("stays", {}, "n1"));
  cluster.fake->Put(PodNamed("lost", {}, "gone"));
  corev1::Pod unscheduled = PodNamed("unscheduled");
  *unscheduled.mutable_metadata()->mutable_deletion_timestamp() = api::ToTime(cluster.clock.Now());
  cluster.fake->Put(unscheduled);
  for (int i = 0; i < 3; ++i) {
    corev1::Pod done = PodNamed("done-" + std::to_string(i), {}, "n1");
    *done.mutable_metadata()->mutable_creation_timestamp() = api::ToTime(cluster.clock.Now() + 1s * i);
    done.mutable_status()->set_phase("Succeeded");
    cluster.fake->Put(done);
  }
  cluster.Start();
  cluster.Drain({&gc});
  auto names = [&] {
    std::set<std::string> out;
    for (const auto& pod : cluster.List<corev1::Pod>()) out.insert(pod.metadata().name());
    return out;
  };
  EXPECT_EQ(names(), (std::set<std::string>{"stays", "lost", "done-2"}))
      << "a missing node has its quarantine";
  cluster.Advance(20s, {&gc});
  EXPECT_EQ(names().count("lost"), 1u);
  cluster.Advance(20s, {&gc});
  EXPECT_EQ(names(), (std::set<std::string>{"stays", "done-2"}));
}

TEST(PodGcTest, FourKindsAndWhatTheyAreTold) {
  TestCluster cluster;
  PodGcController& gc = cluster.Make<PodGcController>(1);
  corev1::Node broken = NodeNamed("broken", "False");
  auto& taint = *broken.mutable_spec()->add_taints();
  taint.set_key("node.kubernetes.io/out-of-service");
  taint.set_effect("NoExecute");
  cluster.fake->Put(broken);
  cluster.fake->Put(NodeNamed("n1"));
  const auto put = [&](const std::string& name, const std::string& node, bool going, const char* phase,
                       const char* reason = "") {
    corev1::Pod pod = PodNamed(name, {}, node);
    pod.mutable_metadata()->add_finalizers("example.com/keep");  // keeps them for inspection
    if (going) *pod.mutable_metadata()->mutable_deletion_timestamp() = api::ToTime(cluster.clock.Now());
    pod.mutable_status()->set_phase(phase);
    if (*reason) pod.mutable_status()->set_reason(reason);
    cluster.fake->Put(pod);
  };
  put("orphaned", "gone", false, "Running");
  put("unscheduled", "", true, "Pending");
  put("out-of-service", "broken", true, "Running");
  put("stays-on-broken", "broken", false, "Running");
  put("going", "n1", true, "Running");
  put("done-a", "n1", false, "Succeeded");
  put("done-b", "", false, "Failed");
  put("evicted", "n1", false, "Failed", "Evicted");
  cluster.Start();
  for (int i = 0; i < 4; ++i) cluster.Advance(20s, {&gc});
  std::map<std::string, std::string> told;
  for (const auto& pod : cluster.List<corev1::Pod>()) {
    const corev1::PodCondition* target = k8s::FindCondition(pod.status(), "DisruptionTarget");
    told[pod.metadata().name()] = pod.status().phase() + (k8s::IsTerminating(pod) ? " going" : "") +
                                  (target ? " " + target->reason() + ": " + target->message() : "");
  }
  EXPECT_EQ(told, (std::map<std::string, std::string>{
                      {"orphaned", "Failed going DeletionByPodGC: PodGC: node no longer exists"},
                      {"unscheduled", "Failed going"},
                      {"out-of-service", "Failed going"},
                      {"stays-on-broken", "Running"},
                      {"going", "Running going"},
                      {"done-a", "Succeeded going"},  // the older of two by name; the evicted one went first
                      {"done-b", "Failed"},
                      {"evicted", "Failed going"}}));
}

}  // namespace
}  // namespace keelson::controllers
