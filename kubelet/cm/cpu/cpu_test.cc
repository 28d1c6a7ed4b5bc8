#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "kubelet/cm/cpu/cpu_manager.h"
#include "kubelet/cm/topology/testing/fake_machine.h"
#include "kubelet/testing/metric_value.h"
#include "lib/base/file.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {
namespace {

TEST(AssignCpus, Table) {
  // 2 sockets x 4 cores x 2 threads: socket 0 has CPUs 0-3,8-11, socket 1 has 4-7,12-15.
  const MachineTopology two = FakeMachine(2, 1, 4, 2), sub = FakeMachine(1, 2, 2, 1);
  MachineTopology caches = FakeMachine(1, 1, 8, 1);
  for (auto& [cpu, place] : caches.cpus) place.cache = cpu / 4 * 4;
  const CpuAssignOptions packed, spread{true, false, false, false}, dealt{false, true, false, false},
      dealt_cores{false, true, false, true}, cached{false, false, true, false};
  const struct {
    const char* name;
    const MachineTopology& machine;
    const char* available;
    int count;
    const CpuAssignOptions& options;
    const char* chosen;  // null: refused
  } kCases[] = {
      {"a core", two, "0-15", 2, packed, "0,8"},
      {"a thread", two, "0-15", 1, packed, "0"},
      {"a broken core is used up first", two, "1-15", 1, packed, "8"},
      {"the fuller socket", two, "1-8,10-15", 2, packed, "2,10"},
      {"a socket", two, "0-15", 8, packed, "0-3,8-11"},
      {"the whole socket of two", two, "1-15", 8, packed, "4-7,12-15"},
      {"a socket and a core", two, "0-15", 10, packed, "0-4,8-12"},
      {"all", two, "0-15", 16, packed, "0-15"},
      {"too many", two, "0-15", 17, packed, nullptr},
      {"cores broken up to fill", two, "0-2,8", 3, packed, "0-1,8"},
      {"spread over cores", two, "0-15", 4, spread, "0-3"},
      {"dealt to both nodes", two, "0-15", 10, dealt, "0-2,4-6,8-9,12-13"},
      {"fits one node", two, "0-15", 4, dealt, "0-1,8-9"},
      {"dealt by cores", two, "0-15", 12, dealt_cores, "0-2,4-6,8-10,12-14"},
      {"nodes inside a socket", sub, "0-3", 2, packed, "0-1"},
      {"one cache", caches, "0-1,3-7", 4, cached, "4-7"},
      {"inside one cache", caches, "0-1,4-7", 3, cached, "4-6"},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    auto chosen = AssignCpus(test.machine, *CpuSet::Parse(test.available), test.count, test.options);
    ASSERT_EQ(chosen.has_value(), test.chosen != nullptr);
    EXPECT_EQ(chosen ? chosen->Format() : chosen.error().message(),
              test.chosen ? test.chosen
                          : "not enough cpus available to satisfy request: requested=17, available=16");
  }
}

class CpuManagerTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/keelson-cpus-XXXXXX";
    directory_ = mkdtemp(name);
    options_.state_file = directory_ + "/cpu_manager_state";
    options_.reserved_count = 1;
    Start();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void Start() {
    auto made = CpuManager::Make(machine_, options_);
    ASSERT_TRUE(made) << made.error().message();
    manager_ = std::move(*made);
  }
  // "" or the reason and message of the refusal.
  std::string Allocate(const corev1::Pod& pod, const TopologyHint& affinity = {}) {
    for (const auto* list : {&pod.spec().init_containers(), &pod.spec().containers()}) {
      for (const auto& container : *list) {
        if (auto failure = manager_->Allocate(pod, container, affinity)) {
          return failure->reason + ": " + failure->message;
        }
      }
    }
    return "";
  }
  std::string CpusOf(const corev1::Pod& pod, int container = 0) {
    cri::ContainerConfig config;
    EXPECT_TRUE(manager_->Configure(pod, pod.spec().containers(container), config, {}));
    return config.resources.cpuset_cpus;
  }

  const MachineTopology machine_ = FakeMachine(2, 1, 4, 2);
  std::string directory_;
  CpuManagerOptions options_;
  std::unique_ptr<CpuManager> manager_;
};

TEST_F(CpuManagerTest, WholeCpusOfGuaranteedPodsAreTheirOwn) {
  corev1::Pod own = GuaranteedPod("own", "2", "1Mi"), part = GuaranteedPod("part", "1500m", "1Mi"),
              burst = GuaranteedPod("burst", "2", "1Mi");
  burst.mutable_spec()->mutable_containers(0)->mutable_resources()->clear_limits();
  EXPECT_EQ(Allocate(own), "");
  EXPECT_EQ(Allocate(part), "");
  EXPECT_EQ(Allocate(burst), "");
  EXPECT_EQ(CpusOf(own), "1,9");  // CPU 0 is reserved
  EXPECT_EQ(CpusOf(part), "0,2-8,10-15");
  EXPECT_EQ(CpusOf(burst), "0,2-8,10-15");
  EXPECT_EQ(manager_->Allocatable().Format(), "1-15");
  EXPECT_EQ(manager_->Uids(), (std::set<std::string>{"own"}));
  std::string text = metrics::Print();
  for (const char* line :
       {"kubelet_cpu_manager_exclusive_cpu_allocation_count 2\n",
        "kubelet_cpu_manager_allocation_per_numa{numa_node=\"0\"} 2\n",
        "kubelet_cpu_manager_allocation_per_numa{numa_node=\"1\"} 0\n",
        "kubelet_cpu_manager_shared_pool_size_millicores 13000\n"}) {  // without the reserved one
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
  cri::ContainerConfig config;
  config.resources.cpu_quota = 200000;
  ASSERT_TRUE(manager_->Configure(own, own.spec().containers(0), config, {}));
  EXPECT_EQ(config.resources.cpu_quota, -1);
  manager_->Release("own");
  EXPECT_EQ(CpusOf(part), "0-15");
  text = metrics::Print();
  EXPECT_NE(text.find("kubelet_cpu_manager_exclusive_cpu_allocation_count 0\n"), std::string::npos) << text;
}

TEST_F(CpuManagerTest, ARestartChangesNothing) {
  corev1::Pod pod = GuaranteedPod("own", "2", "1Mi");
  EXPECT_EQ(Allocate(pod), "");
  Start();
  EXPECT_EQ(Allocate(pod), "");  // idempotent
  EXPECT_EQ(CpusOf(pod), "1,9");
}

TEST_F(CpuManagerTest, StartsWhereNothingCanBeWrittenAndPromisesNothing) {
  const corev1::Pod own = GuaranteedPod("own", "2", "1Mi"), more = GuaranteedPod("more", "2", "1Mi");
  ASSERT_EQ(Allocate(own), "");
  // It can be read, and with a suffix is too long to be made: even for root.
  const std::string file = directory_ + "/" + std::string(250, 's');
  ASSERT_TRUE(WriteFile(file, ReadFile(options_.state_file).value_or("")));
  options_.state_file = file;
  Start();
  EXPECT_EQ(CpusOf(own), "1,9");
  const std::string refused = Allocate(more);
  EXPECT_EQ(refused.find("UnexpectedAdmissionError: Allocate failed due to "), 0u) << refused;
  EXPECT_EQ(CpusOf(more), "0,2-8,10-15");
}

TEST_F(CpuManagerTest, AStateFileThatDoesNotFitIsRefused) {
  const struct {
    const char* text;
    const char* problem;
  } kCases[] = {{R"({"policyName":"none","defaultCpuSet":"","entries":{}})",
                 "configured policy \"static\" differs from state checkpoint policy \"none\""},
                {R"({"policyName":"static","defaultCpuSet":"1-15","entries":{"u":{"c":"0"}}})",
                 "not all reserved cpus"},
                {R"({"policyName":"static","defaultCpuSet":"0-15","entries":{"u":{"c":"3"}}})",
                 "pod: u, container: c cpuset: \"3\" overlaps with default cpuset \"0-15\""},
                {R"({"policyName":"static","defaultCpuSet":"0-14","entries":{}})",
                 "current set of available CPUs \"0-15\" doesn't match with CPUs in state \"0-14\""},
                {R"({"policyName":"static","defaultCpuSet":"x","entries":{}})", "invalid list of CPUs"},
                {"{", "not a checkpoint"}};
  for (const auto& test : kCases) {
    ASSERT_TRUE(WriteFile(options_.state_file, test.text));
    auto made = CpuManager::Make(machine_, options_);
    ASSERT_FALSE(made) << test.text;
    EXPECT_NE(made.error().message().find(test.problem), std::string::npos) << made.error().message();
    EXPECT_NE(made.error().message().find("please drain this node"), std::string::npos);
  }
}

TEST_F(CpuManagerTest, ContainersAfterInitContainersTakeTheirCpus) {
  corev1::Pod pod = GuaranteedPod("own", "2", "1Mi");
  corev1::Container& init = *pod.mutable_spec()->add_init_containers();
  init = pod.spec().containers(0);
  init.set_name("init");
  corev1::Container& sidecar = *pod.mutable_spec()->add_init_containers();
  sidecar = pod.spec().containers(0);
  sidecar.set_name("sidecar");
  sidecar.set_restart_policy("Always");
  EXPECT_EQ(Allocate(pod), "");
  EXPECT_EQ(manager_->Exclusive("own", "init").Format(), "1,9");
  EXPECT_EQ(manager_->Exclusive("own", "sidecar").Format(),
            "1,9");  // the init container is over when it starts
  EXPECT_EQ(manager_->Exclusive("own", "main").Format(), "2,10");  // the sidecar is not
}

TEST_F(CpuManagerTest, HintsNameTheNodesThatHaveEnough) {
  auto bits = [](const TopologyHints& hints) {
    std::string out;
    for (const auto& hint : hints.at("cpu")) {
      out += hint.nodes->to_string().substr(62) + (hint.preferred ? "! " : " ");
    }
    return out;
  };
  corev1::Pod two = GuaranteedPod("two", "2", "1Mi"), eight = GuaranteedPod("eight", "8", "1Mi"),
              twelve = GuaranteedPod("twelve", "12", "1Mi");
  EXPECT_TRUE(manager_->Hints(GuaranteedPod("part", "100m", "1Mi"), two.spec().containers(0)).empty() ==
              false);
  EXPECT_EQ(bits(manager_->Hints(two, two.spec().containers(0))), "01! 10! 11 ");
  EXPECT_EQ(bits(manager_->PodHints(eight)), "10! 11 ");  // a CPU of node 0 is reserved
  EXPECT_EQ(bits(manager_->PodHints(twelve)), "11! ");
  EXPECT_EQ(Allocate(two, {NumaMask("10"), true}), "");
  EXPECT_EQ(CpusOf(two), "4,12");
  EXPECT_EQ(bits(manager_->Hints(two, two.spec().containers(0))), "10! 11 ");
  EXPECT_EQ(Allocate(twelve), "");
  corev1::Pod more = GuaranteedPod("more", "2", "1Mi");
  EXPECT_EQ(Allocate(more),
            "UnexpectedAdmissionError: Allocate failed due to not enough cpus available to satisfy request: "
            "requested=2, "
            "available=1, which is unexpected");
  EXPECT_TRUE(manager_->Hints(more, more.spec().containers(0)).at("cpu").empty());
}

TEST_F(CpuManagerTest, WholeCoresOnly) {
  const std::string labels = "{scope=\"container\",boundary=\"physical_cpu\"}",
                    together = "kubelet_container_aligned_compute_resources_count" + labels,
                    apart = "kubelet_container_aligned_compute_resources_failure_count" + labels;
  const double were_together = MetricValue(together), were_apart = MetricValue(apart);
  options_.full_cores_only = true;
  Start();
  EXPECT_EQ(Allocate(GuaranteedPod("odd", "3", "1Mi")),
            "SMTAlignmentError: SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2");
  EXPECT_EQ(Allocate(GuaranteedPod("big", "16", "1Mi")),
            "SMTAlignmentError: SMT Alignment Error: not enough free physical CPUs: available physical CPUs "
            "= 14, requested "
            "CPUs = 16, CPUs per core = 2");
  EXPECT_EQ(Allocate(GuaranteedPod("fit", "14", "1Mi")), "");
  EXPECT_EQ(MetricValue(together), were_together + 1);
  EXPECT_EQ(MetricValue(apart), were_apart + 2);
}

TEST_F(CpuManagerTest, RunningContainersAreToldOfTheSharedCpus) {
  corev1::Pod own = GuaranteedPod("own", "2", "1Mi");
  Mutex mutex;
  CondVar told;
  std::map<std::string, std::string> cpus;
  CpuManager::Runtime runtime;
  runtime.containers = [] {
    return std::vector<CpuManager::Running>{{"own", "main", "1"}, {"other", "main", "2"}};
  };
  runtime.set_cpus = [&](const std::string& id, const CpuSet& set, std::stop_token) -> Result<> {
    MutexLock lock(mutex);
    cpus[id] = set.Format();
    told.notify_all();
    return {};
  };
  std::jthread thread([&](std::stop_token stop) { manager_->Run(runtime, stop); });
  auto wait_for = [&](const std::string& id, const std::string& want) {
    MutexLock lock(mutex);
    while (cpus[id] != want) told.wait(mutex);
  };
  wait_for("2", "0-15");
  EXPECT_EQ(Allocate(own), "");
  wait_for("2", "0,2-8,10-15");
  wait_for("1", "1,9");
  manager_->Release("own");
  wait_for("2", "0-15");
}

TEST_F(CpuManagerTest, OptionsAreUpstreams) {
  CpuManagerOptions options;
  EXPECT_TRUE(
      ParseCpuManagerOptions({{"full-pcpus-only", "true"}, {"strict-cpu-reservation", "true"}}, options));
  EXPECT_TRUE(options.full_cores_only && options.assign.whole_cores && options.strict_reservation);
  EXPECT_FALSE(ParseCpuManagerOptions({{"no-such", "true"}}, options));
  EXPECT_FALSE(ParseCpuManagerOptions({{"align-by-socket", "maybe"}}, options));
  EXPECT_FALSE(ParseCpuManagerOptions({{"distribute-cpus-across-cores", "true"}}, options));
  options_.reserved_count = 0;
  auto made = CpuManager::Make(machine_, options_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message(),
            "[cpumanager] unable to determine reserved CPU resources for static policy");
}

}  // namespace
}  // namespace keelson::kubelet
