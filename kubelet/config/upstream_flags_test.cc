// The whole of upstream's command line, and what kubeadm gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "kubelet/config/document.h"
#include "kubelet/config/flags_without_effect.h"
#include "kubelet/config/settings.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

// Every flag of the kubelet 1.36 on Linux.
constexpr char kUpstream[] = R"(
address allowed-unsafe-sysctls anonymous-auth application-metrics-count-limit authentication-token-webhook
authentication-token-webhook-cache-ttl authorization-mode authorization-webhook-cache-authorized-ttl
authorization-webhook-cache-unauthorized-ttl boot-id-file bootstrap-kubeconfig cert-dir cgroup-driver cgroup-root
cgroups-per-qos client-ca-file cloud-provider cluster-dns cluster-domain config config-dir container-hints
container-log-max-files container-log-max-size container-runtime-endpoint containerd containerd-namespace
contention-profiling cpu-cfs-quota cpu-cfs-quota-period cpu-manager-policy cpu-manager-policy-options
cpu-manager-reconcile-period enable-controller-attach-detach enable-debugging-handlers enable-load-reader
enable-server enforce-node-allocatable event-burst event-qps event-storage-age-limit event-storage-event-limit
eviction-hard eviction-max-pod-grace-period eviction-minimum-reclaim eviction-pressure-transition-period
eviction-soft eviction-soft-grace-period exit-on-lock-contention experimental-allocatable-ignore-eviction
fail-cgroupv1 fail-swap-on feature-gates file-check-frequency global-housekeeping-interval hairpin-mode
healthz-bind-address healthz-port help hostname-override housekeeping-interval http-check-frequency
image-credential-provider-bin-dir image-credential-provider-config image-gc-high-threshold
image-gc-low-threshold image-service-endpoint iptables-drop-bit iptables-masquerade-bit
kernel-memcg-notification kube-api-burst kube-api-content-type kube-api-qps kube-reserved
kube-reserved-cgroup kubeconfig kubelet-cgroups local-storage-capacity-isolation lock-file log-cadvisor-usage
log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size
log-text-split-stream logging-format machine-id-file make-iptables-util-chains manifest-url
manifest-url-header max-housekeeping-interval max-open-files max-pods maximum-dead-containers
maximum-dead-containers-per-container memory-manager-policy minimum-container-ttl-duration
minimum-image-ttl-duration node-ip node-labels node-status-max-images node-status-update-frequency
oom-score-adj pod-cidr pod-manifest-path pod-max-pids pods-per-core port protect-kernel-defaults provider-id
qos-reserved read-only-port register-node register-with-taints registry-burst registry-qps reserved-cpus
reserved-memory resolv-conf root-dir rotate-certificates rotate-server-certificates runonce runtime-cgroups
runtime-request-timeout seccomp-default serialize-image-pulls show-hidden-metrics-for-version
storage-driver-buffer-duration storage-driver-db storage-driver-host storage-driver-password
storage-driver-secure storage-driver-table storage-driver-user streaming-connection-idle-timeout
sync-frequency system-cgroups system-reserved system-reserved-cgroup tls-cert-file tls-cipher-suites
tls-min-version tls-private-key-file topology-manager-policy topology-manager-policy-options
topology-manager-scope v version vmodule volume-plugin-dir volume-stats-agg-period
)";

TEST(UpstreamFlags, AreAllTaken) {
  std::istringstream names(kUpstream);
  int count = 0;
  for (std::string name; names >> name; ++count) {
    // One of these is of the flag's type.
    std::string error;
    bool taken = false;
    for (const char* value : {"1", "1s", "a=b", "a:b", "a<1", "0:memory=1Gi", "a=b:NoSchedule", "a=true"}) {
      auto line = ParseCommandLine({"--" + name + "=" + value});
      taken = taken || line.has_value();
      if (!line) error = line.error().message();
    }
    EXPECT_TRUE(taken) << name << ": " << error;
  }
  EXPECT_GT(count, 150);
}

TEST(UpstreamFlags, WithoutEffectAreNamedOnceAndExplained) {
  const std::string doc = *ReadFile(KEELSON_KUBELET_DOC);
  for (const component::FlagWithoutEffect& flag : FlagsWithoutEffect()) {
    EXPECT_NE(doc.find("`--" + std::string(flag.name) + "`"), std::string::npos) << flag.name;
    EXPECT_FALSE(flag.why.empty()) << flag.name;
  }
  auto line =
      ParseCommandLine({"--containerd=/run/containerd/containerd.sock", "--containerd-namespace=k8s.io",
                        "--max-housekeeping-interval=15s", "--max-pods=3", "--hairpin-mode=none",
                        "--containerd", "/x", "--log-text-split-stream"});
  ASSERT_TRUE(line) << line.error().message();
  std::vector<std::string> told;
  for (const component::FlagWithoutEffect* flag : line->without_effect) told.emplace_back(flag->name);
  EXPECT_EQ(told, (std::vector<std::string>{"containerd", "containerd-namespace", "max-housekeeping-interval",
                                            "log-text-split-stream", "hairpin-mode"}));
  const std::pair<const char*, const char*> wrong[] = {
      {"--max-housekeeping-interval=often", "time: invalid duration \"often\""},
      {"--enable-load-reader=perhaps", "strconv.ParseBool"},
      {"--application-metrics-count-limit=x", "strconv.ParseInt"}};
  for (const auto& [flag, error] : wrong) {
    auto refused = ParseCommandLine({flag});
    ASSERT_FALSE(refused) << flag;
    EXPECT_NE(refused.error().message().find(error), std::string::npos) << refused.error().message();
  }
}

std::string Fixture(const std::string& name) { return KEELSON_KUBEADM_FILES "/kubelet/" + name; }

// KUBELET_KUBEADM_ARGS="a b": a and b.
std::vector<std::string> KubeadmArguments() {
  const std::string text = *ReadFile(Fixture("kubeadm-flags.env"));
  const size_t begin = text.find('"') + 1;
  std::istringstream words(text.substr(begin, text.rfind('"') - begin));
  std::vector<std::string> out;
  for (std::string word; words >> word;) out.push_back(word);
  return out;
}

// The unit that packages install, with the files that kubeadm 1.36 writes.
TEST(Kubeadm, KubeletStarts) {
  std::vector<std::string> arguments = {
      "kubelet", "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
      "--kubeconfig=/etc/kubernetes/kubelet.conf", "--config=" + Fixture("config.yaml")};
  for (std::string& argument : KubeadmArguments()) arguments.push_back(std::move(argument));
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  std::optional<int> exit_code;
  auto settings = LoadSettings(static_cast<int>(argv.size()), argv.data(), exit_code);
  ASSERT_TRUE(settings) << settings.error().message();
  EXPECT_FALSE(exit_code);
  EXPECT_EQ(settings->flags.hostname_override, "node-1");
  EXPECT_EQ(settings->flags.node_ip, "192.0.2.10");
  const KubeletConfig& config = settings->config;
  EXPECT_EQ(config.static_pod_path, "/etc/kubernetes/manifests");
  EXPECT_EQ(config.cluster_dns, std::vector<std::string>{"10.96.0.10"});
  EXPECT_EQ(config.cgroup_driver, "systemd");
  EXPECT_EQ(config.container_runtime_endpoint, "unix:///var/run/containerd/containerd.sock");
  EXPECT_EQ(config.resolv_conf, "/run/systemd/resolve/resolv.conf");
  EXPECT_TRUE(config.rotate_certificates);
  EXPECT_FALSE(config.anonymous);
  // What is written as zero is the default.
  EXPECT_EQ(config.sync_frequency, std::chrono::minutes(1));
  EXPECT_EQ(config.logging_flush_frequency, std::chrono::seconds(5));
  EXPECT_EQ(config.node_status_report_frequency, std::chrono::minutes(5));
}

TEST(Kubeadm, FilesHaveNothingUnknown) {
  for (const char* name : {"config.yaml", "instance-config.yaml"}) {
    std::vector<std::string> problems;
    auto document = ParseDocument(*ReadFile(Fixture(name)), problems);
    ASSERT_TRUE(document) << name << document.error().message();
    KubeletConfig config;
    auto filled = FillConfig(*document, config, problems);
    EXPECT_TRUE(filled) << name << filled.error().message();
    EXPECT_EQ(problems, std::vector<std::string>()) << name;
    EXPECT_TRUE(ValidateKubeletConfig(config)) << name;
  }
}

}  // namespace
}  // namespace keelson::kubelet
