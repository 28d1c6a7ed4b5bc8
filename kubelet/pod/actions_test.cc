#include "kubelet/pod/actions.h"

#include <gtest/gtest.h>

#include "kubelet/container/container_hash.h"
#include "lib/api/codec/codec.h"

namespace keelson::kubelet {
namespace {

using cri::ContainerState;

class Probes : public ProbeResults {
 public:
  std::optional<bool> Get(ProbeKind kind, const std::string& id) const override {
    auto it = results_.find({kind, id});
    return it == results_.end() ? std::nullopt : std::optional<bool>(it->second);
  }
  std::map<std::pair<ProbeKind, std::string>, bool> results_;
};

class ActionsTest : public ::testing::Test {
 protected:
  void Pod(const std::string& spec) {
    auto decoded = api::DecodeJson(R"({"metadata":{"uid":"u"},"spec":)" + spec + "}", pod_);
    ASSERT_TRUE(decoded) << decoded.error().message();
  }
  void Sandbox(bool ready, uint32_t attempt = 0) {
    cri::SandboxStatus sandbox;
    sandbox.id = "s" + std::to_string(attempt);
    sandbox.metadata.attempt = attempt;
    sandbox.state = ready ? cri::SandboxState::kReady : cri::SandboxState::kNotReady;
    sandbox.ips = {"10.0.0.9"};
    status_.sandboxes.insert(status_.sandboxes.begin(), sandbox);
  }
  void Container(const std::string& name, ContainerState state, int exit_code = 0,
                 const std::string& sandbox = "s0") {
    ContainerRecord record;
    record.id = name + "-id";
    record.name = name;
    record.state = state;
    record.exit_code = exit_code;
    record.sandbox_id = sandbox;
    status_.containers.insert(status_.containers.begin(), record);
  }
  // "sandbox kill-pod start:a,b kill:c" in one line.
  std::string Plan() {
    PodActions actions = ComputePodActions(pod_, status_, probes_);
    std::string out;
    if (actions.kill_pod) out += " kill-pod";
    if (actions.restart_all_containers) out += " restart-all";
    if (actions.create_sandbox) out += " sandbox" + std::to_string(actions.sandbox_attempt);
    for (const auto& kill : actions.containers_to_kill) out += " kill:" + kill.name;
    for (const auto& name : actions.containers_to_start) out += " start:" + name;
    for (const auto& name : actions.ephemeral_containers_to_start) out += " debug:" + name;
    return out.empty() ? "" : out.substr(1);
  }
  corev1::Pod pod_;
  PodRuntimeStatus status_;
  Probes probes_;
};

TEST_F(ActionsTest, NewPodGetsASandboxAndItsContainers) {
  Pod(R"({"restartPolicy":"Always","containers":[{"name":"a"},{"name":"b"}]})");
  EXPECT_EQ(Plan(), "sandbox0 start:a start:b");
}

TEST_F(ActionsTest, RunningPodIsLeftAlone) {
  Pod(R"({"restartPolicy":"Always","containers":[{"name":"a"}]})");
  Sandbox(true);
  Container("a", ContainerState::kRunning);
  EXPECT_EQ(Plan(), "");
}

TEST_F(ActionsTest, InitContainersComeOneByOne) {
  Pod(R"({"restartPolicy":"Always","initContainers":[{"name":"i"},{"name":"j"}],"containers":[{"name":"a"}]})");
  EXPECT_EQ(Plan(), "sandbox0 start:i");
  Sandbox(true);
  Container("i", ContainerState::kRunning);
  EXPECT_EQ(Plan(), "");
  status_.containers.clear();
  Container("i", ContainerState::kExited, 0);
  EXPECT_EQ(Plan(), "start:j");
  Container("j", ContainerState::kExited, 1);
  EXPECT_EQ(Plan(), "start:j") << "tried again";
  pod_.mutable_spec()->set_restart_policy("Never");
  EXPECT_EQ(Plan(), "kill-pod");
  status_.containers.erase(status_.containers.begin());
  Container("j", ContainerState::kExited, 0);
  EXPECT_EQ(Plan(), "start:a");
}

TEST_F(ActionsTest, SidecarsStartInTurnAndStay) {
  Pod(R"({"restartPolicy":"Always","initContainers":[{"name":"s","restartPolicy":"Always",
      "startupProbe":{"tcpSocket":{"port":1}}},{"name":"i"}],"containers":[{"name":"a"}]})");
  Sandbox(true);
  Container("s", ContainerState::kRunning);
  EXPECT_EQ(Plan(), "") << "waits for its startup probe";
  probes_.results_[{ProbeKind::kStartup, "s-id"}] = true;
  EXPECT_EQ(Plan(), "start:i");
  Container("i", ContainerState::kExited, 0);
  Container("a", ContainerState::kRunning);
  EXPECT_EQ(Plan(), "");
  status_.containers.back().state = ContainerState::kExited;
  EXPECT_EQ(Plan(), "start:s") << "restarted beside the app";
}

TEST_F(ActionsTest, RestartPolicy) {
  struct Case {
    const char* policy;
    int exit_code;
    const char* plan;
  };
  for (const Case& c : {Case{"Always", 0, "start:a"},
                        {"OnFailure", 0, "kill-pod"},
                        {"OnFailure", 1, "start:a"},
                        {"Never", 1, "kill-pod"}}) {
    status_ = {};
    Pod(std::string(R"({"restartPolicy":")") + c.policy + R"(","containers":[{"name":"a"}]})");
    Sandbox(true);
    Container("a", ContainerState::kExited, c.exit_code);
    EXPECT_EQ(Plan(), c.plan) << c.policy << c.exit_code;
  }
}

TEST_F(ActionsTest, LostSandboxTakesAllWithIt) {
  Pod(R"({"restartPolicy":"Always","initContainers":[{"name":"i"}],"containers":[{"name":"a"}]})");
  Sandbox(false);
  Container("i", ContainerState::kExited);
  Container("a", ContainerState::kExited, 137);
  EXPECT_EQ(Plan(), "kill-pod sandbox1 start:i");
  pod_.mutable_spec()->set_restart_policy("Never");
  EXPECT_EQ(Plan(), "kill-pod") << "had its one run";
}

TEST_F(ActionsTest, FailedProbesAndChangesRestart) {
  Pod(R"({"restartPolicy":"Always","containers":[{"name":"a","image":"x"}]})");
  Sandbox(true);
  Container("a", ContainerState::kRunning);
  status_.containers[0].hash = ContainerHash(pod_.spec().containers(0));
  EXPECT_EQ(Plan(), "");
  probes_.results_[{ProbeKind::kLiveness, "a-id"}] = false;
  EXPECT_EQ(Plan(), "kill:a start:a");
  pod_.mutable_spec()->set_restart_policy("Never");
  EXPECT_EQ(Plan(), "kill:a");
  probes_.results_.clear();
  pod_.mutable_spec()->mutable_containers(0)->set_image("y");
  EXPECT_EQ(Plan(), "kill:a start:a");
}

TEST_F(ActionsTest, DebugContainersStartOnce) {
  Pod(R"({"containers":[{"name":"a"}],"ephemeralContainers":[{"name":"d"}]})");
  Sandbox(true);
  Container("a", ContainerState::kRunning);
  EXPECT_EQ(Plan(), "debug:d");
  Container("d", ContainerState::kExited);
  EXPECT_EQ(Plan(), "");
}

TEST_F(ActionsTest, RestartRulesOfAContainer) {
  struct Case {
    const char *container, *pod_policy;
    int exit_code;
    const char* plan;
  };
  const char* in42 = R"("restartPolicy":"Never","restartPolicyRules":[{"action":"Restart",
      "exitCodes":{"operator":"In","values":[42]}}])";
  const char* not_in = R"("restartPolicy":"Never","restartPolicyRules":[{"action":"Restart",
      "exitCodes":{"operator":"NotIn","values":[0,1]}}])";
  const char* all = R"("restartPolicy":"Never","restartPolicyRules":[{"action":"RestartAllContainers",
      "exitCodes":{"operator":"In","values":[42]}}])";
  for (const Case& c : {Case{in42, "Never", 42, "start:main"},
                        {in42, "Always", 1, "kill-pod"},
                        {not_in, "Never", 3, "start:main"},
                        {not_in, "Never", 1, "kill-pod"},
                        {R"("restartPolicy":"OnFailure")", "Never", 1, "start:main"},
                        {R"("restartPolicy":"Never")", "Always", 1, "kill-pod"},
                        {R"("restartPolicy":"Always")", "Never", 0, "start:main"},
                        {all, "Never", 42, "restart-all"},
                        {all, "Never", 41, "kill-pod"}}) {
    status_ = {};
    pod_.Clear();
    Pod(std::string(R"({"restartPolicy":")") + c.pod_policy + R"(","containers":[{"name":"main",)" +
        c.container + "}]}");
    Sandbox(true);
    Container("main", ContainerState::kExited, c.exit_code);
    EXPECT_EQ(Plan(), c.plan) << c.container << " " << c.exit_code;
  }
}

TEST_F(ActionsTest, RestartPolicyOfAnInitContainer) {
  Pod(R"({"restartPolicy":"Never","initContainers":[{"name":"init","restartPolicy":"OnFailure"}],
          "containers":[{"name":"main"}]})");
  Sandbox(true);
  Container("init", ContainerState::kExited, 1);
  EXPECT_EQ(Plan(), "start:init");
}

}  // namespace
}  // namespace keelson::kubelet
