#include "kubelet/node/node_status.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "lib/client/fake_api.h"
#include "lib/k8s/pod_util.h"

namespace keelson::kubelet {
namespace {

NodeFacts FactsWithNetwork(bool ready) {
  NodeFacts facts;
  facts.runtime->conditions = {{"RuntimeReady", true, "", ""}, {"NetworkReady", ready, "", ""}};
  return facts;
}

// Reads events until the node's Ready condition has this status.
void AwaitStatus(client::WatchStream& stream, const std::string& wanted) {
  while (true) {
    Result<client::WatchEvent> event = stream.Next(std::stop_token());
    ASSERT_TRUE(event) << event.error().message();
    corev1::Node node;
    ASSERT_TRUE(client::RestClient::DecodeInto(event->raw, node));
    const corev1::NodeCondition* ready = k8s::FindCondition(node.status(), "Ready");
    if (ready && ready->status() == wanted) return;
  }
}

// The CNI configuration comes after the kubelet: from an agent that needs the Node object first.
TEST(NodeManagerTest, ReadinessOfAStartingNodeIsToldAtOnce) {
  client::RestClient api(std::make_shared<client::FakeApi>());
  NodeOptions options;
  options.name = "node1";
  options.update_frequency = std::chrono::hours(1);
  FakeClock clock;
  std::atomic<bool> network = false;
  NodeManager manager(
      api, options, [&](std::stop_token) { return FactsWithNetwork(network); }, clock);
  auto stream = api.Watch(api::ResourceOf<corev1::Node>(), "", {});
  ASSERT_TRUE(stream) << stream.error().message();
  std::jthread thread([&](std::stop_token stop) { EXPECT_TRUE(manager.RunStatus(stop, [] {})); });

  AwaitStatus(**stream, "False");
  clock.AwaitWaiters(1);
  network = true;
  clock.Advance(std::chrono::seconds(1));
  AwaitStatus(**stream, "True");

  // From then on the usual pace is kept, so that a node that flaps costs no more than another.
  clock.AwaitWaiters(1);
  network = false;
  clock.Advance(std::chrono::minutes(59));
  clock.AwaitWaiters(1);
  auto node = api.Get<corev1::Node>("", "node1");
  ASSERT_TRUE(node) << node.error().message();
  EXPECT_TRUE(k8s::IsReady(*node));
  clock.Advance(std::chrono::minutes(1));
  AwaitStatus(**stream, "False");
}

TEST(NodeManagerTest, AShutdownIsToldAtOnce) {
  client::RestClient api(std::make_shared<client::FakeApi>());
  NodeOptions options;
  options.name = "node1";
  options.update_frequency = std::chrono::hours(1);
  FakeClock clock;
  std::atomic<bool> ending = false;
  NodeManager manager(
      api, options,
      [&](std::stop_token) {
        NodeFacts facts = FactsWithNetwork(true);
        facts.shutting_down = ending;
        return facts;
      },
      clock);
  auto stream = api.Watch(api::ResourceOf<corev1::Node>(), "", {});
  ASSERT_TRUE(stream) << stream.error().message();
  std::jthread thread([&](std::stop_token stop) { EXPECT_TRUE(manager.RunStatus(stop, [] {})); });
  AwaitStatus(**stream, "True");
  clock.AwaitWaiters(1);
  ending = true;
  manager.UpdateNow();
  AwaitStatus(**stream, "False");
  auto node = api.Get<corev1::Node>("", "node1");
  ASSERT_TRUE(node);
  const corev1::NodeCondition* ready = k8s::FindCondition(node->status(), "Ready");
  EXPECT_EQ(ready->reason(), "KubeletNotReady");
  EXPECT_EQ(ready->message(), "node is shutting down");
}

TEST(NodeManagerTest, ANodeThatIsThereKeepsWhatOthersChanged) {
  client::RestClient api(std::make_shared<client::FakeApi>());
  corev1::Node there;
  there.mutable_metadata()->set_name("node1");
  (*there.mutable_metadata()->mutable_labels())["kubernetes.io/hostname"] = "old";
  ASSERT_TRUE(api.Create(there));
  NodeOptions options;
  options.name = "node1";
  options.labels = {{"kubernetes.io/hostname", "node1"}, {"pool", "taken away since"}};
  FakeClock clock;
  NodeManager manager(
      api, options, [&](std::stop_token) { return FactsWithNetwork(true); }, clock);
  std::stop_source stop;
  ASSERT_TRUE(manager.RunStatus(stop.get_token(), [&] { stop.request_stop(); }));
  auto node = api.Get<corev1::Node>("", "node1");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->metadata().labels().at("kubernetes.io/hostname"), "node1");
  EXPECT_EQ(node->metadata().labels().count("pool"), 0u);
  EXPECT_EQ(node->metadata().annotations().at("volumes.kubernetes.io/controller-managed-attach-detach"),
            "true");
}

}  // namespace
}  // namespace keelson::kubelet
