#include <gmock/gmock.h>

#include "ctl/why/node/node_judge.h"
#include "ctl/why/testing/objects.h"
#include "lib/api/meta.h"

namespace keelson::ctl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kReady[] =
    R"({"type":"Ready","status":"True","reason":"KubeletReady","message":"kubelet is posting ready status"})";

NodeHealthView NodeOf(const std::string& conditions, const std::string& spec = "",
                      const std::string& metadata = "",
                      const std::string& renewed = "2026-01-01T00:09:55.000000Z") {
  NodeHealthView view;
  view.node = Parse<corev1::Node>(R"({"metadata":{"name":"n1")" + metadata + R"(},"spec":{)" + spec +
                                  R"(},"status":{"conditions":[)" + conditions + "]}}");
  view.lease = Parse<coordinationv1::Lease>(R"({"spec":{"leaseDurationSeconds":40,"renewTime":")" + renewed +
                                            R"("}})");
  view.now =
      api::FromTime(Parse<corev1::Event>(R"({"lastTimestamp":"2026-01-01T00:10:00Z"})").last_timestamp());
  return view;
}
std::string NotReady(const std::string& message) {
  return R"({"type":"Ready","status":"False","reason":"KubeletNotReady","message":")" + message + R"("})";
}
std::vector<std::string> Reasons(const NodeHealthView& view) { return ReasonsOf(JudgeNode(view)); }

TEST(WhyNode, ANodeInOrderHasNoProblem) {
  const WhyReport report = JudgeNode(NodeOf(kReady, R"("taints":[{"key":"a","effect":"NoSchedule"}])"));
  EXPECT_THAT(ReasonsOf(report), IsEmpty());
  EXPECT_EQ(WhyText(report),
            "Node n1 is Ready\n\n  note: taint a:NoSchedule: pods without a toleration stay away\n");
}

TEST(WhyNode, TheKubeletIsSilent) {
  const std::string unknown =
      R"({"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown","message":"Kubelet stopped posting node status."})";
  NodeHealthView view = NodeOf(unknown, "", "", "2026-01-01T00:05:00.000000Z");
  WhyReport report = JudgeNode(view);
  EXPECT_THAT(ReasonsOf(report), ElementsAre("KubeletSilent"));
  EXPECT_THAT(report.problems[0].message, HasSubstr("for 5m"));
  EXPECT_THAT(report.problems[0].evidence[0], HasSubstr("was renewed 5m ago"));
  view.lease.reset();
  EXPECT_THAT(Reasons(view), ElementsAre("KubeletSilent"));
  view = NodeOf(unknown);
  EXPECT_THAT(Reasons(view), ElementsAre("NotReady"));
  EXPECT_THAT(Reasons(NodeOf("")), ElementsAre("NotReady"));
}

TEST(WhyNode, TheKubeletSaysWhatIsMissing) {
  const struct {
    const char *message, *verdict;
  } cases[] = {
      {"container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni "
       "plugin not initialized",
       "NetworkPluginNotReady"},
      {"container runtime is down", "RuntimeNotReady"},
      {"PLEG is not healthy: pleg was last seen active 3m ago", "RuntimeNotReady"},
      {"node is shutting down", "NodeShutdown"},
      {"CSINode is not yet initialized", "CsiNodeNotReady"},
      {"something new", "NotReady"},
  };
  for (const auto& one : cases) {
    const WhyReport report = JudgeNode(NodeOf(NotReady(one.message)));
    EXPECT_THAT(ReasonsOf(report), ElementsAre(one.verdict));
    EXPECT_TRUE(Shows(report, one.message));
  }
}

TEST(WhyNode, ResourcesAreShort) {
  for (const char* type : {"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"}) {
    const std::string conditions =
        std::string(kReady) + R"(,{"type":")" + type + R"(","status":"True","reason":"r","message":"m"})";
    EXPECT_THAT(Reasons(NodeOf(conditions)), ElementsAre(type));
  }
}

TEST(WhyNode, AdministratorsKeepPodsAway) {
  NodeHealthView view = NodeOf(
      kReady,
      R"("unschedulable":true,"taints":[{"key":"node.kubernetes.io/unschedulable","effect":"NoSchedule"}])");
  WhyReport report = JudgeNode(view);
  EXPECT_THAT(ReasonsOf(report), ElementsAre("Cordoned"));
  EXPECT_TRUE(Advises(report, "kubectl uncordon n1"));
  EXPECT_THAT(report.notes, IsEmpty());
  EXPECT_THAT(Reasons(NodeOf(
                  kReady, R"("taints":[{"key":"node.kubernetes.io/out-of-service","effect":"NoExecute"}])")),
              ElementsAre("OutOfService"));
  EXPECT_THAT(
      Reasons(NodeOf(
          kReady,
          R"("taints":[{"key":"node.cloudprovider.kubernetes.io/uninitialized","effect":"NoSchedule"}])")),
      ElementsAre("CloudProviderUninitialized"));
  EXPECT_THAT(
      Reasons(NodeOf(kReady, "", R"(,"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a"])")),
      ElementsAre("Finalizer"));
}

TEST(WhyNode, TheMachineTellsMore) {
  NodeHealthView view = NodeOf(kReady);
  view.machine = NodeHealthView::Machine{.certificate = "/c.pem",
                                         .certificate_problem = {},
                                         .not_after = view.now - std::chrono::hours(2),
                                         .not_before = view.now - std::chrono::hours(24 * 300),
                                         .kubelet_runs = true,
                                         .cni_configuration = "10-a.conflist"};
  WhyReport report = JudgeNode(view);
  EXPECT_THAT(ReasonsOf(report), ElementsAre("CertificateExpired"));
  EXPECT_THAT(report.problems[0].message, HasSubstr("expired 2h ago"));
  view.machine->not_after = view.now + std::chrono::hours(24);
  EXPECT_THAT(Reasons(view), ElementsAre("CertificateExpiring"));
  view.machine->not_before = view.now - std::chrono::hours(24);
  EXPECT_THAT(Reasons(view), IsEmpty()) << "a certificate of two days is renewed late";
  view.machine->not_after = view.now + std::chrono::hours(24 * 300);
  EXPECT_THAT(Reasons(view), IsEmpty());
  view = NodeOf(NotReady("cni plugin not initialized"));
  view.machine = NodeHealthView::Machine{
      .certificate = "/c.pem", .certificate_problem = "no such file", .not_after = {}};
  report = JudgeNode(view);
  EXPECT_TRUE(Shows(report, "/etc/cni/net.d has no configuration"));
  EXPECT_THAT(report.notes, Contains(HasSubstr("no such file")));
  view = NodeOf("", "", "", "2026-01-01T00:05:00.000000Z");
  view.machine = NodeHealthView::Machine{};
  EXPECT_TRUE(Shows(JudgeNode(view), "no process kubelet runs"));
}

}  // namespace
}  // namespace keelson::ctl
