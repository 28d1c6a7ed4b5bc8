// Fixture for tests of the autoscaler: scripted metrics and scales, and pods.
#pragma once

#include <gtest/gtest.h>

#include <climits>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/controllers/podautoscaler/controller.h"
#include "controlplane/controllers/testing/cluster.h"

namespace keelson::controllers {

// Scripted metric values.
struct SaidMetrics {
  std::map<std::string, podautoscaler::PodValues> by_name;  // for resource and pods metrics
  std::map<std::string, int64_t> values;                    // for object and external metrics
  std::vector<std::string> asked;
};

class AutoscalerTest : public testing::Test {
 protected:
  using Autoscaler = PodAutoscalerController::Autoscaler;

  // FakeApi has no scale subresource, so the fixture serves it from `scales_`.
  void SetUp() override;
  std::optional<Result<client::ApiResponse>> Intercept(const client::ApiRequest& request);

  void AddScale(const std::string& name, int32_t replicas, std::optional<std::string> selector = {});
  // Sets the target's pods, with CPU usage in millicores; each requests one core.
  void SetPods(const std::string& name, const std::vector<int64_t>& used);
  void Put(const std::string& name, const std::string& spec);
  static std::string Spec(const std::string& target, const std::string& metrics,
                          const std::string& more = "");
  static std::string Cpu(int percent);
  void Start();
  void NextPeriod() { cluster_.Advance(options_.sync_period, {controller_}); }
  Autoscaler Get(const std::string& name = "hpa") { return cluster_.Get<Autoscaler>("default", name); }
  // "type=status reason: message" for each condition
  static std::vector<std::string> Conditions(const Autoscaler& autoscaler);
  int32_t Replicas(const std::string& name = "web") { return scales_[name].spec().replicas(); }

  PodAutoscalerOptions options_;
  SaidMetrics said_;
  std::map<std::string, autoscalingv1::Scale> scales_;
  std::optional<Error> refuse_put_;
  int refusals_left_ = INT_MAX;
  std::function<void()> on_refusal_ = [] {};
  int puts_ = 0;
  TestCluster cluster_;
  PodAutoscalerController* controller_ = nullptr;
};

}  // namespace keelson::controllers
