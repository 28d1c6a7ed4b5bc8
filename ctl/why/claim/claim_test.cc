#include <gmock/gmock.h>

#include "ctl/why/claim/claim_judge.h"
#include "ctl/why/testing/objects.h"

namespace keelson::ctl {
namespace {

using testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsEmpty;

ClaimView ClaimOf(const std::string& spec, const std::string& status, const std::string& metadata = "") {
  ClaimView view;
  view.claim = Parse<corev1::PersistentVolumeClaim>(R"({"apiVersion":"v1","kind":"PersistentVolumeClaim",
      "metadata":{"namespace":"default","name":"c","uid":"u1")" +
                                                    metadata + R"(},
      "spec":{"resources":{"requests":{"storage":"2Gi"}})" +
                                                    spec + R"(},"status":)" + status + "}");
  return view;
}
ClaimView Pending(const std::string& spec, const std::string& metadata = "") {
  return ClaimOf(spec, R"({"phase":"Pending"})", metadata);
}
ClaimView Bound(const std::string& status = R"({"phase":"Bound","capacity":{"storage":"2Gi"}})",
                const std::string& metadata = "") {
  ClaimView view = ClaimOf(R"(,"storageClassName":"local","volumeName":"pv1")", status, metadata);
  view.volume = Parse<corev1::PersistentVolume>(R"({"apiVersion":"v1","kind":"PersistentVolume",
      "metadata":{"name":"pv1"},"spec":{"claimRef":{"namespace":"default","name":"c","uid":"u1"}},
      "status":{"phase":"Bound"}})");
  return view;
}
void AddClass(ClaimView& view, const std::string& mode, const std::string& provisioner = "d.example.com",
              const std::string& metadata = "") {
  view.classes.push_back(Parse<storagev1::StorageClass>(
      R"({"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{"name":"local")" + metadata +
      R"(},"provisioner":")" + provisioner + R"(","volumeBindingMode":")" + mode + R"("})"));
}
void AddPod(ClaimView& view, const std::string& name, const std::string& phase) {
  view.pods.push_back(Parse<corev1::Pod>(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":")" + name +
      R"("},"spec":{"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}]},"status":{"phase":")" +
      phase + R"("}})"));
}
void AddEvent(ClaimView& view, const std::string& kind, const std::string& name, const std::string& type,
              const std::string& reason, const std::string& message) {
  view.events.push_back(Parse<corev1::Event>(
      R"({"apiVersion":"v1","kind":"Event","metadata":{"namespace":"default","name":"e"},"type":")" + type +
      R"(","reason":")" + reason + R"(","message":")" + message + R"(","involvedObject":{"kind":")" + kind +
      R"(","name":")" + name + R"("}})"));
}
void AddDriver(ClaimView& view, const std::string& node) {
  view.driver_nodes.push_back(Parse<storagev1::CSINode>(
      R"({"apiVersion":"storage.k8s.io/v1","kind":"CSINode","metadata":{"name":")" + node +
      R"("},"spec":{"drivers":[{"name":"d.example.com","nodeID":"n","topologyKeys":[]}]}})"));
}

std::vector<std::string> Reasons(const ClaimView& view) {
  std::vector<std::string> out;
  for (const Problem& problem : JudgeClaim(view).problems) out.push_back(problem.reason);
  return out;
}

TEST(WhyPvc, ClassesAreMissed) {
  EXPECT_THAT(Reasons(Pending("")), ElementsAre("NoDefaultClass"));
  EXPECT_THAT(Reasons(Pending(R"(,"storageClassName":"")")), ElementsAre("NoMatchingVolume"));
  EXPECT_THAT(Reasons(Pending(R"(,"storageClassName":"local")")), ElementsAre("ClassMissing"));
  EXPECT_TRUE(Advises(JudgeClaim(Pending(R"(,"storageClassName":"local")")), "kubectl get storageclass"));
  ClaimView view = Pending("");
  AddClass(view, "Immediate", "d.example.com",
           R"(,"annotations":{"storageclass.kubernetes.io/is-default-class":"true"})");
  EXPECT_THAT(Reasons(view), ElementsAre("NotBoundYet"));
  view = Pending(R"(,"storageClassName":"local")");
  AddClass(view, "Immediate", "kubernetes.io/no-provisioner");
  EXPECT_THAT(Reasons(view), ElementsAre("NoMatchingVolume"));
}

TEST(WhyPvc, AConsumerIsAwaited) {
  ClaimView view = Pending(R"(,"storageClassName":"local")");
  AddClass(view, "WaitForFirstConsumer");
  EXPECT_THAT(Reasons(view), ElementsAre("WaitForFirstConsumer"));
  AddPod(view, "done", "Succeeded");
  EXPECT_THAT(Reasons(view), ElementsAre("WaitForFirstConsumer"));
  AddPod(view, "p", "Pending");
  const WhyReport report = JudgeClaim(view);
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_EQ(report.problems[0].reason, "WaitForPodScheduled");
  EXPECT_THAT(report.problems[0].message, HasSubstr("nodectl why pod default/p"));
  EXPECT_TRUE(Advises(report, "nodectl why pod default/p"));
}

TEST(WhyPvc, ProvisionersAreMissedOrFail) {
  const std::string selected = R"(,"annotations":{"volume.kubernetes.io/selected-node":"n1"})";
  ClaimView view = Pending(R"(,"storageClassName":"local")", selected);
  AddClass(view, "WaitForFirstConsumer");
  EXPECT_THAT(Reasons(view), ElementsAre("DriverMissing", "NoProvisioner"));
  AddDriver(view, "n2");
  EXPECT_THAT(JudgeClaim(view).problems[0].message, HasSubstr("node n1"));
  AddDriver(view, "n1");
  EXPECT_THAT(Reasons(view), ElementsAre("NoProvisioner"));
  AddEvent(view, "PersistentVolumeClaim", "c", "Normal", "Provisioning",
           "External provisioner is provisioning");
  EXPECT_THAT(Reasons(view), ElementsAre("Provisioning"));
  AddEvent(view, "PersistentVolumeClaim", "c", "Warning", "ProvisioningFailed", "disk full");
  EXPECT_THAT(Reasons(view), ElementsAre("ProvisioningFailed"));
  EXPECT_EQ(JudgeClaim(view).problems[0].message, "disk full");
}

TEST(WhyPvc, CapacityIsCompared) {
  ClaimView view = Pending(R"(,"storageClassName":"local")");
  AddClass(view, "WaitForFirstConsumer");
  view.drivers.push_back(Parse<storagev1::CSIDriver>(
      R"({"apiVersion":"storage.k8s.io/v1","kind":"CSIDriver","metadata":{"name":"d.example.com"},
          "spec":{"storageCapacity":true}})"));
  EXPECT_THAT(Reasons(view), ElementsAre("WaitForFirstConsumer", "NoCapacity"));
  view.capacities.push_back(Parse<storagev1::CSIStorageCapacity>(
      R"({"apiVersion":"storage.k8s.io/v1","kind":"CSIStorageCapacity","metadata":{"name":"x"},
          "storageClassName":"local","capacity":"1Gi"})"));
  EXPECT_THAT(JudgeClaim(view).problems[1].message,
              "2Gi are wanted, and no place of class local has more than 1Gi");
  view.capacities[0].mutable_capacity()->set_string("2Gi");
  EXPECT_THAT(Reasons(view), ElementsAre("WaitForFirstConsumer"));
}

TEST(WhyPvc, VolumesAreLostOrTaken) {
  EXPECT_THAT(Reasons(ClaimOf(R"(,"volumeName":"pv1")", R"({"phase":"Lost"})")), ElementsAre("VolumeLost"));
  EXPECT_THAT(Reasons(Pending(R"(,"volumeName":"pv1")")), ElementsAre("VolumeMissing"));
  ClaimView view = Bound(R"({"phase":"Pending"})");
  EXPECT_THAT(Reasons(view), ElementsAre("NotBoundYet"));
  view.volume->mutable_spec()->mutable_claim_ref()->set_uid("u0");
  EXPECT_THAT(Reasons(view), ElementsAre("VolumeTaken"));
}

TEST(WhyPvc, ABoundClaimInOrderHasNoProblem) {
  ClaimView view = Bound();
  AddPod(view, "p", "Running");
  EXPECT_THAT(Reasons(view), IsEmpty());
  EXPECT_EQ(WhyText(JudgeClaim(view)),
            "Claim default/c is Bound, of class local, with volume pv1, used by pod p\n");
}

TEST(WhyPvc, DeletionWaitsForPods) {
  const std::string deleted =
      R"(,"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["kubernetes.io/pvc-protection","example.com/x"])";
  ClaimView view = Bound(R"({"phase":"Bound"})", deleted);
  AddPod(view, "p", "Running");
  EXPECT_THAT(Reasons(view), ElementsAre("InUse", "Finalizer"));
}

TEST(WhyPvc, ExpansionIsPendingOrFails) {
  ClaimView view = Bound(R"({"phase":"Bound","capacity":{"storage":"1Gi"}})");
  EXPECT_THAT(JudgeClaim(view).problems[0].message,
              "2Gi are wanted, the volume has 1Gi: no resizer has taken it up");
  view = Bound(R"({"phase":"Bound","capacity":{"storage":"1Gi"},
      "conditions":[{"type":"FileSystemResizePending","status":"True"}]})");
  EXPECT_THAT(Reasons(view), ElementsAre("ExpansionPending"));
  view = Bound(R"({"phase":"Bound","capacity":{"storage":"1Gi"},
      "conditions":[{"type":"ControllerResizeError","status":"True","message":"no room"}]})");
  EXPECT_THAT(Reasons(view), ElementsAre("ExpansionFailed"));
  view = Bound(R"({"phase":"Bound","capacity":{"storage":"2Gi"},"modifyVolumeStatus":
      {"targetVolumeAttributesClassName":"gold","status":"Infeasible"}})");
  EXPECT_THAT(Reasons(view), ElementsAre("ModificationFailed"));
}

TEST(WhyPvc, AttachmentsAndMountsFail) {
  ClaimView view = Bound();
  view.attachments.push_back(Parse<storagev1::VolumeAttachment>(
      R"({"apiVersion":"storage.k8s.io/v1","kind":"VolumeAttachment","metadata":{"name":"a"},
          "spec":{"attacher":"d.example.com","nodeName":"n1","source":{"persistentVolumeName":"pv1"}},
          "status":{"attached":false}})"));
  EXPECT_THAT(Reasons(view), ElementsAre("AttachPending"));
  view.attachments[0].mutable_status()->mutable_attach_error()->set_message("no such disk");
  EXPECT_THAT(Reasons(view), ElementsAre("AttachFailed"));
  view = Bound();
  AddPod(view, "p", "Pending");
  AddEvent(view, "Pod", "p", "Warning", "FailedMount", "MountVolume.MountDevice failed");
  EXPECT_THAT(Reasons(view), ElementsAre("MountFailed"));
}

TEST(WhyPvc, AVolumeMayBeOutOfReach) {
  ClaimView view = Bound();
  auto& term =
      *view.volume->mutable_spec()->mutable_node_affinity()->mutable_required()->add_node_selector_terms();
  auto& expression = *term.add_match_expressions();
  expression.set_key("node");
  expression.set_operator_("In");
  expression.add_values("n1");
  EXPECT_THAT(Reasons(view), ElementsAre("NodeGone"));
  view.nodes.push_back(Parse<corev1::Node>(
      R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","labels":{"node":"n1"}},"status":{"conditions":[]}})"));
  EXPECT_THAT(Reasons(view), ElementsAre("NodeNotReady"));
}

TEST(WhyPvc, PodsUseClaims) {
  const corev1::Pod pod = Parse<corev1::Pod>(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"volumes":[
          {"name":"a","persistentVolumeClaim":{"claimName":"c"}},{"name":"b","ephemeral":{}}]}})");
  EXPECT_TRUE(UsesClaim(pod, "c"));
  EXPECT_TRUE(UsesClaim(pod, "p-b"));
  EXPECT_FALSE(UsesClaim(pod, "p-a"));
}

}  // namespace
}  // namespace keelson::ctl
