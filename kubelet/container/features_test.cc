#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kubelet/container/container_config.h"
#include "kubelet/container/env_file.h"
#include "kubelet/container/network_files.h"
#include "kubelet/container/sandbox_config.h"
#include "kubelet/testing/fake_objects.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

template <typename T>
T Parse(const std::string& json) {
  T out;
  auto decoded = api::DecodeJson(json, out);
  EXPECT_TRUE(decoded) << (decoded ? "" : decoded.error().message());
  return out;
}

TEST(RecursiveReadOnly, ByMountAndRuntime) {
  struct Case {
    const char* mount;
    bool supported;
    int wanted;  // -1: refused
  };
  for (const Case& c :
       {Case{R"({"readOnly":true})", true, 0},
        {R"({"readOnly":true,"recursiveReadOnly":"Disabled"})", true, 0},
        {R"({"readOnly":true,"recursiveReadOnly":"IfPossible"})", true, 1},
        {R"({"readOnly":true,"recursiveReadOnly":"IfPossible"})", false, 0},
        {R"({"readOnly":true,"recursiveReadOnly":"Enabled"})", true, 1},
        {R"({"readOnly":true,"recursiveReadOnly":"Enabled"})", false, -1},
        {R"({"recursiveReadOnly":"Enabled"})", true, -1},
        {R"({"readOnly":true,"recursiveReadOnly":"Enabled","mountPropagation":"HostToContainer"})", true,
         -1}}) {
    auto result = RecursiveReadOnly(Parse<corev1::VolumeMount>(c.mount), c.supported);
    EXPECT_EQ(result ? static_cast<int>(*result) : -1, c.wanted) << c.mount << c.supported;
  }
}

TEST(EnvFile, OnlyQuotedValues) {
  struct Case {
    const char *text, *key, *value;  // null: not there; "!": refused
  };
  for (const Case& c : {Case{"A='1'\n", "A", "1"},
                        {"# c\n\n  A='1' # more\nB=''\n", "B", ""},
                        {"A='two\nlines'\nB='x'", "A", "two\nlines"},
                        {"A='two\nlines'\nB='x'", "B", "x"},
                        {"A='$(B) \"'", "A", "$(B) \""},
                        {"A='1'", "B", nullptr},
                        {"", "A", nullptr},
                        {"A=1\n", "A", "!"},
                        {"A=\"1\"\n", "A", "!"},
                        {"A='1\n", "A", "!"},
                        {"A='1'x\n", "A", "!"},
                        {"export\nA='1'", "A", "!"}}) {
    auto found = FindInEnvFile(c.text, c.key);
    std::string got = !found ? "!" : found->value_or("none");
    EXPECT_EQ(got, c.value ? c.value : "none") << c.text;
  }
}

TEST(EnvFile, OfAVolumeThatAContainerWrites) {
  char name[] = "/tmp/env_file_test.XXXXXX";
  std::string dir = ::mkdtemp(name);
  ASSERT_TRUE(WriteFile(dir + "/env", "A='1'\n"));
  ASSERT_EQ(::symlink("/etc/passwd", (dir + "/out").c_str()), 0);
  ASSERT_EQ(::mkfifo((dir + "/pipe").c_str(), 0600), 0);
  ASSERT_TRUE(WriteFile(dir + "/large", std::string(70 << 10, '\n')));
  FakeObjects objects;
  VolumePaths volumes = {{"v", {dir, false, false, ""}}};
  struct Case {
    const char *ref, *problem;
  };
  for (const Case& c :
       {Case{R"("path":"env","key":"A")", ""},
        {R"("path":"env","key":"B")", "environment variable key \"B\" not found in file \"env\""},
        {R"("path":"env","key":"B","optional":true)", ""},
        {R"("path":"absent","key":"A","optional":true)", ""},
        {R"("path":"absent","key":"A")", "couldn't parse env file"},
        {R"("path":"out","key":"A","optional":true)", "couldn't parse env file"},
        {R"("path":"pipe","key":"A")", "couldn't parse env file"},
        {R"("path":"large","key":"A")", "couldn't parse env file"}}) {
    corev1::Pod pod = Parse<corev1::Pod>(
        R"({"metadata":{"namespace":"n"},"spec":{"containers":[{"name":"c","env":[{"name":"X","valueFrom":
           {"fileKeyRef":{"volumeName":"v",)" +
        std::string(c.ref) + "}}}]}]}}");
    auto env = BuildEnv(pod, pod.spec().containers(0), objects, {}, volumes);
    EXPECT_EQ(env ? "" : env.error().message().substr(0, std::string(c.problem).size()), c.problem) << c.ref;
    if (env && std::string(c.ref).find("\"A\"") != std::string::npos && env->size() == 1) {
      EXPECT_EQ(env->front().second, "1");
    }
  }
  (void)RemoveTree(dir);
}

TEST(Dns, LimitsAreToldAndKept) {
  NodeContext node;
  node.cluster_dns = {"10.0.0.10"};
  node.cluster_domain = "cluster.local";
  corev1::Pod many =
      Parse<corev1::Pod>(R"({"metadata":{"namespace":"n"},"spec":{"dnsPolicy":"None","dnsConfig":
      {"nameservers":["1.1.1.1","2.2.2.2","3.3.3.3","4.4.4.4"],"searches":["a","b"]}}})");
  DnsConfig dns = PodDns(many, node, {});
  EXPECT_EQ(dns.servers.size(), 3u);
  ASSERT_EQ(dns.left_out.size(), 1u);
  EXPECT_EQ(dns.left_out[0].first, "DNSConfigForming");
  EXPECT_EQ(
      dns.left_out[0].second,
      "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line "
      "is: 1.1.1.1 2.2.2.2 3.3.3.3");
  for (int i = 0; i < 40; ++i) {
    many.mutable_spec()->mutable_dns_config()->add_searches("d" + std::to_string(i));
  }
  EXPECT_EQ(PodDns(many, node, {}).searches.size(), 32u);
  many.mutable_spec()->mutable_dns_config()->clear_searches();
  for (int i = 0; i < 10; ++i) {
    many.mutable_spec()->mutable_dns_config()->add_searches(std::string(253, static_cast<char>('a' + i)));
  }
  EXPECT_EQ(PodDns(many, node, {}).searches.size(), 8u) << "2048 bytes";
  node.cluster_dns.clear();
  dns = PodDns(Parse<corev1::Pod>(R"({"metadata":{"namespace":"n"}})"), node, {});
  ASSERT_EQ(dns.left_out.size(), 1u);
  EXPECT_EQ(dns.left_out[0].first, "MissingClusterDNS");
}

TEST(Sandbox, NameSeccompAndOverhead) {
  NodeContext node;
  node.paths.root = "/var/lib/kubelet";
  node.cluster_domain = "cluster.local";
  auto build = [&](const std::string& spec) {
    return BuildSandboxConfig(
        Parse<corev1::Pod>(R"({"metadata":{"name":"p","namespace":"n","uid":"u"},"spec":)" + spec + "}"),
        node, {}, "/x", 0);
  };
  auto good = build(R"({"overhead":{"memory":"32Mi","cpu":"250m"},"securityContext":{"seccompProfile":
      {"type":"Localhost","localhostProfile":"profiles/a.json"}}})");
  ASSERT_TRUE(good) << good.error().message();
  EXPECT_EQ(good->overhead.memory_limit_bytes, 32 << 20);
  EXPECT_EQ(good->overhead.cpu_shares, 256);
  EXPECT_EQ(good->seccomp->localhost_ref, "/var/lib/kubelet/seccomp/profiles/a.json");
  for (const char* path : {"../x", "/etc/x", "a/../../x", ""}) {
    EXPECT_FALSE(build(R"({"securityContext":{"seccompProfile":{"type":"Localhost","localhostProfile":")" +
                       std::string(path) + "\"}}}"))
        << path;
  }
  std::string subdomain(50, 's');
  auto late = build(R"({"hostname":"h","setHostnameAsFQDN":true,"subdomain":")" + subdomain + "\"}");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message(),
            "Failed to construct FQDN from Pod hostname and cluster domain, FQDN h." + subdomain +
                ".n.svc.cluster.local is too long (64 characters is the max, 72 characters requested)");
}

class ConfigTest : public ::testing::Test {
 protected:
  Result<cri::ContainerConfig> Build(const std::string& container) {
    pod_ = Parse<corev1::Pod>(R"({"metadata":{"name":"p","namespace":"n","uid":"u"},"spec":{"containers":[)" +
                              container + "]}}");
    cri::Image image;
    auto sub = [](const std::string& volume, const std::string& path, auto&&...) {
      return Result<std::string>(volume + "/" + path);
    };
    ContainerInput input{pod_, pod_.spec().containers(0), image, "ref", 0, volumes_, sub, "", ""};
    input.target_id = target_;
    input.user_ids = user_ids_;
    return BuildContainerConfig(input, objects_, node_);
  }
  corev1::Pod pod_;
  FakeObjects objects_;
  NodeContext node_;
  VolumePaths volumes_ = {{"v", {"/vol", true, false, ""}},
                          {"ro", {"/ro", false, true, ""}},
                          {"image", {"", false, true, "sha256:abc"}}};
  std::string target_;
  std::optional<cri::IdMapping> user_ids_;
};

TEST_F(ConfigTest, Mounts) {
  user_ids_ = cri::IdMapping{65536, 0, 65536};
  auto config = Build(R"({"name":"c","volumeMounts":[{"name":"v","mountPath":"/v"},
      {"name":"ro","mountPath":"/ro"},{"name":"image","mountPath":"/image","subPath":"bin"}]})");
  ASSERT_TRUE(config) << config.error().message();
  ASSERT_EQ(config->mounts.size(), 3u);
  EXPECT_TRUE(config->mounts[0].selinux_relabel);
  EXPECT_FALSE(config->mounts[0].readonly);
  EXPECT_EQ(config->mounts[0].user_ids, user_ids_);
  EXPECT_EQ(config->namespaces.user_ids, user_ids_);
  EXPECT_TRUE(config->mounts[1].readonly) << "as the claim says";
  EXPECT_EQ(config->mounts[2].image, "sha256:abc");
  EXPECT_EQ(config->mounts[2].image_sub_path, "bin");
  EXPECT_EQ(config->mounts[2].host_path, "");
  for (const char* path : {"/abs", "a/../b", ".."}) {
    EXPECT_FALSE(Build(R"({"name":"c","volumeMounts":[{"name":"v","mountPath":"/v","subPath":")" +
                       std::string(path) + "\"}]}"))
        << path;
  }
}

TEST_F(ConfigTest, StopSignalAndDebugTarget) {
  target_ = "main-id";
  const char* const container = R"({"name":"c","lifecycle":{"stopSignal":"SIGUSR1"}})";
  auto config = Build(container);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->stop_signal, "") << "the feature gate is off";
  node_.stop_signals = true;
  config = Build(container);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->stop_signal, "SIGUSR1");
  EXPECT_EQ(config->namespaces.pid, cri::NamespaceMode::kTarget);
  EXPECT_EQ(config->namespaces.target_id, "main-id");
}

}  // namespace
}  // namespace keelson::kubelet
