// The kubelet's cgroups on real containers: v1 or v2, created by systemd where it runs. Run by
// tests/systemd/run.sh and tests/vm/run.sh.
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/sysmacros.h>

#include <boost/json.hpp>
#include <cstdio>
#include <cstdlib>

#include "kubelet/cm/cgroups/cgroup_driver.h"
#include "kubelet/node/machine.h"
#include "kubelet/testing/containerd_test.h"

namespace keelson::kubelet {
namespace {

constexpr int64_t kMi = 1 << 20;
constexpr char kPod[] = R"json({"metadata":{"name":"web"},"spec":{"terminationGracePeriodSeconds":1,
  "containers":[{"name":"main","image":"busybox:test","command":["sh","-c","while true; do sleep 1; done"],
    "resources":{"requests":{"cpu":"100m","memory":"32Mi"},"limits":{"cpu":"500m","memory":"64Mi"}}}]}})json";

std::string FirstLine(const std::string& path) {
  auto text = ReadFile(path);
  return text ? text->substr(0, text->find('\n')) : text.error().message();
}

class NodeCgroupTest : public ContainerdTest {
 protected:
  bool Systemd() const override { return PathExists("/run/systemd/system"); }
  std::unique_ptr<PodCgroups> MakeCgroups(const linux::Cgroups& cgroups) override {
    CgroupOptions options;
    options.root = root_;
    options.pod_pids_limit = 100;
    options.all_pods.memory_limit_bytes = 512 * kMi;
    if (!Systemd()) return NewPodCgroups(cgroups, options);
    options.root = "/";  // a private systemd without other pods
    root_ = "/kubepods.slice";
    auto units = linux::SystemdUnits::Connect();
    if (!units) return nullptr;
    return NewPodCgroups(cgroups, options, NewSystemdDriver(cgroups, std::move(*units)));
  }
  bool v2() const { return linux_cgroups_->unified(); }
  // A cgroup file, by its name in this version.
  std::string Value(const std::string& cgroup, const std::string& controller, const std::string& v1_file,
                    const std::string& v2_file) {
    if (v2()) return FirstLine("/sys/fs/cgroup" + cgroup + "/" + v2_file);
    return FirstLine("/sys/fs/cgroup/" + controller + cgroup + "/" + v1_file);
  }
  corev1::Pod CreateReady() {
    const std::string uid = harness_->Create(kPod).metadata().uid();
    EXPECT_TRUE(harness_->Await("web", IsPodReady)) << harness_->Get("web").ShortDebugString();
    return harness_->Get("web");
  }
  std::string ContainerGroup(const corev1::Pod& pod) {
    const std::string& id = pod.status().container_statuses(0).container_id();  // containerd://...
    return linux_cgroups_->ChildWith(cgroups_->Parent(pod), id.substr(id.rfind('/') + 1));
  }
};

TEST_F(NodeCgroupTest, PodsAndContainersHaveTheirLimits) {
  ASSERT_TRUE(cgroups_);
  const corev1::Pod pod = CreateReady();
  ASSERT_FALSE(HasFailure());
  const std::string group = cgroups_->Parent(pod), container = ContainerGroup(pod);
  if (Systemd()) {
    std::string slice = "kubepods-burstable-pod" + pod.metadata().uid() + ".slice";
    std::replace(slice.begin() + sizeof("kubepods-burstable-pod") - 1, slice.end(), '-', '_');
    EXPECT_EQ(group, "/kubepods.slice/kubepods-burstable.slice/" + slice);
    EXPECT_NE(container.find("/cri-containerd-"), std::string::npos) << container;
  }
  EXPECT_EQ(Value(group, "memory", "memory.limit_in_bytes", "memory.max"), std::to_string(64 * kMi));
  EXPECT_EQ(Value(group, "cpu", "cpu.cfs_quota_us", "cpu.max"), v2() ? "50000 100000" : "50000");
  EXPECT_EQ(Value(group, "cpu", "cpu.shares", "cpu.weight"), v2() ? "4" : "102");
  EXPECT_EQ(Value(group, "pids", "pids.max", "pids.max"), "100");
  EXPECT_EQ(Value(root_ + (Systemd() ? "" : "/kubepods"), "memory", "memory.limit_in_bytes", "memory.max"),
            std::to_string(512 * kMi));
  ASSERT_FALSE(container.empty()) << "the runtime's cgroup is below the pod's";
  EXPECT_EQ(Value(container, "memory", "memory.limit_in_bytes", "memory.max"), std::to_string(64 * kMi));
  if (v2()) {
    EXPECT_EQ(FirstLine("/sys/fs/cgroup" + container + "/memory.swap.max"), "0");
    EXPECT_EQ(FirstLine("/sys/fs/cgroup" + container + "/memory.oom.group"), "1");
  }
  EXPECT_GT(cgroups_->Container(pod, container.substr(container.rfind('/') + 1)).usage.memory_bytes, 0u);
  auto scraped = harness_->backend().CadvisorMetrics();
  ASSERT_TRUE(scraped) << scraped.error().message();
  const std::string own = "{container=\"main\",id=\"" + container + "\",";
  for (const char* name : {"container_cpu_cfs_periods_total", "container_cpu_cfs_throttled_periods_total",
                           "container_cpu_system_seconds_total", "container_memory_cache",
                           "container_oom_events_total", "container_threads", "container_spec_cpu_shares"}) {
    EXPECT_NE(scraped->find(name + own), std::string::npos) << name << own << "\n" << *scraped;
  }
  const size_t limit = scraped->find("container_spec_memory_limit_bytes" + own);
  ASSERT_NE(limit, std::string::npos) << *scraped;
  EXPECT_NE(scraped->substr(limit, scraped->find('\n', limit) - limit).find("} 67108864 "), std::string::npos)
      << scraped->substr(limit, 300);
  harness_->Delete("web", 1);
  ASSERT_TRUE(AwaitGone("web"));
  EXPECT_FALSE(linux_cgroups_->Exists(group));
}

TEST_F(NodeCgroupTest, WhoTakesTooMuchIsKilled) {
  ASSERT_TRUE(cgroups_);
  harness_->Create(
      R"json({"metadata":{"name":"hungry"},"spec":{"restartPolicy":"Never","containers":[{"name":"c",
      "image":"busybox:test","command":["sh","-c","x=x; while true; do x=$x$x; done"],
      "resources":{"limits":{"memory":"16Mi"}}}]}})json");
  ASSERT_TRUE(AwaitPhase("hungry", "Failed"));
  const auto ended = harness_->Get("hungry").status().container_statuses(0).state().terminated();
  EXPECT_EQ(ended.exit_code(), 137);
  EXPECT_EQ(ended.reason(), "OOMKilled");
  harness_->Delete("hungry", 0);
  EXPECT_TRUE(AwaitGone("hungry"));
}

// Swap in memory during its lifetime; none without zram in the kernel.
class CompressedSwap {
 public:
  explicit CompressedSwap(const std::string& dir) : device_(dir + "/zram") {
    const std::string id = FirstLine("/sys/class/zram-control/hot_add");  // reading makes one
    unsigned major = 0, minor = 0;
    if (std::sscanf(FirstLine("/sys/block/zram" + id + "/dev").c_str(), "%u:%u", &major, &minor) != 2) return;
    id_ = id;
    on_ = WriteFile("/sys/block/zram" + id + "/disksize", "256M") &&
          ::mknod(device_.c_str(), S_IFBLK | 0600, makedev(major, minor)) == 0 &&
          std::system(("mkswap " + device_ + " > /dev/null").c_str()) == 0 &&
          ::swapon(device_.c_str(), 0) == 0;
  }
  ~CompressedSwap() {
    if (on_ && ::swapoff(device_.c_str()) != 0) ADD_FAILURE() << device_;
    if (!id_.empty() && !WriteFile("/sys/class/zram-control/hot_remove", id_)) ADD_FAILURE() << id_;
  }
  bool on() const { return on_; }

 private:
  const std::string device_;
  std::string id_;
  bool on_ = false;
};

class SwapTest : public NodeCgroupTest {
 protected:
  void Configure(Settings& settings) override {
    settings.config.fail_swap_on = false;
    settings.config.swap_behavior = "LimitedSwap";
    if (v2()) swap_.emplace(dir_);
  }
  void TearDown() override {
    swap_.reset();
    NodeCgroupTest::TearDown();
  }
  std::optional<CompressedSwap> swap_;
};

TEST_F(SwapTest, GoesToWhoMayUseIt) {
  ASSERT_TRUE(cgroups_);
  if (v2() && !swap_->on()) GTEST_SKIP() << "no swap can be had here";
  const corev1::Pod pod = CreateReady();
  ASSERT_FALSE(HasFailure());
  const std::string container = ContainerGroup(pod);
  if (!v2()) {  // no swap: memory+swap equals memory
    if (!PathExists("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")) {
      GTEST_SKIP() << "swap is not accounted";
    }
    EXPECT_EQ(FirstLine("/sys/fs/cgroup/memory" + container + "/memory.memsw.limit_in_bytes"),
              std::to_string(64 * kMi));
  } else {
    const Machine machine = ReadMachine(dir_);
    ASSERT_GT(machine.swap_bytes, 0);
    const auto part =
        static_cast<int64_t>(static_cast<double>(32 * kMi) / static_cast<double>(machine.memory_bytes) *
                             static_cast<double>(machine.swap_bytes));
    EXPECT_EQ(FirstLine("/sys/fs/cgroup" + container + "/memory.swap.max"),
              std::to_string(part / ::getpagesize() * ::getpagesize()));
  }
  harness_->Delete("web", 1);
  EXPECT_TRUE(AwaitGone("web"));
}

class MemoryQosTest : public NodeCgroupTest {
 protected:
  void SetUp() override {
    auto cgroups = linux::Cgroups::Detect();
    if (!cgroups || !cgroups->unified()) GTEST_SKIP() << "needs cgroup v2";
    NodeCgroupTest::SetUp();
  }
  void Configure(Settings& settings) override {
    settings.config.feature_gates = {{"MemoryQoS", true}};
    settings.config.memory_reservation_policy = "TieredReservation";
  }
};

TEST_F(MemoryQosTest, ProtectsAndSlowsDownAndTellsOfWaiting) {
  ASSERT_TRUE(cgroups_);
  const corev1::Pod pod = CreateReady();
  ASSERT_FALSE(HasFailure());
  const std::string group = cgroups_->Parent(pod), container = ContainerGroup(pod);
  EXPECT_EQ(FirstLine("/sys/fs/cgroup" + group + "/memory.low"), std::to_string(32 * kMi));
  EXPECT_EQ(FirstLine("/sys/fs/cgroup" + group + "/memory.min"), "0");
  EXPECT_EQ(FirstLine("/sys/fs/cgroup" + container + "/memory.low"), std::to_string(32 * kMi));
  const int64_t high = 32 * kMi + 32 * kMi * 9 / 10;
  EXPECT_EQ(FirstLine("/sys/fs/cgroup" + container + "/memory.high"), std::to_string(high / 4096 * 4096));
  auto text = harness_->backend().StatsSummaryJson(false);
  ASSERT_TRUE(text) << text.error().message();
  const boost::json::value summary = boost::json::parse(*text);
  for (const char* resource : {"cpu", "memory", "io"}) {
    EXPECT_TRUE(summary.at("node").at(resource).as_object().contains("psi")) << resource;
    const auto& shown = summary.at("pods").at(0);
    EXPECT_TRUE(shown.at(resource).as_object().contains("psi")) << resource;
    EXPECT_TRUE(shown.at("containers").at(0).at(resource).as_object().contains("psi")) << resource;
  }
  EXPECT_EQ(summary.at("pods").at(0).at("containers").at(0).at("swap").at("swapUsageBytes"), 0);
  harness_->Delete("web", 1);
  EXPECT_TRUE(AwaitGone("web"));
}

}  // namespace
}  // namespace keelson::kubelet
