#include "kubelet/node/node_status.h"
#include "kubelet/node/oom_watcher.h"

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

TEST(Oom, KillsAreReadFromTheKernelsLog) {
  struct Case {
    std::vector<std::string> records;
    std::string process, cgroup;
    int pid;
  };
  for (const Case& c : {
           Case{{"4,1,1,-;stress invoked oom-killer: gfp_mask=0x100cca",
                 "6,2,1,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,"
                 "global_oom,task_memcg=/kubepods/pod1/a,task=stress,pid=77,uid=0",
                 "3,3,1,-;Out of memory: Killed process 77 (stress) total-vm:1kB, anon-rss:1kB\n"},
                "stress",
                "/",
                77},
           {{"6,2,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,"
             "oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1/a,task=dd,pid=5,uid=0",
             "3,3,1,-;Memory cgroup out of memory: Killed process 5 (dd) total-vm:1kB\n"},
            "dd",
            "/kubepods/pod1",
            5},
           {{"3,3,1,-;Out of memory: Killed process 9 (a b) total-vm:1kB\n"}, "a b", "/", 9},
       }) {
    OomParser parser;
    std::optional<OomKill> kill;
    for (const std::string& record : c.records)
      if (auto found = parser.Feed(record)) kill = found;
    ASSERT_TRUE(kill) << c.process;
    EXPECT_EQ(kill->process, c.process);
    EXPECT_EQ(kill->cgroup, c.cgroup);
    EXPECT_EQ(kill->pid, c.pid);
  }
  EXPECT_FALSE(OomParser().Feed("6,1,1,-;eth0: link up"));
}

TEST(Machine, ReservesAndSetsAside) {
  Machine machine;
  machine.cpus = 4;
  machine.memory_bytes = int64_t{8} << 30;
  machine.ephemeral_bytes = int64_t{100} << 30;
  machine.huge_pages = {{"2Mi", int64_t{1} << 30}, {"1Gi", 0}};
  Reservations reservations;
  reservations.system = {{"cpu", "500m"}, {"memory", "1Gi"}};
  reservations.kube = {{"memory", "512Mi"}};
  reservations.eviction_hard = {{"memory.available", "512Mi"}, {"nodefs.available", "10%"}};
  const k8s::ResourceList capacity = CapacityOf(machine, reservations);
  const k8s::ResourceList pods = AllocatableOf(machine, reservations);
  EXPECT_EQ(k8s::AmountOf(capacity, "memory").Value(), int64_t{8} << 30);
  EXPECT_EQ(k8s::AmountOf(capacity, "hugepages-2Mi").Value(), int64_t{1} << 30);
  EXPECT_EQ(k8s::AmountOf(pods, "cpu").MilliValue(), 3500);
  EXPECT_EQ(k8s::AmountOf(pods, "memory").Value(), int64_t{5} << 30);
  EXPECT_EQ(k8s::AmountOf(pods, "ephemeral-storage").Value(), int64_t{90} << 30);
}

}  // namespace
}  // namespace keelson::kubelet
