#include "cni/agent/policy/problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keelson::cni::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PolicyProblemsTest : public ::testing::Test {
 protected:
  PolicyProblemsTest() {
    plan_.PutNamespace("x", {});
    plan_.SetNode({"n1", {*IpPrefix::Parse("10.244.1.0/24")}});
    AddPod("a", "10.244.1.2");
    policy_.problems = {"a rule of ingress permits nothing: invalid port"};
    policy_.isolates_ingress = true;
  }
  void AddPod(const std::string& name, const char* address) {
    policy::Pod pod{.ns = "x", .name = name, .uid = "uid-" + name, .node = "n1", .labels = {{"app", name}}};
    plan_.PutPod("x/" + name, pod);
    attachments_[*IpAddress::Parse(address)] = {.uid = pod.uid, .epoch = 1};
    plan_.SetAttachments(attachments_);
  }
  std::vector<std::string> Told() { return std::exchange(told_, {}); }

  policy::Incremental plan_;
  policy::Attachments attachments_;
  policy::Policy policy_{.ns = "x", .name = "p", .pods = {}};
  std::vector<std::string> told_;
  PolicyProblems problems_{
      [this](const policy::Pod& pod, std::string_view reason, const std::string& message) {
        told_.push_back(pod.name + " " + std::string(reason) + " " + message);
      }};
};

TEST_F(PolicyProblemsTest, APodIsToldOnceOfEachPolicyThatSelectsIt) {
  const std::string what =
      " InvalidNetworkPolicy NetworkPolicy x/p: a rule of ingress permits nothing: invalid port";
  problems_.Report(plan_, true);
  EXPECT_THAT(Told(), IsEmpty());
  plan_.PutPolicy("x/p", policy_);
  problems_.Report(plan_, false);
  EXPECT_THAT(Told(), ElementsAre("a" + what));
  AddPod("b", "10.244.1.3");
  problems_.Report(plan_, true);
  EXPECT_THAT(Told(), ElementsAre("b" + what));
  policy_.pods.requirements = {{.key = "app", .values = {"b"}}};
  plan_.PutPolicy("x/p", policy_);
  problems_.Report(plan_, false);
  EXPECT_THAT(Told(), IsEmpty());
  plan_.ErasePolicy("x/p");
  problems_.Report(plan_, false);
  plan_.PutPolicy("x/p", policy_);
  problems_.Report(plan_, false);
  EXPECT_THAT(Told(), ElementsAre("b" + what)) << "it is there again";
}

TEST_F(PolicyProblemsTest, PodsThatWaitAreToldOfTheFailure) {
  AddPod("b", "10.244.1.3");
  policy::Attachments ready = {{*IpAddress::Parse("10.244.1.2"), {.uid = "uid-a", .epoch = 1}}};
  const Error error(Code::kInternal, "table is full");
  problems_.ReportFailure(plan_, ready, error);
  problems_.ReportFailure(plan_, ready, error);
  EXPECT_THAT(Told(),
              ElementsAre("b NetworkPolicyNotApplied network policies cannot be applied, the pod has no "
                          "network: table is full"));
  problems_.Recovered();
  problems_.ReportFailure(plan_, ready, error);
  EXPECT_EQ(Told().size(), 1u);
}

}  // namespace
}  // namespace keelson::cni::agent
