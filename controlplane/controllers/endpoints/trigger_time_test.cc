#include "controlplane/controllers/endpoints/trigger_time.h"

#include <gtest/gtest.h>

#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using std::chrono::seconds;

WallTime At(int second) { return WallTime(seconds(1'800'000'000 + second)); }

corev1::Service ServiceMadeAt(int second) {
  corev1::Service service;
  service.mutable_metadata()->set_name("web");
  service.mutable_metadata()->set_namespace_("default");
  *service.mutable_metadata()->mutable_creation_timestamp() = api::ToTime(At(second));
  return service;
}

EndpointPodPointer Pod(const std::string& name, std::optional<int> ready_changed) {
  auto pod = std::make_shared<EndpointPod>();
  pod->name = name;
  if (ready_changed) pod->ready_changed = At(*ready_changed);
  return pod;
}

TEST(TriggerTimesTest, TheEarliestOfWhatHasChanged) {
  TriggerTimes times;
  const struct {
    const char* what;
    int service;
    std::vector<EndpointPodPointer> pods;
    std::optional<int> expected;
  } steps[] = {
      {"a new Service: its creation", 10, {Pod("a", 20)}, 10},
      {"nothing has changed", 10, {Pod("a", 20)}, std::nullopt},
      {"a pod has", 10, {Pod("a", 30)}, 30},
      {"two pods have", 10, {Pod("a", 50), Pod("b", 40)}, 40},
      {"one of two has", 10, {Pod("a", 50), Pod("b", 60)}, 60},
      {"a pod that was never ready has no time",
       10,
       {Pod("a", 50), Pod("b", 60), Pod("c", {})},
       std::nullopt},
      {"a pod has gone", 10, {Pod("b", 60)}, std::nullopt},
      {"a pod of the same name as one long gone", 10, {Pod("a", 70), Pod("b", 60)}, 70},
      {"the Service was made anew", 80, {Pod("a", 70), Pod("b", 90)}, 80},
  };
  for (const auto& step : steps) {
    const auto next = times.Next(ServiceMadeAt(step.service), step.pods);
    EXPECT_EQ(next, step.expected ? std::optional(At(*step.expected)) : std::nullopt) << step.what;
  }
  times.Forget("default/web");
  EXPECT_EQ(times.Next(ServiceMadeAt(80), {Pod("a", 70)}), At(80)) << "as if it were new";
}

TEST(TriggerTimesTest, Annotation) {
  metav1::ObjectMeta meta;
  SetTriggerTime(At(0), meta);
  EXPECT_EQ(meta.annotations().at(kTriggerTime), "2027-01-15T08:00:00Z");
  SetTriggerTime(std::nullopt, meta);
  EXPECT_TRUE(meta.annotations().empty());
}

}  // namespace
}  // namespace keelson::controllers
