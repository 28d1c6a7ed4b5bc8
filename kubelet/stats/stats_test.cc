#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <boost/json.hpp>

#include "kubelet/container/labels.h"
#include "kubelet/stats/directory_usage.h"
#include "kubelet/stats/summary.h"
#include "lib/base/file.h"
#include "lib/metrics/conformance.h"

namespace keelson::kubelet {
namespace {

class StatsTest : public ::testing::Test {
 protected:
  StatsTest() {
    auto pod = std::make_shared<corev1::Pod>();
    pod->mutable_metadata()->set_name("web");
    pod->mutable_metadata()->set_namespace_("default");
    pod->mutable_metadata()->set_uid("u1");
    auto& claim = *pod->mutable_spec()->add_volumes();
    claim.set_name("data");
    stats_.time = FakeClock().Now();
    stats_.machine.memory_total = 1000;
    stats_.machine.memory_working_set = 300;
    stats_.cpu = {stats_.time, 5000000000, 250000000};
    stats_.node_fs = {100, 60, 40, 10, 6, 4};
    stats_.interfaces = {{"veth1", 1, 0, 1, 0}, {"eth0", 7, 0, 8, 0}};
    PodUsageStats& item = stats_.pods.emplace_back();
    item.pod = pod;
    item.cgroup.memory_working_set_bytes = 77;
    item.cgroup.memory_bytes = 88;
    item.cgroup.processes = 3;
    item.interfaces = {{"eth0", 11, 1, 12, 2}};
    item.volumes = {{{"data", "claim"}, {50, 40, 10, 5, 4, 1}}, {{"tmp", ""}, {100, 60, 4, 10, 6, 2}}};
    ContainerUsageStats& container = item.containers.emplace_back();
    container.id = "c1";
    container.image = "img:1";
    container.runtime.name = "main";
    container.runtime.timestamp = 1767225600000000000;
    container.runtime.memory_working_set_bytes = 66;
    container.runtime.writable_layer_bytes = 5;
    container.cpu = CpuUsage{stats_.time, 1500000000, {}};
    container.log_bytes = 9;
  }
  StatsSnapshot stats_;
};

TEST_F(StatsTest, SummaryHasWhatItsReadersWant) {
  auto summary = boost::json::parse(SummaryJson(stats_, "n1", false));
  const auto& node = summary.at("node");
  EXPECT_EQ(node.at("nodeName"), "n1");
  EXPECT_EQ(node.at("cpu").at("usageNanoCores"), 250000000);
  EXPECT_EQ(node.at("memory").at("availableBytes"), 700);
  EXPECT_EQ(node.at("network").at("name"), "eth0");
  EXPECT_EQ(node.at("network").at("interfaces").as_array().size(), 2u);
  EXPECT_EQ(node.at("fs").at("usedBytes"), 40);
  const auto& pod = summary.at("pods").at(0);
  EXPECT_EQ(pod.at("podRef").at("uid"), "u1");
  EXPECT_EQ(pod.at("memory").at("workingSetBytes"), 77);
  EXPECT_EQ(pod.at("process_stats").at("process_count"), 3);
  EXPECT_EQ(pod.at("network").at("rxBytes"), 11);
  EXPECT_EQ(pod.at("volume").at(0).at("pvcRef").at("name"), "claim");
  EXPECT_EQ(pod.at("volume").at(1).at("name"), "tmp");
  // Claims are not the node's own storage.
  EXPECT_EQ(pod.at("ephemeral-storage").at("usedBytes"), 5 + 9 + 4);
  const auto& container = pod.at("containers").at(0);
  EXPECT_EQ(container.at("name"), "main");
  EXPECT_EQ(container.at("cpu").at("usageCoreNanoSeconds"), 1500000000);
  EXPECT_EQ(container.at("logs").at("usedBytes"), 9);
  EXPECT_EQ(container.at("rootfs").at("usedBytes"), 5);

  auto brief = boost::json::parse(SummaryJson(stats_, "n1", true));
  EXPECT_FALSE(brief.at("node").as_object().contains("fs"));
  EXPECT_FALSE(brief.at("pods").at(0).as_object().contains("volume"));
  EXPECT_TRUE(brief.at("pods").at(0).as_object().contains("memory"));
}

TEST_F(StatsTest, TellsWhatWasWaitedForAndSwapped) {
  EXPECT_EQ(CadvisorMetricsText(stats_, {}).find("container_pressure"), std::string::npos);
  stats_.pressure.cpu = stats_.pressure.io = linux::Pressure{{2000000, 1.5, 0, 0}, {500000, 0, 0, 0}};
  PodUsageStats& pod = stats_.pods[0];
  pod.pressure.memory = stats_.pressure.cpu;
  pod.cgroup_path = "/kubepods/podu1";
  pod.cgroup.memory_limit_bytes = 100;
  pod.cgroup.swap_bytes = 3;
  pod.containers[0].cgroup.pressure.io = stats_.pressure.cpu;
  pod.containers[0].cgroup.usage.page_faults = 8;
  pod.containers[0].cgroup.usage.swap_bytes = 4;
  pod.containers[0].cgroup.usage.swap_limit_bytes = 10;
  auto summary = boost::json::parse(SummaryJson(stats_, "n1", false));
  EXPECT_EQ(summary.at("node").at("cpu").at("psi").at("some").at("total"), 2000000);
  EXPECT_EQ(summary.at("node").at("cpu").at("psi").at("some").at("avg10"), 1.5);
  EXPECT_EQ(summary.at("node").at("io").at("psi").at("full").at("total"), 500000);
  EXPECT_FALSE(summary.at("node").at("memory").as_object().contains("psi"));
  const auto& shown = summary.at("pods").at(0);
  EXPECT_EQ(shown.at("memory").at("psi").at("some").at("total"), 2000000);
  EXPECT_EQ(shown.at("memory").at("availableBytes"), 100 - 77);
  EXPECT_EQ(shown.at("swap").at("swapUsageBytes"), 3);
  EXPECT_FALSE(shown.at("swap").as_object().contains("swapAvailableBytes")) << "without a limit";
  const auto& container = shown.at("containers").at(0);
  EXPECT_EQ(container.at("io").at("psi").at("full").at("total"), 500000);
  EXPECT_EQ(container.at("memory").at("pageFaults"), 8);
  EXPECT_EQ(container.at("swap").at("swapAvailableBytes"), 6);
  const std::string text = CadvisorMetricsText(stats_, {});
  for (const char* line :
       {"container_pressure_cpu_waiting_seconds_total{container=\"\",id=\"/\",image=\"\",name=\"\",namespace="
        "\"\",pod=\"\"} 2 ",
        "container_pressure_memory_stalled_seconds_total{container=\"\",id=\"/kubepods/"
        "podu1\",image=\"\",name="
        "\"\",namespace=\"default\",pod=\"web\"} 0.5 ",
        "container_pressure_io_waiting_seconds_total{container=\"main\",id=\"/c1\"",
        "# TYPE container_pressure_io_stalled_seconds_total counter\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST_F(StatsTest, CadvisorsNamesAreThere) {
  ContainerUsageStats& container = stats_.pods[0].containers[0];
  stats_.pods[0].cgroup_path = "/kubepods/podu1";
  container.cgroup.path = "/kubepods/podu1/c1";
  container.cgroup.usage.page_faults = 8;
  container.cgroup.usage.processes = 5;
  linux::CgroupAccount& account = container.account;
  account.cpu_user_nanos = 500000000;
  account.periods = 30;
  account.throttled_periods = 4;
  account.throttled_nanos = 250000000;
  account.cache_bytes = 17;
  account.oom_kills = 1;
  account.io = {{"/dev/sda", 1, 2, 3, 4}};
  const std::string own =
      "container=\"main\",id=\"/kubepods/podu1/"
      "c1\",image=\"img:1\",name=\"c1\",namespace=\"default\",pod=\"web\"}";
  const std::string pods =
      "container=\"\",id=\"/kubepods/podu1\",image=\"\",name=\"\",namespace=\"default\",pod=\"web\"}";
  std::string text = CadvisorMetricsText(stats_, {});
  EXPECT_EQ(text.find("container_cpu_cfs"), std::string::npos) << "without a quota nothing is throttled";
  account.cpu_quota_us = 50000;
  account.cpu_period_us = 100000;
  text = CadvisorMetricsText(stats_, {});
  const std::string lines[] = {
      "container_cpu_usage_seconds_total{cpu=\"total\",container=\"\",id=\"/\",",
      "container_cpu_usage_seconds_total{cpu=\"total\"," + own + " 1.5 ",
      "container_cpu_user_seconds_total{" + own + " 0.5 ",
      "container_memory_working_set_bytes{" + pods + " 77 ",
      "container_memory_cache{" + own + " 17 ",
      "container_cpu_cfs_periods_total{" + own + " 30 ",
      "container_cpu_cfs_throttled_periods_total{" + own + " 4 ",
      "container_cpu_cfs_throttled_seconds_total{" + own + " 0.25 ",
      "container_spec_cpu_quota{" + own + " 50000 ",
      "container_spec_memory_limit_bytes{" + own + " 0 ",
      "container_oom_events_total{" + own + " 1 ",
      "container_threads{" + own + " 5 ",
      "container_memory_failures_total{failure_type=\"pgfault\",scope=\"container\"," + own + " 8 ",
      "container_fs_reads_total{device=\"/dev/sda\"," + own + " 1 ",
      "container_fs_writes_total{device=\"/dev/sda\"," + own + " 2 ",
      "container_fs_reads_bytes_total{device=\"/dev/sda\"," + own + " 3 ",
      "container_fs_writes_bytes_total{device=\"/dev/sda\"," + own + " 4 ",
      "container_fs_usage_bytes{device=\"\"," + own + " 5 ",
      "container_memory_swap{" + own + " 0 ",
      "container_spec_memory_swap_limit_bytes{" + own + " 0 ",
      "container_network_receive_packets_dropped_total{container=\"\",id=\"/kubepods/"
      "podu1\",image=\"\",interface=\"eth0\"",
      "# TYPE container_fs_writes_bytes_total counter\n",
  };
  for (const std::string& line : lines) EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  EXPECT_EQ(text.find("container_spec_cpu_shares"), std::string::npos) << "a family without a sample";
}

// What dashboards of nodes and of pods' networks look for.
TEST_F(StatsTest, CadvisorTellsOfTheMachineAndOfSandboxes) {
  PodUsageStats& pod = stats_.pods[0];
  pod.sandbox_id = "s1";
  pod.sandbox_image = "registry.k8s.io/pause:3.10";
  pod.sandbox_path = "/kubepods/podu1/s1";
  stats_.disks = {{"/dev/vda1", {100, 60, 40, 10, 6, 4}}};
  const std::string text = CadvisorMetricsText(stats_, {});
  const std::string machine = "image=\"\",name=\"\",namespace=\"\",pod=\"\"}";
  const std::string lines[] = {
      "container_network_receive_bytes_total{container=\"\",id=\"/kubepods/podu1/s1\","
      "image=\"registry.k8s.io/"
      "pause:3.10\",interface=\"eth0\",name=\"s1\",namespace=\"default\",pod=\"web\"} 11 ",
      "container_network_receive_bytes_total{container=\"\",id=\"/\",image=\"\",interface=\"eth0\",name=\"\","
      "namespace=\"\",pod=\"\"} 7 ",
      "container_fs_limit_bytes{device=\"/dev/vda1\",container=\"\",id=\"/\"," + machine + " 100 ",
      "container_fs_usage_bytes{device=\"/dev/vda1\",container=\"\",id=\"/\"," + machine + " 40 ",
      "container_fs_inodes_total{device=\"/dev/vda1\",container=\"\",id=\"/\"," + machine + " 10 ",
      "container_fs_inodes_free{device=\"/dev/vda1\",container=\"\",id=\"/\"," + machine + " 6 "};
  for (const std::string& line : lines) EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  EXPECT_EQ(text.find("interface=\"veth1\""), std::string::npos) << "the other end of a pod's device";
}

TEST_F(StatsTest, ResourceMetricsAreThoseOfKubernetes) {
  PodUsageStats& pod = stats_.pods.front();
  pod.cpu = CpuUsage{stats_.time, 1, {}};
  pod.cgroup.swap_bytes = 1;
  pod.containers.front().cgroup.usage.swap_limit_bytes = 1;
  pod.containers.front().cgroup.usage.swap_bytes = 1;
  EXPECT_THAT(metrics::Differences({metrics::Component::kKubelet, "/metrics/resource"},
                                   metrics::Describe(ResourceMetricsText(stats_))),
              ::testing::IsEmpty());
}

TEST_F(StatsTest, MetricsHaveTheirNamesAndLabels) {
  const std::string resource = ResourceMetricsText(stats_);
  for (const char* line : {"container_cpu_usage_seconds_total{container=\"main\",namespace=\"default\",pod="
                           "\"web\"} 1.5 1767225600000\n",
                           "node_memory_working_set_bytes 300 ", "node_cpu_usage_seconds_total 5 ",
                           "pod_memory_working_set_bytes{namespace=\"default\",pod=\"web\"} 77 ",
                           "resource_scrape_error 0\n", "# TYPE node_cpu_usage_seconds_total counter\n"}) {
    EXPECT_NE(resource.find(line), std::string::npos) << line << resource;
  }
  const std::string cadvisor = CadvisorMetricsText(stats_, {4, 2, 1, "mid", "uuid", "bid", "6.1", "Debian"});
  for (const char* line :
       {"container_memory_working_set_bytes{container=\"main\",id=\"/c1\",image=\"img:1\",name=\"c1\","
        "namespace=\"default\",pod=\"web\"} 66 1767225600000\n",
        "interface=\"eth0\",name=\"\",namespace=\"default\",pod=\"web\"} 11 ",
        "machine_cpu_cores{boot_id=\"bid\",machine_id=\"mid\",system_uuid=\"uuid\"} 4\n",
        "machine_cpu_physical_cores{boot_id=\"bid\",machine_id=\"mid\",system_uuid=\"uuid\"} 2\n",
        "cadvisor_version_info{cadvisorRevision=\"\",cadvisorVersion=\"\",dockerVersion=\"\",kernelVersion="
        "\"6.1\","
        "osVersion=\"Debian\"} 1\n",
        "container_scrape_error 0\n"}) {
    EXPECT_NE(cadvisor.find(line), std::string::npos) << line << cadvisor;
  }
}

TEST(MachineStats, AreReadFromProc) {
  char name[] = "/tmp/kubelet_stats_test.XXXXXX";
  const std::string proc = ::mkdtemp(name);
  ASSERT_TRUE(WriteFile(proc + "/stat", "cpu  100 0 50 900 10 0 0 0 0 0\ncpu0 1 1 1 1\nbtime 1700000000\n"));
  ASSERT_TRUE(WriteFile(proc + "/meminfo",
                        "MemTotal: 1000 kB\nMemFree: 400 kB\nInactive(file): 100 kB\nAnonPages: 50 kB\n"
                        "SwapTotal: 10 kB\nSwapFree: 4 kB\n"));
  ASSERT_TRUE(WriteFile(proc + "/vmstat", "pgfault 12\npgmajfault 3\n"));
  ASSERT_TRUE(MakeDirs(proc + "/7/net"));
  ASSERT_TRUE(WriteFile(proc + "/7/net/dev",
                        "Inter-|   Receive\n face |bytes\n    lo: 9 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0\n"
                        "  eth0: 100 1 2 5 0 0 0 0 200 3 4 6 0 0 0 0\n"));
  MachineStats stats = ReadMachineStats(proc);
  EXPECT_EQ(stats.boot_time, 1700000000);
  EXPECT_EQ(stats.cpu_nanos, 1500000000u);  // 150 ticks of 10 ms
  EXPECT_EQ(stats.memory_usage, 600u * 1024);
  EXPECT_EQ(stats.memory_working_set, 500u * 1024);
  EXPECT_EQ(stats.major_page_faults, 3u);
  EXPECT_EQ(stats.swap_free, 4u * 1024);
  auto interfaces = ReadInterfaces("7", proc);
  ASSERT_EQ(interfaces.size(), 1u);
  EXPECT_EQ(interfaces[0].rx_bytes, 100u);
  EXPECT_EQ(interfaces[0].rx_errors, 2u);
  EXPECT_EQ(interfaces[0].tx_bytes, 200u);
  EXPECT_EQ(interfaces[0].tx_errors, 4u);
  EXPECT_EQ(interfaces[0].rx_packets, 1u);
  EXPECT_EQ(interfaces[0].rx_dropped, 5u);
  EXPECT_EQ(interfaces[0].tx_packets, 3u);
  EXPECT_EQ(interfaces[0].tx_dropped, 6u);
  ASSERT_TRUE(MakeDirs(proc + "/sys/dev/block"));
  ASSERT_EQ(::symlink("../../devices/virtual/block/loop7", (proc + "/sys/dev/block/7:7").c_str()), 0);
  EXPECT_EQ(DeviceName("7:7", proc + "/sys"), "/dev/loop7");
  EXPECT_EQ(DeviceName("8:0", proc + "/sys"), "8:0");
  ASSERT_TRUE(RemoveTree(proc + "/sys"));
  ASSERT_TRUE(WriteFile(proc + "/mountinfo",
                        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:1 /var/lib /tmp rw - ext4 /dev/sda1 rw\n"
                        "3 1 0:5 / /proc rw - proc proc rw\n4 1 0:6 / /dev rw - tmpfs /dev/shm rw\n"
                        "5 1 8:2 / /dev rw - xfs /dev/sda2 rw\n6 1 0:9 / /mnt rw - nfs4 server:/dev/x rw\n"));
  auto disks = ReadDisks(proc + "/mountinfo");
  ASSERT_FALSE(disks.empty());
  EXPECT_EQ(disks[0].device, "/dev/sda1");
  EXPECT_GT(disks[0].fs.capacity, 0u);
  for (size_t i = 1; i < disks.size(); ++i) EXPECT_EQ(disks[i].device, "/dev/sda2");
  ASSERT_TRUE(RemoveFile(proc + "/mountinfo"));
  EXPECT_TRUE(ReadInterfaces("8", proc).empty());
  ASSERT_TRUE(WriteFile(proc + "/file", std::string(10000, 'x')));
  EXPECT_GE(UsageOfDirectory(proc).bytes, 10000);
  EXPECT_EQ(UsageOfDirectory(proc).inodes, 8);
  ASSERT_EQ(::link((proc + "/file").c_str(), (proc + "/again").c_str()), 0);
  ASSERT_EQ(::symlink("/", (proc + "/root").c_str()), 0);
  EXPECT_EQ(UsageOfDirectory(proc).inodes, 9) << "the link, and no file twice";
  EXPECT_EQ(UsageOfDirectory(proc + "/none").inodes, 0);
  (void)RemoveTree(proc);
}

}  // namespace
}  // namespace keelson::kubelet
