#include "kubelet/status/readiness.h"

#include <gtest/gtest.h>

#include <map>

#include "lib/api/codec/codec.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {
namespace {

constexpr char kSpec[] = R"({"spec":{
    "initContainers":[{"name":"init","readinessProbe":{}},
                      {"name":"side","restartPolicy":"Always","startupProbe":{}}],
    "containers":[{"name":"plain"},{"name":"probed","readinessProbe":{}},
                  {"name":"slow","startupProbe":{},"readinessProbe":{}}]}})";

class Results : public ProbeResults {
 public:
  std::optional<bool> Get(ProbeKind kind, const std::string& id) const override {
    auto it = found.find({kind, id});
    return it == found.end() ? std::nullopt : std::optional<bool>(it->second);
  }
  std::map<std::pair<ProbeKind, std::string>, bool> found;
};

class ReadinessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(api::DecodeJson(kSpec, pod_));
    status_.set_phase("Running");
    status_.set_observed_generation(7);
    auto& init = *status_.add_init_container_statuses();
    init.set_name("init");
    init.set_ready(true);
    init.mutable_state()->mutable_terminated()->set_exit_code(0);
    Add(*status_.add_init_container_statuses(), "side");
    for (const char* name : {"plain", "probed", "slow"}) Add(*status_.add_container_statuses(), name);
    results_.found = {{{ProbeKind::kStartup, "side-id"}, true},
                      {{ProbeKind::kReadiness, "probed-id"}, true},
                      {{ProbeKind::kStartup, "slow-id"}, true},
                      {{ProbeKind::kReadiness, "slow-id"}, true}};
    ASSERT_TRUE(Update());
    ASSERT_EQ(Condition(k8s::kPodReady), "True");
  }
  static void Add(corev1::ContainerStatus& status, const std::string& name) {
    status.set_name(name);
    status.set_container_id("containerd://" + name + "-id");
    status.mutable_state()->mutable_running();
  }
  bool Update() { return UpdateReadiness(pod_.spec(), results_, WallTime(), status_); }
  std::string Condition(std::string_view type) {
    const auto* condition = k8s::FindCondition(status_, type);
    return !condition                    ? "none"
           : condition->reason().empty() ? condition->status()
                                         : condition->status() + " " + condition->reason();
  }
  // "started ready" of each container in the report.
  std::string Told() {
    std::string out;
    for (const auto* list : {&status_.init_container_statuses(), &status_.container_statuses()}) {
      for (const auto& container : *list) {
        out += container.name() + (container.started() ? "+" : "-") + (container.ready() ? "+ " : "- ");
      }
    }
    return out;
  }

  corev1::Pod pod_;
  corev1::PodStatus status_;
  Results results_;
};

TEST_F(ReadinessTest, EachResultShowsInItsContainerAndThePod) {
  struct Case {
    ProbeKind kind;
    const char* id;
    bool result;
    const char* told;
    const char* unready;  // in the conditions' message
  };
  for (const Case& c : {
           Case{ProbeKind::kReadiness, "probed-id", false, "init-+ side++ plain++ probed+- slow++ ",
                "probed"},
           {ProbeKind::kReadiness, "slow-id", false, "init-+ side++ plain++ probed++ slow+- ", "slow"},
           {ProbeKind::kStartup, "slow-id", false, "init-+ side++ plain++ probed++ slow-- ", "slow"},
           {ProbeKind::kStartup, "side-id", false, "init-+ side-- plain++ probed++ slow++ ", "side"},
       }) {
    SCOPED_TRACE(c.told);
    const Results before = results_;
    results_.found[{c.kind, c.id}] = c.result;
    EXPECT_TRUE(Update());
    EXPECT_EQ(Told(), c.told);
    for (std::string_view type : {k8s::kContainersReady, k8s::kPodReady}) {
      EXPECT_EQ(Condition(type), "False ContainersNotReady");
      const auto* condition = k8s::FindCondition(status_, type);
      EXPECT_EQ(condition->message(), std::string("containers with unready status: [") + c.unready + "]");
      EXPECT_EQ(condition->observed_generation(), 7);
    }
    EXPECT_FALSE(Update()) << "told already";
    results_ = before;
    EXPECT_TRUE(Update());
    EXPECT_EQ(Told(), "init-+ side++ plain++ probed++ slow++ ");
    EXPECT_EQ(Condition(k8s::kPodReady), "True");
  }
}

TEST_F(ReadinessTest, WhatDoesNotRunIsLeftToWhoLooksAtTheRuntime) {
  auto& probed = *status_.mutable_container_statuses(1);
  probed.clear_ready();
  probed.mutable_state()->clear_running();
  probed.mutable_state()->mutable_waiting()->set_reason("CrashLoopBackOff");
  EXPECT_FALSE(Update());
  // Another run's result says nothing of this one.
  probed.mutable_state()->clear_waiting();
  probed.mutable_state()->mutable_running();
  probed.set_container_id("containerd://next-id");
  EXPECT_FALSE(Update());
  EXPECT_EQ(Told(), "init-+ side++ plain++ probed+- slow++ ");
}

TEST_F(ReadinessTest, OthersGatesHoldThePodOnly) {
  pod_.mutable_spec()->add_readiness_gates()->set_condition_type("x/y");
  results_.found[{ProbeKind::kReadiness, "probed-id"}] = false;
  EXPECT_TRUE(Update());
  results_.found[{ProbeKind::kReadiness, "probed-id"}] = true;
  EXPECT_TRUE(Update());
  EXPECT_EQ(Condition(k8s::kContainersReady), "True");
  EXPECT_EQ(Condition(k8s::kPodReady), "False ReadinessGatesNotReady");
}

TEST_F(ReadinessTest, AnEndIsAnEnd) {
  status_.set_phase("Failed");
  results_.found.clear();
  EXPECT_FALSE(Update());
  EXPECT_EQ(Condition(k8s::kPodReady), "True") << "whatever was told with the end";
}

}  // namespace
}  // namespace keelson::kubelet
