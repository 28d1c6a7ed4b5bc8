#include "kubelet/node/node_manager.h"
#include "kubelet/node/oom_watcher.h"
#include "kubelet/node/registration.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "kubelet/testing/metric_value.h"
#include "lib/client/testing/fake_api.h"
#include "lib/k8s/pods/pod_util.h"

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

TEST(StartupTimes, AreOfNodesThatWereNotThere) {
  const std::string startup = "kubelet_node_startup_";
  auto of = [&](const char* part) { return MetricValue(startup + part + "duration_seconds"); };
  FakeClock clock;
  StartupTimes times(clock);
  clock.Advance(std::chrono::seconds(3));
  times.Registering();
  clock.Advance(std::chrono::seconds(5));
  times.Registering();
  times.Registered();
  clock.Advance(std::chrono::seconds(7));
  times.Ready();
  clock.Advance(std::chrono::seconds(9));
  times.Ready();
  const double before = of("pre_kubelet_");
  EXPECT_GT(before, 0);
  EXPECT_EQ(of("pre_registration_"), 3);
  EXPECT_EQ(of("registration_"), 5);
  EXPECT_EQ(of("post_registration_"), 7);
  EXPECT_NEAR(of(""), before + 15, 1e-3);
  StartupTimes again(clock);
  again.Registering();
  clock.Advance(std::chrono::seconds(1));
  again.Ready();
  EXPECT_EQ(of("post_registration_"), 7) << "it was registered by a kubelet before this one";
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
    for (const std::string& record : c.records) {
      if (auto found = parser.Feed(record)) kill = found;
    }
    ASSERT_TRUE(kill) << c.process;
    EXPECT_EQ(kill->process, c.process);
    EXPECT_EQ(kill->cgroup, c.cgroup);
    EXPECT_EQ(kill->pid, c.pid);
  }
  EXPECT_FALSE(OomParser().Feed("6,1,1,-;eth0: link up"));
}

const api::Amount kOne = api::Amount::FromInt(1);

Machine SmallMachine() {
  Machine machine;
  machine.memory_bytes = 1 << 30;
  machine.boot_id = "now";
  machine.huge_pages = {{"2Mi", 0}};
  return machine;
}

TEST(NodeStatus, ResourcesOfOthersStayAndCanBeHad) {
  NodeOptions options;
  options.ips = {"10.0.0.1"};
  corev1::NodeStatus status;
  auto& capacity = *status.mutable_capacity();
  auto& allocatable = *status.mutable_allocatable();
  capacity["example.com/dongle"] = capacity["hugepages-1Gi"] = kOne.ToQuantity();
  allocatable["example.com/gone"] = allocatable["hugepages-1Gi"] = kOne.ToQuantity();
  NodeFacts facts = FactsWithNetwork(true);
  facts.extended["example.com/gpu"] = {3, 2};
  const corev1::NodeStatus before = status;
  FillNodeStatus(options, SmallMachine(), facts, {}, status);
  const k8s::ResourceList all = k8s::ToResourceList(status.capacity()),
                          pods = k8s::ToResourceList(status.allocatable());
  EXPECT_EQ(k8s::AmountOf(pods, "example.com/dongle").Value(), 1);
  EXPECT_EQ(k8s::AmountOf(all, "example.com/gpu").Value(), 3);
  EXPECT_EQ(k8s::AmountOf(pods, "example.com/gpu").Value(), 2);
  EXPECT_EQ(all.count("hugepages-1Gi") + pods.count("hugepages-1Gi") + pods.count("example.com/gone"), 0u);
  const std::string patch = NodeStatusPatch(before, status, true).value_or("");
  EXPECT_NE(patch.find(R"("hugepages-1Gi":null)"), std::string::npos) << patch;
  EXPECT_NE(patch.find(R"("example.com/gone":null)"), std::string::npos) << patch;
  EXPECT_FALSE(NodeStatusPatch(status, status, true));
}

TEST(NodeStatus, TellsOfTheRuntimeSwapAndVolumes) {
  NodeOptions options;
  NodeFacts facts = FactsWithNetwork(true);
  corev1::NodeStatus status;
  FillNodeStatus(options, SmallMachine(), facts, {}, status);
  EXPECT_FALSE(status.has_features() || status.node_info().has_swap());
  facts.runtime->handlers = {{"runc", true, false}};
  facts.volumes_in_use = {"a", "b"};
  options.declared_features = {"A", "B"};
  Machine machine = SmallMachine();
  machine.swap_bytes = 5;
  FillNodeStatus(options, machine, facts, {}, status);
  ASSERT_EQ(status.runtime_handlers_size(), 1);
  EXPECT_TRUE(status.runtime_handlers(0).features().recursive_read_only_mounts());
  ASSERT_TRUE(status.features().has_supplemental_groups_policy());
  EXPECT_FALSE(status.features().supplemental_groups_policy());
  EXPECT_EQ(status.node_info().swap().capacity(), 5);
  EXPECT_EQ(status.volumes_in_use_size(), 2);
  ASSERT_EQ(status.declared_features_size(), 2);
  EXPECT_EQ(status.declared_features(1), "B");
  const corev1::NodeStatus before = status;
  facts.volumes_in_use.clear();
  FillNodeStatus(options, machine, facts, {}, status);
  EXPECT_NE(NodeStatusPatch(before, status, false).value_or("").find(R"("volumesInUse":null)"),
            std::string::npos);
}

TEST(NodeStatus, AddressesAreTheCloudsOnceItHasToldThem) {
  const struct {
    const char* what;
    bool cloud, given, told;
    const char* problem;
    int count;
  } kCases[] = {{"no cloud", false, false, true, nullptr, 2},
                {"not of the machine", false, true, true, "not found", 1},
                {"the cloud has told", true, true, true, nullptr, 1},
                {"the cloud has not told", true, true, false, nullptr, 2},
                {"nothing is known", true, false, false, nullptr, 0}};
  for (const auto& test : kCases) {
    NodeOptions options;
    options.ips = {"10.0.0.1"};
    options.external_cloud = test.cloud;
    options.ips_given = test.given;
    NodeFacts facts = FactsWithNetwork(true);
    if (test.problem) facts.address_problem = test.problem;
    corev1::NodeStatus status;
    if (test.told) status.add_addresses()->set_type("ExternalIP");
    FillNodeStatus(options, SmallMachine(), facts, {}, status);
    EXPECT_EQ(status.addresses_size(), test.count) << test.what;
  }
}

TEST(Registration, PutsRightWhatIsTheKubelets) {
  NodeOptions options;
  options.name = "node1";
  options.labels = {{"kubernetes.io/os", "linux"}, {"pool", "a"}};
  options.ips = {"10.0.0.1", "fd00::1"};
  options.ips_given = options.external_cloud = true;
  const corev1::Node fresh = NewNode(options);
  EXPECT_EQ(fresh.metadata().annotations().at("alpha.kubernetes.io/provided-node-ip"), "10.0.0.1,fd00::1");
  EXPECT_FALSE(RegistrationPatch(options, fresh)) << "nothing differs";
  options.external_cloud = options.controller_attach = false;
  options.labels["kubernetes.io/os"] = "other";
  EXPECT_EQ(RegistrationPatch(options, fresh).value_or(""),
            R"({"metadata":{"labels":{"kubernetes.io/os":"other"},)"
            R"("annotations":{"alpha.kubernetes.io/provided-node-ip":null,)"
            R"("volumes.kubernetes.io/controller-managed-attach-detach":null}}})");
  corev1::Node there = fresh;
  (*there.mutable_status()->mutable_capacity())["example.com/gpu"] = kOne.ToQuantity();
  (*there.mutable_status()->mutable_capacity())["cpu"] = kOne.ToQuantity();
  EXPECT_FALSE(ResetPatch(options, there)) << "devices are known of";
  options.reset_extended = true;
  EXPECT_EQ(ResetPatch(options, there).value_or(""),
            R"({"status":{"capacity":{"example.com/gpu":"0"},"allocatable":{"example.com/gpu":"0"}}})");
}

TEST(NodeEvents, TellOfChanges) {
  NodeOptions options;
  corev1::NodeStatus none, unready, ready;
  FillNodeStatus(options, SmallMachine(), FactsWithNetwork(false), {}, unready);
  Machine rebooted = SmallMachine();
  rebooted.boot_id = "later";
  NodeFacts pressed = FactsWithNetwork(true);
  pressed.memory_pressure = true;
  FillNodeStatus(options, rebooted, pressed, {}, ready);
  auto reasons = [](const std::vector<NodeEvent>& events) {
    std::string out;
    for (const NodeEvent& event : events) out += event.reason + " ";
    return out;
  };
  EXPECT_EQ(reasons(EventsOfChange("n", none, unready)),
            "NodeHasSufficientMemory NodeHasNoDiskPressure NodeHasSufficientPID ");
  const auto events = EventsOfChange("n", unready, ready);
  EXPECT_EQ(reasons(events), "Rebooted NodeHasInsufficientMemory NodeReady ");
  EXPECT_EQ(events[0].message, "Node n has been rebooted, boot id: later");
  EXPECT_EQ(events[2].message, "Node n status is now: NodeReady");
  EXPECT_TRUE(EventsOfChange("n", ready, ready).empty());
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
