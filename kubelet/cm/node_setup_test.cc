#include "kubelet/cm/node_setup.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kubelet/node/host_check.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

TEST(OpenFiles, AreAsManyAsTheConfigurationSays) {
  rlimit before{}, now{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max < 1024) GTEST_SKIP() << "the limit is too low to be lowered";
  // Lowered in a child: what is lowered cannot be raised again by everybody.
  EXPECT_EXIT(
      {
        const bool set = SetOpenFiles(777).has_value() && ::getrlimit(RLIMIT_NOFILE, &now) == 0;
        ::_exit(set && now.rlim_cur == 777 && now.rlim_max == 777 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_FALSE(SetOpenFiles(int64_t{1} << 40)) << "more than any kernel allows";
}

TEST(TuneKernel, SetsWhatDiffersOrRefusesIt) {
  const std::map<std::string, std::string, std::less<>> right = {{"kernel/keys/root_maxbytes", "25000000"},
                                                                 {"kernel/keys/root_maxkeys", "1000000"},
                                                                 {"kernel/panic", "10"},
                                                                 {"kernel/panic_on_oops", "1"},
                                                                 {"vm/overcommit_memory", "1"},
                                                                 {"vm/panic_on_oom", "0"}};
  auto machine = right;
  const Sysctls sysctls = {[&](std::string_view key) -> Result<std::string> {
                             auto it = machine.find(key);
                             if (it == machine.end()) return Error(Code::kNotFound, "no " + std::string(key));
                             return it->second;
                           },
                           [&](std::string_view key, std::string_view value) -> Result<> {
                             machine[std::string(key)] = value;
                             return {};
                           }};
  EXPECT_TRUE(TuneKernel(true, sysctls));
  machine["vm/overcommit_memory"] = "0";
  EXPECT_EQ(TuneKernel(true, sysctls).error().message(),
            "Failed to start ContainerManager: invalid kernel flag: vm/overcommit_memory, expected value: 1, "
            "actual value: 0");
  machine["kernel/panic"] = "0";
  EXPECT_EQ(
      TuneKernel(true, sysctls).error().message(),
      "Failed to start ContainerManager: [invalid kernel flag: kernel/panic, expected value: 10, actual "
      "value: 0, invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0]");
  EXPECT_TRUE(TuneKernel(false, sysctls));
  EXPECT_EQ(machine, right);
  machine.erase("kernel/panic");
  EXPECT_FALSE(TuneKernel(false, sysctls));
}

TEST(NodeContext, HoldsWhatTheConfigurationSaysOfMemory) {
  Settings settings;
  Machine machine;
  machine.huge_pages = {{"1Gi", 0}, {"2Mi", 4 << 20}};
  machine.swap_bytes = 7;
  NodeContext plain = MakeNodeContext(settings, {}, machine, true);
  EXPECT_EQ(plain.huge_page_sizes, (std::vector<std::string>{"1GB", "2MB"}));
  EXPECT_EQ(plain.swap_capacity, 7);
  EXPECT_FALSE(plain.memory_qos.on || plain.limited_swap || plain.exclusive_cpus);
  settings.config.feature_gates = {{"MemoryQoS", true}};
  settings.config.memory_reservation_policy = "TieredReservation";
  settings.config.memory_throttling_factor = 0.5;
  settings.config.swap_behavior = "LimitedSwap";
  settings.config.cpu_manager_policy = "static";
  NodeContext set = MakeNodeContext(settings, {}, machine, true);
  EXPECT_TRUE(set.memory_qos.on && set.memory_qos.tiered && set.limited_swap && set.exclusive_cpus);
  EXPECT_EQ(set.memory_qos.throttling, 0.5);
}

TEST(NodeOptions, DeclareWhatHasToBeKnownBeforePodsCome) {
  const std::string sockets = "ExtendWebSocketsToKubelet", guaranteed = "GuaranteedQoSPodCPUResize",
                    pods = "InPlacePodLevelResourcesVerticalScaling",
                    inits = "InPlacePodVerticalScalingInitContainers",
                    all = "RestartAllContainersOnContainerExits";
  const struct {
    std::map<std::string, bool> gates;
    const char* policy;
    std::vector<std::string> want;
  } cases[] = {
      {{}, "none", {sockets, guaranteed, pods, inits, all}},
      {{}, "static", {sockets, pods, inits, all}},
      {{{"InPlacePodVerticalScalingExclusiveCPUs", true}}, "static", {sockets, guaranteed, pods, inits, all}},
      {{{sockets, false}, {pods, false}, {inits, false}, {all, false}}, "none", {guaranteed}},
      {{{"NodeDeclaredFeatures", false}}, "none", {}}};
  for (const auto& c : cases) {
    Settings settings;
    settings.config.feature_gates = c.gates;
    settings.config.cpu_manager_policy = c.policy;
    EXPECT_EQ(MakeNodeOptions(settings, "r://1").declared_features, c.want) << c.policy;
  }
}

TEST(CgroupOptions, WithAndWithoutReservations) {
  Settings settings;
  Machine machine;
  machine.memory_bytes = 1000 << 10;
  settings.config.qos_reserved = {{"memory", "50%"}};
  settings.config.system_reserved = {{"memory", "100Ki"}};
  EXPECT_EQ(MakeCgroupOptions(settings, machine).memory_percent_reserved, std::nullopt) << "the gate is off";
  settings.config.feature_gates = {{"QOSReserved", true}};
  CgroupOptions options = MakeCgroupOptions(settings, machine);
  EXPECT_EQ(options.memory_percent_reserved, 50);
  EXPECT_EQ(options.pods_memory, 900 << 10);
  settings.config.enforce_node_allocatable = {"none"};
  EXPECT_FALSE(MakeCgroupOptions(settings, machine).all_pods.memory_limit_bytes);
}

TEST(Reservations, StorageIsToldOfUnlessItIsNot) {
  Settings settings;
  Machine machine;
  machine.ephemeral_bytes = 1 << 20;
  EXPECT_EQ(CapacityOf(machine, MakeReservations(settings, machine)).count("ephemeral-storage"), 1u);
  settings.config.local_storage_capacity_isolation = false;
  const Reservations none = MakeReservations(settings, machine);
  EXPECT_EQ(CapacityOf(machine, none).count("ephemeral-storage"), 0u);
  EXPECT_EQ(AllocatableOf(machine, none).count("ephemeral-storage"), 0u);
}

TEST(HostCheck, CgroupsHaveToBeThoseOfTheConfiguration) {
  char dir[] = "/tmp/host_check_test.XXXXXX";
  ASSERT_TRUE(::mkdtemp(dir));
  const std::string root = dir;
  for (const char* controller : {"/cpu", "/memory"}) ASSERT_TRUE(MakeDirs(root + controller));
  ASSERT_TRUE(MakeDirs(root + "/memory/there"));
  const linux::Cgroups v1("", {{"cpu", root + "/cpu"}, {"memory", root + "/memory"}});
  KubeletConfig config;
  EXPECT_TRUE(CheckCgroups(config, v1));
  config.cgroup_root = "/there/at last/";
  EXPECT_EQ(CheckCgroups(config, v1).error().message(),
            "invalid configuration: cgroup [\"there\" \"at last\"] has some missing paths: " + root +
                "/cpu/there/at last, " + root + "/memory/there/at last");
  config.cgroups_per_qos = false;
  EXPECT_TRUE(CheckCgroups(config, v1)) << "nothing is made below it";
  config.fail_cgroup_v1 = true;
  EXPECT_EQ(
      CheckCgroups(config, v1).error().message(),
      "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and "
      "will be removed in a future release");
  config.cgroups_per_qos = true;
  const linux::Cgroups v2(root + "/memory", {});
  EXPECT_FALSE(CheckCgroups(config, v2));
  config.cgroup_root = "/there";
  EXPECT_TRUE(CheckCgroups(config, v2));
  EXPECT_TRUE(RemoveTree(root));
}

TEST(Reservations, CpusThatAreNamedStandForAmounts) {
  Settings settings;
  settings.config.system_reserved = {{"memory", "1Gi"}};
  settings.config.kube_reserved = {{"cpu", "500m"}, {"memory", "1Gi"}};
  EXPECT_EQ(MakeReservations(settings, {}).kube.at("cpu"), "500m");
  settings.config.reserved_system_cpus = "0,2-3";
  const Reservations named = MakeReservations(settings, {});
  EXPECT_EQ(named.system, (StringMap{{"cpu", "3"}, {"memory", "1Gi"}}));
  EXPECT_EQ(named.kube, (StringMap{{"memory", "1Gi"}}));
}

}  // namespace
}  // namespace keelson::kubelet
