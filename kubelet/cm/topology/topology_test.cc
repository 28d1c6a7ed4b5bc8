#include <gtest/gtest.h>

#include <filesystem>

#include "kubelet/cm/topology/testing/fake_machine.h"
#include "kubelet/cm/topology/topology_manager.h"
#include "kubelet/testing/metric_value.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

TEST(CpuSet, ListsOfTheKernel) {
  const struct {
    const char* text;
    const char* printed;  // null: refused
  } kCases[] = {{"", ""},        {"0", "0"},         {"0-3,7\n", "0-3,7"}, {"7,0-2,1", "0-2,7"},
                {"3-3", "3"},    {"1,2,4", "1-2,4"}, {"3-1", nullptr},     {"a", nullptr},
                {"1,", nullptr}, {"-1", nullptr},    {"1-", nullptr},      {"99999999", nullptr}};
  for (const auto& test : kCases) {
    auto cpus = CpuSet::Parse(test.text);
    ASSERT_EQ(cpus.has_value(), test.printed != nullptr) << test.text;
    EXPECT_EQ(cpus ? cpus->Format() : "", test.printed ? test.printed : "");
  }
}

class SysfsTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/keelson-sysfs-XXXXXX";
    root_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Put(const std::string& path, const std::string& text) {
    std::string file = root_ + "/" + path;
    ASSERT_TRUE(MakeDirs(file.substr(0, file.rfind('/'))));
    ASSERT_TRUE(WriteFile(file, text));
  }
  std::string root_;
};

TEST_F(SysfsTest, ReadsSocketsNodesCoresAndCaches) {
  Put("cpu/online", "0-3\n");
  for (int cpu = 0; cpu < 4; ++cpu) {
    std::string at = "cpu/cpu" + std::to_string(cpu);
    Put(at + "/topology/physical_package_id", std::to_string(cpu % 2) + "\n");
    Put(at + "/topology/thread_siblings_list",
        std::to_string(cpu % 2) + "," + std::to_string(cpu % 2 + 2) + "\n");
    Put(at + "/cache/index0/level", "1\n");
    Put(at + "/cache/index0/shared_cpu_list", std::to_string(cpu) + "\n");
    Put(at + "/cache/index3/level", "3\n");
    Put(at + "/cache/index3/shared_cpu_list", "0-3\n");
  }
  for (int node : {0, 2}) {
    std::string at = "node/node" + std::to_string(node);
    Put(at + "/cpulist", node == 0 ? "0,2\n" : "1,3,9\n");
    Put(at + "/meminfo", "Node 0 MemTotal:       2048 kB\nNode 0 MemFree: 1 kB\n");
    Put(at + "/distance", node == 0 ? "10 21\n" : "21 10\n");
    Put(at + "/hugepages/hugepages-2048kB/nr_hugepages", "3\n");
    Put(at + "/hugepages/hugepages-1048576kB/nr_hugepages", "1\n");
  }
  auto machine = MachineTopology::Read(0, root_);
  ASSERT_TRUE(machine) << machine.error().message();
  EXPECT_EQ(machine->Sockets(), 2);
  EXPECT_EQ(machine->Cores(), 2);
  EXPECT_EQ(machine->CpusPerCore(), 2);
  EXPECT_EQ(machine->nodes.at(2).cpus, (CpuSet{1, 3}));
  EXPECT_EQ(machine->cpus.at(3).numa, 2);
  EXPECT_EQ(machine->cpus.at(3).core, 1);
  EXPECT_EQ(machine->cpus.at(3).cache, 0);
  EXPECT_EQ(machine->nodes.at(0).memory_bytes, 2 << 20);
  EXPECT_EQ(machine->nodes.at(2).distance, (std::map<int, int>{{0, 21}, {2, 10}}));
  EXPECT_EQ(machine->nodes.at(0).huge_pages,
            (std::map<std::string, int64_t>{{"hugepages-1Gi", 1 << 30}, {"hugepages-2Mi", 6 << 20}}));
}

TEST_F(SysfsTest, AMachineWithoutNodesHasOne) {
  Put("cpu/online", "0-1\n");
  auto machine = MachineTopology::Read(4096, root_);
  ASSERT_TRUE(machine);
  ASSERT_EQ(machine->nodes.size(), 1u);
  EXPECT_EQ(machine->nodes.at(0).memory_bytes, 4096);
  EXPECT_EQ(machine->nodes.at(0).cpus.Format(), "0-1");
  EXPECT_FALSE(MachineTopology::Read(4096, root_ + "/nowhere"));
}

TopologyHint Hint(const char* bits, bool preferred) { return {NumaMask(bits), preferred}; }

TEST(MergeHints, Table) {
  const MachineTopology machine = FakeMachine(2, 1, 4, 1), four = FakeMachine(2, 2, 2, 1);
  const TopologyHint anywhere{std::nullopt, true};
  using Policy = TopologyPolicy;
  const struct {
    const char* name;
    const MachineTopology& machine;
    Policy policy;
    bool closest;
    std::vector<TopologyHints> providers;
    std::string nodes;  // lowest bits; "": anywhere
    bool preferred, admit;
  } kCases[] = {
      {"nobody cares", machine, Policy::kRestricted, false, {{}, {}}, "11", true, true},
      {"one node for both",
       machine,
       Policy::kSingleNumaNode,
       false,
       {{{"cpu", {Hint("1", true), Hint("10", true)}}}, {{"gpu", {Hint("10", true)}}}},
       "10",
       true,
       true},
      {"the first of equals",
       machine,
       Policy::kBestEffort,
       false,
       {{{"cpu", {Hint("1", true), Hint("10", true), Hint("11", false)}}}},
       "01",
       true,
       true},
      {"apart, best effort",
       machine,
       Policy::kBestEffort,
       false,
       {{{"cpu", {Hint("1", true)}}}, {{"gpu", {Hint("10", true)}}}},
       "11",
       false,
       true},
      {"apart, restricted",
       machine,
       Policy::kRestricted,
       false,
       {{{"cpu", {Hint("1", true)}}}, {{"gpu", {Hint("10", true)}}}},
       "11",
       false,
       false},
      {"wide by need",
       machine,
       Policy::kRestricted,
       false,
       {{{"cpu", {Hint("11", true)}}}},
       "11",
       true,
       true},
      {"wide by need, single node",
       machine,
       Policy::kSingleNumaNode,
       false,
       {{{"cpu", {Hint("11", true)}}}},
       "",
       false,
       false},
      {"cannot be met", machine, Policy::kRestricted, false, {{{"gpu", {}}}}, "11", false, false},
      {"no preference", machine, Policy::kSingleNumaNode, false, {{{"gpu", {anywhere}}}}, "", true, true},
      {"overlap is not the same set",
       machine,
       Policy::kRestricted,
       false,
       {{{"cpu", {Hint("11", true)}}}, {{"gpu", {Hint("10", true)}}}},
       "10",
       false,
       false},
      {"as wide as the greediest",
       four,
       Policy::kBestEffort,
       false,
       {{{"cpu", {Hint("1", false), Hint("1111", false)}}},
        {{"memory", {Hint("11", false), Hint("1111", false)}}}},
       "0011",
       false,
       true},
      {"lowest numbers",
       four,
       Policy::kRestricted,
       false,
       {{{"cpu", {Hint("101", true), Hint("11", true)}}}},
       "0011",
       true,
       true},
      {"shortest way",
       four,
       Policy::kRestricted,
       true,
       {{{"cpu", {Hint("101", true), Hint("1100", true)}}}},
       "1100",
       true,
       true},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    MergedHint merged = MergeHints(test.providers, test.machine, {test.policy, test.closest});
    EXPECT_EQ(merged.admit, test.admit);
    EXPECT_EQ(merged.hint.preferred, test.preferred);
    EXPECT_EQ(merged.hint.nodes.has_value(), !test.nodes.empty());
    EXPECT_EQ(merged.hint.nodes.value_or(NumaMask()), NumaMask(test.nodes));
  }
}

class FakeProvider : public ResourceProvider {
 public:
  TopologyHints hints;
  std::string refuse;  // name of a container
  std::vector<std::string> log;

  TopologyHints Hints(const corev1::Pod&, const corev1::Container&) override { return hints; }
  TopologyHints PodHints(const corev1::Pod&) override {
    log.push_back("pod hints");
    return hints;
  }
  std::optional<k8s::AdmitFailure> Allocate(const corev1::Pod&, const corev1::Container& container,
                                            const TopologyHint& affinity) override {
    if (container.name() == refuse) return k8s::AdmitFailure{"UnexpectedAdmissionError", "refused"};
    log.push_back(container.name() + "@" + (affinity.nodes ? affinity.nodes->to_string().substr(60) : "any"));
    return std::nullopt;
  }
  Result<> Configure(const corev1::Pod&, const corev1::Container&, cri::ContainerConfig& config,
                     std::stop_token) override {
    config.envs.emplace_back("GIVEN", "1");
    return {};
  }
  void Release(const std::string& uid) override { log.push_back("release " + uid); }
  std::set<std::string> Uids() const override { return {"a", "b"}; }
};

TEST(TopologyManager, AllocatesForAllContainersOrForNone) {
  corev1::Pod pod = GuaranteedPod("a", "1", "1Mi");
  pod.mutable_spec()->add_init_containers()->set_name("init");
  const struct {
    const char* policy;
    const char* scope;
    std::string refuse;
    TopologyHints hints;
    std::string reason;
    std::vector<std::string> log;
  } kCases[] = {
      {"none", "container", "", {{"x", {}}}, "", {"init@any", "main@any"}},
      {"restricted", "container", "", {{"x", {Hint("10", true)}}}, "", {"init@0010", "main@0010"}},
      {"restricted", "pod", "", {{"x", {Hint("10", true)}}}, "", {"pod hints", "init@0010", "main@0010"}},
      {"restricted", "pod", "", {{"x", {}}}, "TopologyAffinityError", {"pod hints", "release a"}},
      {"single-numa-node",
       "container",
       "",
       {{"x", {Hint("11", true)}}},
       "TopologyAffinityError",
       {"release a"}},
      {"single-numa-node",
       "pod",
       "",
       {{"x", {Hint("10", true)}}},
       "",
       {"pod hints", "init@0010", "main@0010"}},
      {"none", "container", "main", {}, "UnexpectedAdmissionError", {"init@any", "release a"}},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(std::string(test.policy) + " " + test.scope + " " + test.reason);
    FakeProvider provider;
    provider.hints = test.hints;
    provider.refuse = test.refuse;
    auto options = ParseTopologyOptions(test.policy, test.scope, {});
    ASSERT_TRUE(options);
    auto manager = TopologyManager::Make(FakeMachine(2, 1, 2, 1), *options, {&provider});
    ASSERT_TRUE(manager);
    const std::string labels = std::string("{scope=\"") + test.scope + "\",boundary=\"numa_node\"}",
                      together = "kubelet_container_aligned_compute_resources_count" + labels,
                      apart = "kubelet_container_aligned_compute_resources_failure_count" + labels;
    const double were_together = MetricValue(together), were_apart = MetricValue(apart);
    auto failure = (*manager)->Admit(pod);
    EXPECT_EQ(failure ? failure->reason : "", test.reason);
    const bool promised = test.policy == std::string("single-numa-node");
    EXPECT_EQ(MetricValue(together) - were_together, promised && !failure);
    EXPECT_EQ(MetricValue(apart) - were_apart, promised && failure);
    EXPECT_EQ(provider.log, test.log);
  }
}

TEST(TopologyManager, LetsGoOfPodsThatAreNoMore) {
  FakeProvider provider;
  auto manager = TopologyManager::Make(FakeMachine(1, 1, 1, 1), {}, {&provider});
  ASSERT_TRUE(manager);
  (*manager)->RemoveStaleState({"b"});
  EXPECT_EQ(provider.log, (std::vector<std::string>{"release a"}));
  cri::ContainerConfig config;
  corev1::Pod pod = GuaranteedPod("b", "1", "1Mi");
  ASSERT_TRUE((*manager)->Configure(pod, pod.spec().containers(0), config, {}));
  EXPECT_EQ(config.envs.size(), 1u);
}

TEST(TopologyManager, RefusesWhatItCannotDo) {
  EXPECT_FALSE(ParseTopologyOptions("tight", "container", {}));
  EXPECT_FALSE(ParseTopologyOptions("none", "galaxy", {}));
  EXPECT_FALSE(ParseTopologyOptions("none", "pod", {{"no-such", "true"}}));
  EXPECT_FALSE(ParseTopologyOptions("none", "pod", {{"max-allowable-numa-nodes", "4"}}));
  auto options = ParseTopologyOptions("restricted", "", {{"prefer-closest-numa-nodes", "true"}});
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->merge.prefer_closest);
  auto manager = TopologyManager::Make(FakeMachine(1, 9, 1, 1), *options, {});
  ASSERT_FALSE(manager);
  EXPECT_EQ(manager.error().message(), "unsupported on machines with more than 8 NUMA Nodes");
}

}  // namespace
}  // namespace keelson::kubelet
