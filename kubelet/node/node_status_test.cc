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

}  // namespace
}  // namespace keelson::kubelet
