#include <gtest/gtest.h>

#include <array>

#include "kubelet/status/generate.h"
#include "kubelet/status/manager.h"
#include "lib/api/codec/codec.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {
namespace {

corev1::Pod PodOf(std::string_view json) {
  corev1::Pod pod;
  auto decoded = api::DecodeJson(json, pod);
  EXPECT_TRUE(decoded) << (decoded ? "" : decoded.error().message());
  return pod;
}

class NoProbes : public ProbeResults {
 public:
  std::optional<bool> Get(ProbeKind kind, const std::string& id) const override {
    auto it = results_.find({kind, id});
    return it == results_.end() ? std::nullopt : std::optional<bool>(it->second);
  }
  std::map<std::pair<ProbeKind, std::string>, bool> results_;
};

ContainerRecord Record(const std::string& name, cri::ContainerState state, int exit_code = 0,
                       int restarts = 0) {
  ContainerRecord record;
  record.id = name + std::to_string(restarts);
  record.name = name;
  record.state = state;
  record.started_at = 1'000'000'000;
  record.finished_at = state == cri::ContainerState::kExited ? 2'000'000'000 : 0;
  record.exit_code = exit_code;
  record.restart_count = restarts;
  record.sandbox_id = "s";
  return record;
}

class StatusTest : public ::testing::Test {
 protected:
  corev1::PodStatus Generate(const corev1::Pod& pod, bool initialized = true, bool terminal = false) {
    StatusInput input{pod,      runtime_,     probes_,      waiting_, initialized,
                      terminal, {"10.0.0.1"}, "containerd", {},       {}};
    input.lacks_volumes = lacks_volumes_;
    return GenerateStatus(input);
  }
  bool lacks_volumes_ = false;
  void Ready() {
    cri::SandboxStatus sandbox;
    sandbox.id = "s";
    sandbox.state = cri::SandboxState::kReady;
    sandbox.ips = {"10.1.0.5"};
    runtime_.sandboxes = {sandbox};
  }
  static std::string Condition(const corev1::PodStatus& status, std::string_view type) {
    const auto* condition = k8s::FindCondition(status, type);
    return condition ? condition->status() + (condition->reason().empty() ? "" : " " + condition->reason())
                     : "";
  }
  PodRuntimeStatus runtime_;
  NoProbes probes_;
  std::map<std::string, WaitingReason> waiting_;
};

TEST_F(StatusTest, NewPodIsPending) {
  corev1::PodStatus status = Generate(PodOf(R"({"spec":{"containers":[{"name":"a"}]}})"));
  EXPECT_EQ(status.phase(), "Pending");
  EXPECT_EQ(status.container_statuses(0).state().waiting().reason(), "ContainerCreating");
  EXPECT_EQ(Condition(status, "Ready"), "False ContainersNotReady");
  EXPECT_EQ(Condition(status, "PodReadyToStartContainers"), "False");
  EXPECT_EQ(Condition(status, "PodScheduled"), "True");
  EXPECT_EQ(status.host_ip(), "10.0.0.1");
}

TEST_F(StatusTest, RunningPodIsReadyWhenItsProbeSaysSo) {
  Ready();
  runtime_.containers = {Record("a", cri::ContainerState::kRunning)};
  corev1::Pod pod = PodOf(R"({"metadata":{"generation":3},"spec":{"restartPolicy":"Always","containers":[
      {"name":"a","readinessProbe":{"tcpSocket":{"port":1}}}]}})");
  corev1::PodStatus status = Generate(pod);
  EXPECT_EQ(status.phase(), "Running");
  EXPECT_EQ(Condition(status, "Ready"), "False ContainersNotReady");
  probes_.results_[{ProbeKind::kReadiness, "a0"}] = true;
  status = Generate(pod);
  EXPECT_EQ(Condition(status, "Ready"), "True");
  EXPECT_EQ(Condition(status, "PodReadyToStartContainers"), "True");
  lacks_volumes_ = true;
  EXPECT_EQ(Condition(Generate(pod), "PodReadyToStartContainers"), "False");
  lacks_volumes_ = false;
  EXPECT_EQ(status.pod_ip(), "10.1.0.5");
  EXPECT_EQ(status.observed_generation(), 3);
  EXPECT_EQ(status.container_statuses(0).container_id(), "containerd://a0");
}

TEST_F(StatusTest, CrashLoopShowsTheLastEnd) {
  Ready();
  runtime_.containers = {Record("a", cri::ContainerState::kExited, 3, 2)};
  waiting_["a"] = {"CrashLoopBackOff", "back-off 10s"};
  corev1::PodStatus status =
      Generate(PodOf(R"({"spec":{"restartPolicy":"Always","containers":[{"name":"a"}]}})"));
  EXPECT_EQ(status.phase(), "Running");
  const auto& container = status.container_statuses(0);
  EXPECT_EQ(container.state().waiting().reason(), "CrashLoopBackOff");
  EXPECT_EQ(container.last_state().terminated().exit_code(), 3);
  EXPECT_EQ(container.restart_count(), 2);
}

TEST_F(StatusTest, ARunThatWasTheLastShowsItsEndWhateverWentWrong) {
  Ready();
  runtime_.containers = {Record("a", cri::ContainerState::kExited, 128)};
  waiting_["a"] = {"RunContainerError", "exec: \"nothing\": executable file not found in $PATH"};
  for (const auto& [policy, phase, state] :
       std::vector<std::array<std::string, 3>>{{"Never", "Failed", "terminated"},
                                               {"OnFailure", "Running", "waiting"},
                                               {"Always", "Running", "waiting"}}) {
    corev1::PodStatus status =
        Generate(PodOf(R"({"spec":{"restartPolicy":")" + policy + R"(","containers":[{"name":"a"}]}})"));
    EXPECT_EQ(status.phase(), phase) << policy;
    EXPECT_EQ(status.container_statuses(0).state().has_terminated() ? "terminated" : "waiting", state)
        << policy;
  }
}

TEST_F(StatusTest, PhaseFollowsThePolicy) {
  Ready();
  struct Case {
    const char* policy;
    int exit_code;
    bool terminal;
    const char* phase;
  };
  for (const Case& c : {Case{"Always", 0, false, "Running"},
                        {"OnFailure", 0, false, "Succeeded"},
                        {"OnFailure", 1, false, "Running"},
                        {"Never", 1, false, "Failed"},
                        {"Never", 0, false, "Succeeded"},
                        {"Always", 0, true, "Succeeded"},
                        {"Always", 137, true, "Failed"}}) {
    runtime_.containers = {Record("a", cri::ContainerState::kExited, c.exit_code)};
    corev1::Pod pod =
        PodOf(std::string(R"({"spec":{"restartPolicy":")") + c.policy + R"(","containers":[{"name":"a"}]}})");
    EXPECT_EQ(Generate(pod, true, c.terminal).phase(), c.phase) << c.policy << c.exit_code << c.terminal;
  }
}

TEST_F(StatusTest, InitContainersHoldThePod) {
  Ready();
  runtime_.containers = {Record("i", cri::ContainerState::kRunning)};
  corev1::Pod pod = PodOf(
      R"({"spec":{"restartPolicy":"Never","initContainers":[{"name":"i"}],"containers":[{"name":"a"}]}})");
  corev1::PodStatus status = Generate(pod, false);
  EXPECT_EQ(status.phase(), "Pending");
  EXPECT_EQ(status.container_statuses(0).state().waiting().reason(), "PodInitializing");
  EXPECT_EQ(Condition(status, "Initialized"), "False ContainersNotInitialized");
  runtime_.containers = {Record("i", cri::ContainerState::kExited, 1)};
  EXPECT_EQ(Generate(pod, false).phase(), "Failed");
}

TEST_F(StatusTest, EachConditionTellsWhatItIsOf) {
  corev1::Pod pod = PodOf(R"({"metadata":{"generation":2},"spec":{"containers":[{"name":"a"}]},
      "status":{"conditions":[{"type":"PodScheduled","status":"True","observedGeneration":1}]}})");
  const corev1::PodStatus status = Generate(pod);
  for (const corev1::PodCondition& condition : status.conditions()) {
    EXPECT_EQ(condition.observed_generation(), 2) << condition.type();
  }
}

TEST_F(StatusTest, WhatIsAboutToBeginAnewHasNotEnded) {
  Ready();
  runtime_.containers = {Record("side", cri::ContainerState::kExited, 42),
                         Record("a", cri::ContainerState::kExited, 137)};
  corev1::Pod pod = PodOf(R"({"spec":{"restartPolicy":"Never","containers":[{"name":"a"}],"initContainers":[
      {"name":"side","restartPolicy":"Always","restartPolicyRules":[{"action":"RestartAllContainers",
       "exitCodes":{"operator":"In","values":[42]}}]}]},"status":{"phase":"Running"}})");
  StatusInput input{pod, runtime_, probes_, waiting_, true, false, {"10.0.0.1"}, "containerd", {}, {}};
  input.restarting_all = true;
  const corev1::PodStatus status = GenerateStatus(input);
  EXPECT_EQ(status.phase(), "Running");
  EXPECT_EQ(Condition(status, "AllContainersRestarting"), "True");
  // The first runs again, the other's turn will come.
  runtime_.containers = {Record("side", cri::ContainerState::kRunning, 0, 1)};
  *pod.mutable_status() = status;
  EXPECT_EQ(Generate(pod).phase(), "Pending");
}

TEST_F(StatusTest, WhileThereIsMoreToDoNothingIsAnEnd) {
  Ready();
  runtime_.containers = {Record("a", cri::ContainerState::kExited, 1)};
  corev1::Pod pod = PodOf(R"({"spec":{"restartPolicy":"Never","containers":[{"name":"a"}]}})");
  StatusInput input{pod, runtime_, probes_, waiting_, true, false, {"10.0.0.1"}, "containerd", {}, {}};
  EXPECT_EQ(GenerateStatus(input).phase(), "Failed");
  input.more_to_do = true;
  EXPECT_EQ(GenerateStatus(input).phase(), "Pending");
  pod.mutable_status()->set_phase("Running");
  const corev1::PodStatus status = GenerateStatus(input);
  EXPECT_EQ(status.phase(), "Running");
  EXPECT_EQ(Condition(status, "Ready"), "False ContainersNotReady");
}

TEST_F(StatusTest, APodHasNotEndedBeforeItsSidecars) {
  Ready();
  corev1::Pod pod = PodOf(R"({"spec":{"restartPolicy":"Never","containers":[{"name":"a"}],
      "initContainers":[{"name":"side","restartPolicy":"Always"}]},"status":{"phase":"Running"}})");
  runtime_.containers = {Record("a", cri::ContainerState::kExited),
                         Record("side", cri::ContainerState::kRunning)};
  EXPECT_EQ(Generate(pod).phase(), "Running");
  runtime_.containers[1] = Record("side", cri::ContainerState::kExited, 143);
  EXPECT_EQ(Generate(pod).phase(), "Succeeded");
}

TEST_F(StatusTest, ForeignConditionsAndGatesCount) {
  Ready();
  runtime_.containers = {Record("a", cri::ContainerState::kRunning)};
  corev1::Pod pod = PodOf(R"({"spec":{"containers":[{"name":"a"}],"readinessGates":[{"conditionType":"x/y"}]},
      "status":{"conditions":[{"type":"z","status":"True"}]}})");
  corev1::PodStatus status = Generate(pod);
  EXPECT_EQ(Condition(status, "z"), "True");
  EXPECT_EQ(Condition(status, "Ready"), "False ReadinessGatesNotReady");
}

TEST(StatusPatch, HoldsOnlyWhatChanged) {
  corev1::Pod a = PodOf(R"({"status":{"phase":"Pending","podIPs":[{"ip":"1.1.1.1"}],"message":"m",
      "conditions":[{"type":"Ready","status":"False","reason":"r"},{"type":"other","status":"True"}]}})");
  EXPECT_EQ(StatusPatch("u", a.status(), a.status()), std::nullopt);
  corev1::Pod b = PodOf(R"({"status":{"phase":"Running","podIPs":[{"ip":"2.2.2.2"}],
      "conditions":[{"type":"Ready","status":"True"}]}})");
  std::string patch = *StatusPatch("u", a.status(), b.status());
  EXPECT_NE(patch.find(R"("metadata":{"uid":"u"})"), std::string::npos);
  EXPECT_NE(patch.find(R"("phase":"Running")"), std::string::npos);
  EXPECT_NE(patch.find(R"("message":null)"), std::string::npos);
  EXPECT_NE(patch.find(R"([{"$patch":"replace"},{"ip":"2.2.2.2"}])"), std::string::npos);
  EXPECT_NE(patch.find(R"("reason":null)"), std::string::npos);
  EXPECT_EQ(patch.find("other"), std::string::npos) << "conditions of others are left alone";
}

TEST(StatusPatch, LeavesOthersConditionsAsTheyAre) {
  corev1::Pod now = PodOf(R"({"status":{"conditions":[{"type":"x/gate","status":"False"}]}})");
  corev1::Pod seen_before = PodOf(R"({"status":{"conditions":[{"type":"x/gate","status":"True"}]}})");
  EXPECT_EQ(StatusPatch("u", now.status(), seen_before.status()), std::nullopt);
}

}  // namespace
}  // namespace keelson::kubelet
