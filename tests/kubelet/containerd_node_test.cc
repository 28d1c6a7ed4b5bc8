// Node-level features on a real containerd: node status, exclusive resources of containers, garbage
// collection.
#include "kubelet/gc/images.h"
#include "kubelet/node/host_check.h"
#include "kubelet/testing/containerd_test.h"
#include "lib/linux/sysctl.h"

namespace keelson::kubelet {
namespace {

// Reserves 2 MiB huge pages on the machine during its lifetime.
class HugePages {
 public:
  explicit HugePages(int64_t pages) : before_(linux::ReadSysctl(kKey).value_or("")) {
    if (before_ == "0" && linux::WriteSysctl(kKey, std::to_string(pages))) {
      had_ = linux::ReadSysctl(kKey).value_or("") == std::to_string(pages);
    }
  }
  ~HugePages() {
    if (!before_.empty() && !linux::WriteSysctl(kKey, before_)) ADD_FAILURE() << kKey;
  }
  bool had() const { return had_; }

 private:
  static constexpr char kKey[] = "vm/nr_hugepages";
  const std::string before_;
  bool had_ = false;
};

class NodeTest : public ContainerdTest {
 protected:
  void Configure(Settings& settings) override {
    settings.config.node_status_update_frequency = std::chrono::milliseconds(200);
    settings.config.container_log_max_size = "1Ki";
    settings.config.container_log_max_files = 3;
    settings.config.container_log_monitor_interval = std::chrono::seconds(1);
    pages_.emplace(4);
  }
  void TearDown() override {
    ContainerdTest::TearDown();
    pages_.reset();
  }
  corev1::Node Node() { return *harness_->api().Get<corev1::Node>("", "node-under-test"); }
  bool Has(const std::string& resource, const std::string& amount) {
    const corev1::Node node = Node();
    auto found = node.status().allocatable().find(resource);
    return found != node.status().allocatable().end() &&
           api::Amount::Of(found->second) == *api::Amount::Parse(amount);
  }
  std::optional<HugePages> pages_;
};

TEST_F(NodeTest, TellsWhatItHasAndKeepsWhatOthersSay) {
  corev1::Node node = Node();
  (*node.mutable_status()->mutable_capacity())["example.com/dongle"] = api::Amount::FromInt(1).ToQuantity();
  ASSERT_TRUE(harness_->api().UpdateStatus(node));
  // The kubelet makes what pods may have of it.
  ASSERT_TRUE(Eventually([&] { return Has("example.com/dongle", "1"); })) << Node().ShortDebugString();
  auto pod = [](const std::string& name) {
    return R"({"metadata":{"name":")" + name +
           R"("},"spec":{"terminationGracePeriodSeconds":1,"containers":[{"name":"main","image":"busybox:test",
        "command":["sleep","100"],"resources":{"limits":{"example.com/dongle":"1"}}}]}})";
  };
  harness_->Create(pod("web"));
  ASSERT_TRUE(harness_->Await("web", IsPodReady)) << harness_->Get("web").ShortDebugString();
  harness_->Create(pod("second"));
  ASSERT_TRUE(AwaitPhase("second", "Failed"));
  EXPECT_EQ(harness_->Get("second").status().reason(), "OutOfexample.com/dongle");
  node = Node();
  bool told = false;
  for (const auto& image : node.status().images()) {
    for (const std::string& name : image.names()) told = told || name == "docker.io/library/busybox:test";
  }
  EXPECT_TRUE(told) << node.ShortDebugString();
  const auto runtime = cri_.runtime->Status();
  ASSERT_TRUE(runtime);
  EXPECT_EQ(node.status().runtime_handlers_size(), static_cast<int>(runtime->handlers.size()));

  // The machine's cgroups are of one version or the other, and that is known.
  KubeletConfig config;
  config.fail_cgroup_v1 = true;
  const auto checked = CheckCgroups(config, *linux_cgroups_);
  EXPECT_EQ(checked.has_value(), linux_cgroups_->unified());
  if (!checked) {
    EXPECT_EQ(checked.error().message(),
              std::string("kubelet is configured to not run on a host using cgroup v1. ") + kCgroupV1Warning);
  }
  config.fail_cgroup_v1 = false;
  config.cgroup_root = root_;
  EXPECT_TRUE(CheckCgroups(config, *linux_cgroups_));
  config.cgroup_root = root_ + "/absent";
  EXPECT_FALSE(CheckCgroups(config, *linux_cgroups_));
}

TEST_F(NodeTest, HugePagesAreMemoryOfTheirOwn) {
  if (!pages_->had()) GTEST_SKIP() << "the kernel has no huge pages to give";
  EXPECT_TRUE(Has("hugepages-2Mi", "8Mi")) << Node().ShortDebugString();
  harness_->Create(R"json({"metadata":{"name":"web"},"spec":{"terminationGracePeriodSeconds":1,
    "containers":[{"name":"main","image":"busybox:test","command":["sleep","100"],
      "resources":{"requests":{"memory":"16Mi"},"limits":{"hugepages-2Mi":"4Mi","memory":"16Mi"}},
      "volumeMounts":[{"name":"pages","mountPath":"/pages"}]}],
    "volumes":[{"name":"pages","emptyDir":{"medium":"HugePages-2Mi"}}]}})json");
  ASSERT_TRUE(harness_->Await("web", IsPodReady)) << harness_->Get("web").ShortDebugString();
  EXPECT_NE(Exec("main", {"busybox", "grep", " /pages ", "/proc/mounts"}).find("hugetlbfs rw,relatime"),
            std::string::npos);
  EXPECT_EQ(Exec("main", {"sh", "-c", "busybox truncate -s 4M /pages/x && stat -f -c %S /pages"}),
            "2097152\n");
  // A claim of pages that another pod has.
  harness_->Create(
      R"json({"metadata":{"name":"more"},"spec":{"containers":[{"name":"main","image":"busybox:test",
      "command":["sleep","100"],"resources":{"limits":{"hugepages-2Mi":"6Mi","memory":"16Mi"}}}]}})json");
  ASSERT_TRUE(AwaitPhase("more", "Failed"));
  EXPECT_EQ(harness_->Get("more").status().reason(), "OutOfhugepages-2Mi");
  harness_->Delete("web", 1);
  ASSERT_TRUE(AwaitGone("web"));
  EXPECT_TRUE(linux::MountPointsUnder(dir_ + "/kubelet")->empty());
}

TEST_F(NodeTest, LogsAreTurnedAwayAndImagesGo) {
  const corev1::Pod web =
      harness_->Create(R"json({"metadata":{"name":"web"},"spec":{"terminationGracePeriodSeconds":1,
    "containers":[{"name":"main","image":"busybox:test",
      "command":["sh","-c","trap 'exit 0' TERM; while true; do sleep 0.1; done"]}]}})json");
  ASSERT_TRUE(harness_->Await("web", IsPodReady)) << harness_->Get("web").ShortDebugString();
  const std::string logs = dir_ + "/logs/default_web_" + web.metadata().uid() + "/main";
  auto write = [&](const std::string& word) {
    EXPECT_EQ(Exec("main", {"sh", "-c",
                            "for i in $(busybox seq 20); do echo " + word + std::string(60, '.') +
                                "; done > /proc/1/fd/1"}),
              "");
  };
  auto files = [&] { return ListDir(logs).value_or(std::vector<std::string>()); };
  auto turned_away = [&](const std::string& word) {
    const std::vector<std::string> before = files();
    write(word);
    return Eventually([&] {
      return files() != before && ReadFile(logs + "/0.log").value_or(word).find(word) == std::string::npos;
    });
  };
  EXPECT_TRUE(turned_away("one"));
  EXPECT_TRUE(turned_away("two"));
  write("three");
  EXPECT_TRUE(Eventually([&] {
    return ReadFile(logs + "/0.log").value_or("").find("three") != std::string::npos;
  })) << "the runtime goes on in a file of its own";
  const std::vector<std::string> left = files();
  ASSERT_GE(left.size(), 3u);
  EXPECT_EQ(left[1].substr(left[1].size() - 3), ".gz") << left[1];

  const auto metrics = harness_->backend().Metrics();
  ASSERT_TRUE(metrics);
  EXPECT_NE(
      metrics->find("\nkubelet_container_log_filesystem_used_bytes{uid=\"" + web.metadata().uid() + "\""),
      std::string::npos);

  // In-use images stay, and so do the runtime's own.
  ImageGc gc(
      *cri_.runtime, *cri_.images,
      [](std::stop_token) {
        return FileSystemSpace{100, 100};
      },
      [](const std::string& reason, const std::string& message) { ADD_FAILURE() << reason << message; },
      ImageGcOptions{.minimum_age = std::chrono::milliseconds(0)}, Clock::Real());
  auto images = [&] {
    std::set<std::string> out;
    auto listed = cri_.images->ListImages();
    if (listed) {
      for (const cri::Image& image : *listed) out.insert(image.repo_tags.begin(), image.repo_tags.end());
    }
    return out;
  };
  const std::set<std::string> all = images();
  EXPECT_EQ(all.size(), 2u);
  ASSERT_TRUE(gc.RemoveUnused({}));
  EXPECT_EQ(images(), all);
  harness_->Delete("web", 1);
  ASSERT_TRUE(AwaitGone("web"));
  EXPECT_TRUE(Eventually([&] { return gc.RemoveUnused({}) && images().size() == 1; }));
  EXPECT_EQ(images(), std::set<std::string>{"docker.io/library/pause:test"});
}

class ManagersTest : public ContainerdTest {
 protected:
  void Configure(Settings& settings) override {
    KubeletConfig& config = settings.config;
    config.cpu_manager_policy = "static";
    config.memory_manager_policy = "Static";
    config.topology_manager_policy = "single-numa-node";
    config.reserved_system_cpus = "0";
    config.system_reserved = {{"memory", "64Mi"}};
    config.reserved_memory = {{0, {{"memory", "64Mi"}}}};
    harness_->ManageResources();
  }
  std::string Allowed(const std::string& what) {
    return Exec("main",
                {"sh", "-c", "busybox awk '/^" + what + "_allowed_list/ {print $2}' /proc/self/status"});
  }
};

TEST_F(ManagersTest, CpusAndMemoryAreOfOneNode) {
  const std::string checkpoint = dir_ + "/kubelet/memory_manager_state";
  const std::string pod = R"json({"metadata":{"name":"web"},"spec":{"terminationGracePeriodSeconds":1,
    "containers":[{"name":"main","image":"busybox:test","command":["sleep","100"],
      "resources":{"limits":{"cpu":"1","memory":"64Mi"}}}]}})json";
  const std::string uid = harness_->Create(pod).metadata().uid();
  ASSERT_TRUE(harness_->Await("web", IsPodReady)) << harness_->Get("web").ShortDebugString();
  EXPECT_EQ(Allowed("Cpus"), "1\n");
  EXPECT_EQ(Allowed("Mems"), "0\n");
  EXPECT_NE(ReadFile(checkpoint).value_or("").find(uid), std::string::npos);
  harness_->Stop();  // another kubelet has promised what this one has
  harness_->Start();
  EXPECT_EQ(Allowed("Cpus"), "1\n");
  // One CPU is the node's own, one is taken.
  harness_->Create(
      R"json({"metadata":{"name":"second"},"spec":{"containers":[{"name":"main","image":"busybox:test",
      "command":["sleep","100"],"resources":{"limits":{"cpu":"1","memory":"64Mi"}}}]}})json");
  ASSERT_TRUE(AwaitPhase("second", "Failed"));
  EXPECT_EQ(harness_->Get("second").status().reason(), "OutOfcpu");
  harness_->Delete("web", 1);
  ASSERT_TRUE(AwaitGone("web"));
  EXPECT_TRUE(Eventually([&] { return ReadFile(checkpoint).value_or("").find(uid) == std::string::npos; }));
}

}  // namespace
}  // namespace keelson::kubelet
