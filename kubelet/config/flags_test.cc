#include <gtest/gtest.h>

#include <sstream>

#include "kubelet/config/fields.h"
#include "kubelet/config/settings.h"

namespace keelson::kubelet {
namespace {

TEST(Flags, AreReadAsPflagDoes) {
  auto line = ParseCommandLine({"--kubeconfig",
                                "/k",
                                "--config=/c",
                                "--node-labels=a=b,c=d",
                                "--node-labels",
                                "e=",
                                "--fail-swap-on=false",
                                "--serialize-image-pulls",
                                "--max_pods=20",
                                "--v",
                                "4",
                                "--eviction-hard=memory.available<1Gi,nodefs.available<5%",
                                "--pod-infra-container-image=x",
                                "--feature-gates=NodeLogQuery=true",
                                "--feature-gates",
                                "MemoryQoS=true",
                                "--cluster-dns=10.0.0.1",
                                "--cluster-dns=10.0.0.2",
                                "--fail-cgroupv1=true",
                                "--maximum-dead-containers-per-container=2"});
  ASSERT_TRUE(line) << line.error().message();
  EXPECT_EQ(line->flags.kubeconfig, "/k");
  EXPECT_EQ(line->flags.config, "/c");
  EXPECT_EQ(line->flags.node_labels, (StringMap{{"a", "b"}, {"c", "d"}, {"e", ""}}));
  EXPECT_EQ(line->flags.maximum_dead_containers_per_container, 2);
  KubeletConfig config;
  config.serialize_image_pulls = false;
  config.cluster_dns = {"10.9.9.9"};
  config.feature_gates = {{"MemoryQoS", false}, {"SELinuxMount", true}};
  ASSERT_TRUE(ApplyFlags(line->config_flags, config));
  EXPECT_FALSE(config.fail_swap_on);
  EXPECT_TRUE(config.fail_cgroup_v1);
  EXPECT_TRUE(config.serialize_image_pulls);
  EXPECT_EQ(config.max_pods, 20);
  EXPECT_EQ(config.logging_verbosity, 4);
  EXPECT_EQ(config.eviction_hard, (StringMap{{"memory.available", "1Gi"}, {"nodefs.available", "5%"}}));
  EXPECT_EQ(config.cluster_dns, (std::vector<std::string>{"10.0.0.1", "10.0.0.2"}));
  EXPECT_EQ(config.feature_gates, (std::map<std::string, bool>{
                                      {"MemoryQoS", true}, {"NodeLogQuery", true}, {"SELinuxMount", true}}));
}

TEST(Flags, ComplexOnes) {
  auto line = ParseCommandLine({"--register-with-taints=a=b:NoSchedule,c:NoExecute",
                                "--reserved-memory=0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=2Gi",
                                "--manifest-url-header=a:b", "--manifest-url-header=a:c"});
  ASSERT_TRUE(line) << line.error().message();
  KubeletConfig config;
  ASSERT_TRUE(ApplyFlags(line->config_flags, config));
  EXPECT_EQ(config.register_with_taints,
            (std::vector<NodeTaint>{{"a", "b", "NoSchedule"}, {"c", "", "NoExecute"}}));
  ASSERT_EQ(config.reserved_memory.size(), 2u);
  EXPECT_EQ(config.reserved_memory[0].limits, (StringMap{{"memory", "1Gi"}, {"hugepages-1Gi", "2Gi"}}));
  EXPECT_EQ(config.reserved_memory[1].numa_node, 1);
  EXPECT_EQ(config.static_pod_url_header.at("a"), (std::vector<std::string>{"b", "c"}));
}

TEST(Flags, MistakesAreTold) {
  struct Case {
    std::vector<std::string> arguments;
    const char* message;
  };
  for (const Case& c : {
           Case{{"--nonsense=1"}, "unknown flag: --nonsense"},
           {{"run"}, "unknown command \"run\""},
           {{"--max-pods=many"},
            "invalid argument \"many\" for \"--max-pods\" flag: strconv.ParseInt: parsing \"many\": invalid "
            "syntax"},
           {{"--max-pods"}, "flag needs an argument: --max-pods"},
           {{"--fail-swap-on=perhaps"}, "strconv.ParseBool: parsing \"perhaps\": invalid syntax"},
           {{"--node-labels=a"}, "malformed pair, expect string=string"},
           {{"--sync-frequency=3"}, "time: missing unit in duration \"3\""},
       }) {
    auto line = ParseCommandLine(c.arguments);
    ASSERT_FALSE(line) << c.arguments[0];
    EXPECT_NE(line.error().message().find(c.message), std::string::npos) << line.error().message();
  }
}

// A value that is not the default, by the type of the field.
std::string Other(bool standard) { return standard ? "false" : "true"; }
std::string Other(int32_t standard) { return std::to_string(standard + 1); }
std::string Other(int64_t standard) { return std::to_string(standard + 1); }
std::string Other(double) { return "0.25"; }
std::string Other(Duration) { return "77s"; }
std::string Other(const std::string&) { return "other"; }
std::string Other(const std::vector<std::string>&) { return "a,b"; }
std::string Other(const StringMap&) { return "a=b,c<d"; }
std::string Other(const std::map<std::string, bool>&) { return "a=true"; }
std::string Other(const std::map<std::string, std::vector<std::string>>&) { return "a:b"; }
std::string Other(const std::vector<ShutdownPeriod>&) { return ""; }
std::string Other(const std::vector<NodeTaint>&) { return "a=b:NoSchedule"; }
std::string Other(const std::vector<MemoryReservation>&) { return "0:memory=1Gi"; }

TEST(Flags, OfAFieldSetThatFieldAlone) {
  const KubeletConfig standard;
  int count = 0;
  for (const Field& field : Fields()) {
    if (field.flag.empty()) continue;
    std::string value = std::visit([&](auto place) { return Other(standard.*place); }, field.place);
    if (std::holds_alternative<In<StringMap>>(field.place)) {
      value = field.flag.starts_with("eviction-") && !field.flag.ends_with("grace-period") &&
                      !field.flag.ends_with("reclaim")
                  ? "a<b"
                  : "a=b";
    }
    auto line = ParseCommandLine({"--" + std::string(field.flag) + "=" + value});
    ASSERT_TRUE(line) << line.error().message();
    KubeletConfig config;
    ASSERT_TRUE(ApplyFlags(line->config_flags, config)) << field.flag;
    for (const Field& other : Fields()) {
      const bool same = std::visit([&](auto place) { return config.*place == standard.*place; }, other.place);
      EXPECT_EQ(same, other.place != field.place) << field.flag << ", " << other.path;
    }
    ++count;
  }
  EXPECT_GT(count, 80);
}

TEST(Flags, OfTheKubeletItself) {
  using F = KubeletFlags;
  const struct {
    const char* flag;
    bool (*is_set)(const F&);
  } cases[] = {
      {"--bootstrap-kubeconfig=/f", [](const F& f) { return f.bootstrap_kubeconfig == "/f"; }},
      {"--cert-dir=/f", [](const F& f) { return f.cert_dir == "/f"; }},
      {"--cloud-provider=external", [](const F& f) { return f.cloud_provider == "external"; }},
      {"--config-dir=/f", [](const F& f) { return f.config_dir == "/f"; }},
      {"--exit-on-lock-contention", [](const F& f) { return f.exit_on_lock_contention; }},
      {"--experimental-allocatable-ignore-eviction",
       [](const F& f) { return f.allocatable_ignores_eviction; }},
      {"--hostname-override=n", [](const F& f) { return f.hostname_override == "n"; }},
      {"--image-credential-provider-bin-dir=/f",
       [](const F& f) { return f.image_credential_provider_bin_dir == "/f"; }},
      {"--image-credential-provider-config=/f",
       [](const F& f) { return f.image_credential_provider_config == "/f"; }},
      {"--lock-file=/f", [](const F& f) { return f.lock_file == "/f"; }},
      {"--maximum-dead-containers=7", [](const F& f) { return f.maximum_dead_containers == 7; }},
      {"--minimum-container-ttl-duration=7s",
       [](const F& f) { return f.minimum_container_ttl == std::chrono::seconds(7); }},
      {"--node-ip=10.0.0.1,fd00::1", [](const F& f) { return f.node_ip == "10.0.0.1,fd00::1"; }},
      {"--pod-infra-container-image=i", [](const F& f) { return f.pod_infra_container_image == "i"; }},
      {"--root-dir=/f", [](const F& f) { return f.root_dir == "/f"; }},
      {"--runtime-cgroups=/f", [](const F& f) { return f.runtime_cgroups == "/f"; }},
  };
  for (const auto& one : cases) {
    EXPECT_FALSE(one.is_set(KubeletFlags{})) << one.flag;
    auto line = ParseCommandLine({one.flag});
    ASSERT_TRUE(line) << line.error().message();
    EXPECT_TRUE(one.is_set(line->flags)) << one.flag;
  }
}

// Whatever the flag: "--flag=" has the empty value or is refused for it, and never takes the next word.
TEST(Flags, AreShownAsGivenOrByDefault) {
  auto given = ParseCommandLine({"--config=/etc/k.yaml", "--max-pods=30", "--node-labels=a=b,c=d",
                                 "--eviction-hard=memory.available<100Mi", "--feature-gates=MemoryQoS=true",
                                 "--register-with-taints=k=v:NoSchedule", "--cluster-dns=10.0.0.1,10.0.0.2",
                                 "--manifest-url-header=Authorization:Bearer x"});
  ASSERT_TRUE(given) << given.error().message();
  StringMap values = FlagValues(*given);
  const std::pair<const char*, const char*> expected[] = {{"config", "/etc/k.yaml"},
                                                          {"max-pods", "30"},
                                                          {"node-labels", "a=b,c=d"},
                                                          {"eviction-hard", "memory.available<100Mi"},
                                                          {"feature-gates", "MemoryQoS=true"},
                                                          {"register-with-taints", "k=v:NoSchedule"},
                                                          {"cluster-dns", "[10.0.0.1,10.0.0.2]"},
                                                          {"manifest-url-header", "CLASSIFIED"},
                                                          {"port", "10250"},
                                                          {"root-dir", "/var/lib/kubelet"},
                                                          {"sync-frequency", "1m0s"},
                                                          {"anonymous-auth", "false"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(values[name], value) << name;
}

TEST(Flags, WithoutAValueTakeNoOther) {
  std::istringstream usage(FlagUsage());
  int count = 0;
  for (std::string word; usage >> word;) {
    if (!word.starts_with("--")) continue;
    const std::string flag = word.substr(0, word.find_first_not_of("-abcdefghijklmnopqrstuvwxyz0123456789"));
    if (flag == "--help" || flag == "--version") continue;
    auto line = ParseCommandLine({flag + "=", "word"});
    ASSERT_FALSE(line) << flag;
    const std::string error = line.error().message();
    const bool refused = error.find("invalid argument \"\" for \"" + flag + "\"") == 0;
    EXPECT_TRUE(refused || error == "unknown command \"word\"") << flag << ": " << error;
    ++count;
  }
  EXPECT_GT(count, 100);
  KubeletConfig config;
  config.cluster_dns = {"10.9.9.9"};
  auto line = ParseCommandLine({"--cluster-dns=", "--hostname-override="});
  ASSERT_TRUE(line) << line.error().message();
  ASSERT_TRUE(ApplyFlags(line->config_flags, config));
  EXPECT_TRUE(config.cluster_dns.empty());
}

}  // namespace
}  // namespace keelson::kubelet
