#include "lib/client/events.h"

#include <thread>

#include <gtest/gtest.h>

#include "lib/client/event_correlator.h"
#include "lib/client/testing/fake_api.h"

namespace keelson::client {
namespace {

using namespace std::chrono_literals;

corev1::ObjectReference PodReference(const std::string& name = "web") {
  corev1::ObjectReference reference;
  reference.set_kind("Pod");
  reference.set_api_version("v1");
  reference.set_namespace_("default");
  reference.set_name(name);
  reference.set_uid("uid-" + name);
  return reference;
}

const WallTime kNow{std::chrono::seconds(1767225600)};

TEST(EventCorrelatorTest, SameEventIsCounted) {
  EventCorrelator correlator("kubelet", "n1");
  auto first = correlator.Correlate(PodReference(), "Normal", "Pulled", "image pulled", kNow);
  auto second = correlator.Correlate(PodReference(), "Normal", "Pulled", "image pulled", kNow + 5s);
  auto other = correlator.Correlate(PodReference(), "Normal", "Started", "started", kNow + 5s);
  ASSERT_TRUE(first && second && other);
  EXPECT_EQ(first->event.count(), 1);
  EXPECT_EQ(second->event.count(), 2);
  EXPECT_EQ(second->event.metadata().name(), first->event.metadata().name());
  EXPECT_EQ(second->event.first_timestamp().seconds(), first->event.first_timestamp().seconds());
  EXPECT_EQ(second->event.last_timestamp().seconds(), first->event.last_timestamp().seconds() + 5);
  EXPECT_EQ(other->event.count(), 1);
  EXPECT_NE(other->event.metadata().name(), first->event.metadata().name());
  EXPECT_EQ(first->event.source().component(), "kubelet");
  EXPECT_EQ(first->event.source().host(), "n1");
}

TEST(EventCorrelatorTest, EverNewMessagesAreFolded) {
  EventCorrelator correlator("scheduler", "");
  std::set<std::string> names;
  std::string last;
  for (int i = 0; i < 20; ++i) {
    auto outcome =
        correlator.Correlate(PodReference(), "Warning", "Failed", "try " + std::to_string(i), kNow);
    ASSERT_TRUE(outcome);
    names.insert(outcome->event.metadata().name());
    last = outcome->event.message();
  }
  EXPECT_EQ(names.size(), 10u);
  EXPECT_EQ(last, "(combined from similar events): try 19");
}

TEST(EventCorrelatorTest, FloodIsDroppedObjectByObject) {
  EventCorrelator correlator("scheduler", "");
  int sent = 0;
  for (int i = 0; i < 100; ++i) {
    sent += correlator.Correlate(PodReference(), "Normal", "R", "m", kNow).has_value();
  }
  EXPECT_EQ(sent, 25);
  EXPECT_TRUE(correlator.Correlate(PodReference("other"), "Normal", "R", "m", kNow));
  EXPECT_FALSE(correlator.Correlate(PodReference(), "Normal", "R", "m", kNow + 299s));
  EXPECT_TRUE(correlator.Correlate(PodReference(), "Normal", "R", "m", kNow + 301s));
  // The parts of an object share one rate limit, and a clock that is set back removes no tokens.
  corev1::ObjectReference part = PodReference();
  part.set_field_path("spec.containers{main}");
  EXPECT_FALSE(correlator.Correlate(part, "Normal", "R", "m", kNow + 301s));
  EXPECT_FALSE(correlator.Correlate(part, "Normal", "R", "m", kNow - 24h));
  EXPECT_TRUE(correlator.Correlate(part, "Normal", "R", "m", kNow - 24h + 301s));
}

class EventRecorderTest : public ::testing::Test {
 protected:
  // Waits until `count` events with the reason have been written (created or patched).
  void AwaitWrites(size_t count) {
    MutexLock lock(mutex_);
    while (writes_ < count) written_.wait(mutex_);
  }
  void SetUp() override {
    fake_->SetInterceptor([this](const ApiRequest& request) -> std::optional<Result<ApiResponse>> {
      if (request.method == "GET") return std::nullopt;
      MutexLock lock(mutex_);
      ++writes_;
      written_.notify_all();
      return std::nullopt;
    });
  }
  FakeClock clock_;
  std::shared_ptr<FakeApi> fake_ = std::make_shared<FakeApi>(clock_);
  RestClient api_{fake_};
  EventRecorder recorder_{api_, "deployment-controller", "", clock_};
  Mutex mutex_;
  CondVar written_;
  size_t writes_ = 0;
};

TEST_F(EventRecorderTest, CreatesThenCounts) {
  corev1::Pod pod;
  pod.mutable_metadata()->set_name("web");
  pod.mutable_metadata()->set_namespace_("default");
  pod.mutable_metadata()->set_uid("u");
  {
    std::jthread runner([&](std::stop_token stop) { recorder_.Run(stop); });
    recorder_.Record(pod, "Normal", "Scheduled", "to \"n1\"");
    recorder_.Record(pod, "Normal", "Scheduled", "to \"n1\"");
    recorder_.Record(pod, "Normal", "Scheduled", "to \"n1\"");
    recorder_.Record(pod, "Warning", "Failed", "no");  // once it is written, the patches are done
    AwaitWrites(4);
  }
  auto events = api_.List<corev1::Event>("default");
  ASSERT_TRUE(events) << events.error().message();
  ASSERT_GE(events->size(), 1u);
  const corev1::Event* scheduled = nullptr;
  for (const auto& event : *events) {
    if (event.reason() == "Scheduled") scheduled = &event;
  }
  ASSERT_TRUE(scheduled);
  EXPECT_EQ(scheduled->count(), 3);
  EXPECT_EQ(scheduled->message(), "to \"n1\"");
  EXPECT_EQ(scheduled->involved_object().kind(), "Pod");
  EXPECT_EQ(scheduled->involved_object().uid(), "u");
  EXPECT_EQ(scheduled->source().component(), "deployment-controller");
}

TEST_F(EventRecorderTest, StartsAgainWhenTheServerForgot) {
  corev1::ObjectReference node;
  node.set_kind("Node");
  node.set_name("n1");
  std::jthread runner([&](std::stop_token stop) { recorder_.Run(stop); });
  recorder_.Record(node, "Normal", "NodeReady", "ready");
  AwaitWrites(1);
  recorder_.Record(node, "Normal", "Flush", "first is stored");
  AwaitWrites(2);
  auto events = api_.List<corev1::Event>("default");
  ASSERT_TRUE(events);
  for (const auto& event : *events) {
    if (event.reason() == "NodeReady") {
      ASSERT_TRUE(api_.Delete<corev1::Event>("default", event.metadata().name()));
    }
  }
  recorder_.Record(node, "Normal", "NodeReady", "ready");
  AwaitWrites(5);  // the delete, a patch that finds nothing, a create
  recorder_.Record(node, "Normal", "Flush", "second is stored");
  AwaitWrites(6);
  runner = std::jthread();
  events = api_.List<corev1::Event>("default", {.field_selector = "reason=NodeReady"});
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ(events->front().count(), 1);
}

TEST_F(EventRecorderTest, AFloodLeavesRoomForWarnings) {
  EventRecorder small(api_, "kubelet", "n1", clock_);  // for a component on a node
  for (int i = 0; i < 1010; ++i) {
    small.Record(PodReference("p" + std::to_string(i)), "Normal", "Scheduled", "assigned");
  }
  for (int i = 0; i < 110; ++i) {
    small.Record(PodReference("p" + std::to_string(i)), "Warning", "FailedScheduling", "no node");
  }
  std::jthread runner([&](std::stop_token stop) { small.Run(stop); });
  AwaitWrites(1100);
  small.Record(PodReference("late"), "Normal", "Scheduled", "there is room again");
  AwaitWrites(1101);
  small.Record(PodReference("last"), "Normal", "Flush", "the one before is stored");
  AwaitWrites(1102);
  runner = std::jthread();
  auto warnings = api_.List<corev1::Event>("default", {.field_selector = "type=Warning"});
  ASSERT_TRUE(warnings);
  EXPECT_EQ(warnings->size(), 100u);
  auto scheduled = api_.List<corev1::Event>("default", {.field_selector = "reason=Scheduled"});
  ASSERT_TRUE(scheduled);
  EXPECT_EQ(scheduled->size(), 1001u);
}

}  // namespace
}  // namespace keelson::client
