// The effect of pod settings inside containers, on a real containerd, runc and kernel.
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <cstdio>
#include <cstdlib>

#include "kubelet/testing/containerd_test.h"
#include "lib/api/codec/codec.h"
#include "lib/api/proto/node_v1.pb.h"

namespace keelson::kubelet {
namespace {

std::string Namespace(const char* kind) {
  std::array<char, 64> target{};
  const auto size = ::readlink((std::string("/proc/self/ns/") + kind).c_str(), target.data(), target.size());
  return std::string(target.data(), size > 0 ? static_cast<size_t>(size) : 0);
}

// A line of /proc/self/status: "CapEff:\t0000000000002000".
std::string StatusLine(const std::string& name) { return "busybox grep " + name + ": /proc/self/status"; }

struct Case {
  const char* name;
  std::string pod, container;  // members of the specs, besides those that all have
  std::string script, says;
};

class SettingsTest : public ContainerdTest {
 protected:
  void Configure(Settings& settings) override { settings.config.cluster_domain = "cluster.test"; }
  void Create(const Case& c) {
    auto members = [](const std::string& text) { return text.empty() ? "" : "," + text; };
    harness_->Create(R"json({"metadata":{"name":")json" + std::string(c.name) +
                     R"json("},"spec":{"terminationGracePeriodSeconds":1)json" + members(c.pod) +
                     R"json(,"containers":[{"name":"main","image":"busybox:test","command":["sh","-c",
                       "trap 'exit 0' TERM; while true; do sleep 0.1; done"])json" +
                     members(c.container) + "}]}}");
  }
  std::string Says(const Case& c) {
    auto result = harness_->backend().Run({"default", c.name, "", "main"}, {"sh", "-c", c.script},
                                          std::chrono::seconds(10), {});
    return result ? result->output : "error: " + result.error().message();
  }
};

TEST_F(SettingsTest, ContainersAreAsTheirPodsAsk) {
  const std::string users = R"("securityContext":{"runAsUser":1000,"runAsGroup":2000,"fsGroup":3000,
      "supplementalGroups":[4000]},"volumes":[{"name":"data","emptyDir":{}}])";
  const std::string data = R"("volumeMounts":[{"name":"data","mountPath":"/data"}])";
  auto own = [](const std::string& context) { return R"("securityContext":{)" + context + "}"; };
  const std::vector<Case> cases = {
      {"host-pid", R"("hostPID":true)", "", "busybox readlink /proc/self/ns/pid", Namespace("pid") + "\n"},
      {"host-ipc", R"("hostIPC":true)", "", "busybox readlink /proc/self/ns/ipc", Namespace("ipc") + "\n"},
      {"shared-pid", R"("shareProcessNamespace":true)", "", "cat /proc/1/comm", "pause\n"},
      {"own-pid", "", "", "cat /proc/1/comm", "sh\n"},
      {"aliases", R"("hostAliases":[{"ip":"192.0.2.7","hostnames":["db","db.example"]}])", "",
       "busybox grep db /etc/hosts", "192.0.2.7\tdb\tdb.example\n"},
      {"dns", R"("dnsPolicy":"None","dnsConfig":{"nameservers":["192.0.2.1"],"searches":["a.example"],
         "options":[{"name":"ndots","value":"2"}]})",
       "", "cat /etc/resolv.conf", "search a.example\nnameserver 192.0.2.1\noptions ndots:2\n"},
      {"hostname", R"("hostname":"h","subdomain":"sub")", "", "hostname", "h\n"},
      {"fqdn", R"("hostname":"h","subdomain":"sub","setHostnameAsFQDN":true)", "", "hostname",
       "h.sub.default.svc.cluster.test\n"},
      {"sysctl",
       R"("securityContext":{"sysctls":[{"name":"net.ipv4.ip_unprivileged_port_start","value":"80"}]})", "",
       "cat /proc/sys/net/ipv4/ip_unprivileged_port_start", "80\n"},
      {"users", users, data,
       "id -u; id -g; for g in 3000 4000; do case \" $(id -G) \" in *\" $g \"*) echo $g; esac; done",
       "1000\n2000\n3000\n4000\n"},
      {"fs-group", users, data, "stat -c %g /data; touch /data/x && stat -c %g /data/x", "3000\n3000\n"},
      {"user-of-one", R"("securityContext":{"runAsUser":1000})", own(R"("runAsUser":5)"), "id -u", "5\n"},
      {"capabilities", "", own(R"("capabilities":{"drop":["ALL"],"add":["NET_RAW"]})"), StatusLine("CapEff"),
       "CapEff:\t0000000000002000\n"},
      {"no-new-privileges", "", own(R"("allowPrivilegeEscalation":false)"), StatusLine("NoNewPrivs"),
       "NoNewPrivs:\t1\n"},
      {"seccomp", "", own(R"("seccompProfile":{"type":"RuntimeDefault"})"), StatusLine("Seccomp"),
       "Seccomp:\t2\n"},
      {"unconfined", "", own(R"("seccompProfile":{"type":"Unconfined"})"), StatusLine("Seccomp"),
       "Seccomp:\t0\n"},
      {"read-only", "", own(R"("readOnlyRootFilesystem":true)"), "touch /tmp/x 2> /dev/null || echo refused",
       "refused\n"},
      {"proc-mount", "", "", "busybox grep -c ' /proc/sys ' /proc/mounts", "1\n"},
      {"proc-mount-unmasked", "", own(R"("procMount":"Unmasked")"),
       "busybox grep -c ' /proc/sys ' /proc/mounts", "0\n"},
      {"app-armor-unconfined", "", own(R"("appArmorProfile":{"type":"Unconfined"})"), "echo ran", "ran\n"},
      {"work-dir", "", R"("workingDir":"/etc")", "cat /proc/1/cwd/hostname", "work-dir\n"},
  };
  for (const Case& c : cases) Create(c);
  for (const Case& c : cases) {
    ASSERT_TRUE(harness_->Await(c.name, IsPodReady)) << harness_->Get(c.name).ShortDebugString();
    EXPECT_EQ(Says(c), c.says) << c.name;
  }
}

TEST_F(SettingsTest, VolumesAreAsTheirPodsAsk) {
  corev1::Secret secret;
  corev1::ConfigMap map;
  ASSERT_TRUE(api::DecodeJson(
      R"({"metadata":{"name":"s","namespace":"default"},"immutable":true,"data":{"k":"d29yZA=="}})", secret));
  ASSERT_TRUE(
      api::DecodeJson(R"({"metadata":{"name":"m","namespace":"default"},"data":{"color":"blue"}})", map));
  ASSERT_TRUE(harness_->api().Create(secret) && harness_->api().Create(map));
  ASSERT_TRUE(MakeDirs(dir_ + "/shared/later"));
  ASSERT_TRUE(mounter_->MakeShared(dir_ + "/shared"));  // as --root-dir is
  auto volume = [](const std::string& source) { return R"("volumes":[{"name":"v",)" + source + "}]"; };
  auto mount = [](const std::string& more) {
    return R"("volumeMounts":[{"name":"v","mountPath":"/v")" + more + "}]";
  };
  const std::string plain = mount("");
  const std::vector<Case> cases = {
      {"modes",
       volume(
           R"("secret":{"secretName":"s","defaultMode":256,"items":[{"key":"k","path":"a/b","mode":288}]})"),
       plain, "cat /v/a/b; stat -L -c ' %a' /v/a/b", "word 440\n"},
      {"default-mode", volume(R"("secret":{"secretName":"s","defaultMode":256})"), plain,
       "stat -L -c %a /v/k", "400\n"},
      {"optional", volume(R"("configMap":{"name":"nothing","optional":true})"), plain, "ls /v", ""},
      {"projected", volume(R"("projected":{"sources":[{"secret":{"name":"s"}},{"configMap":{"name":"m"}},
          {"downwardAPI":{"items":[{"path":"name","fieldRef":{"fieldPath":"metadata.name"}}]}}]})"),
       plain, "cat /v/k /v/color /v/name", "wordblueprojected"},
      {"host-path", volume(R"("hostPath":{"type":"DirectoryOrCreate","path":")" + dir_ + R"(/made"})"), plain,
       "echo x > /v/x; cat /v/x", "x\n"},
      {"pages-of-memory", volume(R"("emptyDir":{"medium":"Memory","sizeLimit":"64Ki"})"), plain,
       "echo $(busybox dd if=/dev/zero of=/v/x bs=1k count=200 2>/dev/null || echo full)", "full\n"},
      {"in-memory", volume(R"("emptyDir":{"medium":"Memory"})"), plain, "stat -c %a /v", "1777\n"},
      {"nothing-to-write", volume(R"("configMap":{"name":"m"})"), plain,
       "touch /v/x 2> /dev/null || echo refused; stat -c %a /v", "refused\n777\n"},
      {"read-only-mount", volume(R"("emptyDir":{})"), mount(R"(,"readOnly":true)"),
       "touch /v/x 2> /dev/null || echo refused", "refused\n"},
      {"from-the-host", volume(R"("hostPath":{"type":"DirectoryOrCreate","path":")" + dir_ + R"(/shared"})"),
       mount(R"(,"mountPropagation":"HostToContainer")"), "busybox grep -c ' /v/later ' /proc/mounts", "1\n"},
  };
  for (const Case& c : cases) Create(c);
  for (const Case& c : cases) {
    ASSERT_TRUE(harness_->Await(c.name, IsPodReady)) << harness_->Get(c.name).ShortDebugString();
  }
  ASSERT_TRUE(mounter_->MountTmpfs(dir_ + "/shared/later", "size=4k"));
  for (const Case& c : cases) EXPECT_EQ(Says(c), c.says) << c.name;
  for (const char* point : {"/shared/later", "/shared"}) {
    EXPECT_TRUE(mounter_->Unmount(dir_ + point, /*lazy=*/true));
  }
  EXPECT_EQ(ReadFile(dir_ + "/made/x").value_or(""), "x\n");
}

TEST_F(SettingsTest, WhatAContainerUsesIsTold) {
  Create({"web", "", R"("resources":{"requests":{"cpu":"10m"}})", "", ""});
  ASSERT_TRUE(harness_->Await("web", IsPodReady)) << harness_->Get("web").ShortDebugString();
  auto text = harness_->backend().ResourceMetrics();
  ASSERT_TRUE(text) << text.error().message();
  auto value = [&](const std::string& sample) {
    const size_t at = text->find(sample + " ");
    return at == std::string::npos ? -1 : std::strtod(text->c_str() + at + sample.size(), nullptr);
  };
  const std::string pod = R"(namespace="default",pod="web"})", container = R"({container="main",)" + pod;
  EXPECT_GT(value("container_cpu_usage_seconds_total" + container), 0) << *text;
  EXPECT_GT(value("container_memory_working_set_bytes" + container), 0) << *text;
  EXPECT_GT(value("container_start_time_seconds" + container), 1e9) << *text;
  EXPECT_GT(value("pod_cpu_usage_seconds_total{" + pod), 0) << *text;
  EXPECT_GT(value("pod_memory_working_set_bytes{" + pod), 0) << *text;
}

TEST_F(SettingsTest, WhoMayNotBeRootWaits) {
  Create({"root", R"("securityContext":{"runAsNonRoot":true})", "", "", ""});
  ASSERT_TRUE(harness_->Await("root", [](const corev1::Pod* pod) {
    if (!pod || pod->status().container_statuses().empty()) return false;
    const auto& waiting = pod->status().container_statuses(0).state().waiting();
    return waiting.reason() == "CreateContainerConfigError" &&
           waiting.message().find("container has runAsNonRoot and image will run as root") == 0;
  })) << harness_->Get("root").ShortDebugString();
}

// The runtime's copy of the request that created the container; JSON of CRI's ContainerConfig.
boost::json::value RequestOf(const std::string& containerd_socket, const std::string& id) {
  const std::string command = "ctr --address " + containerd_socket + " -n k8s.io containers info " + id +
                              R"sh( | sed -n 's/.*"value": "\(eyJ.*\)".*/\1/p' | base64 -d)sh";
  std::string text;
  std::array<char, 4096> part{};
  FILE* pipe = ::popen(command.c_str(), "r");
  while (pipe && ::fgets(part.data(), part.size(), pipe)) text += part.data();
  if (!pipe || ::pclose(pipe) != 0) return nullptr;
  return boost::json::parse(text).at("Metadata").at("Config");
}

TEST_F(SettingsTest, WhatThisKernelCannotEnforceIsHandedOnOrRefused) {
  Create({"web", R"("securityContext":{"seLinuxOptions":{"type":"pod_t","level":"s0:c1,c2"}})",
          R"("securityContext":{"seLinuxOptions":{"user":"u","role":"r","type":"own_t","level":"s0"}})", "",
          ""});
  Create({"profiled", "",
          R"("securityContext":{"appArmorProfile":{"type":"Localhost","localhostProfile":"absent"}})", "",
          ""});
  ASSERT_TRUE(harness_->Await("web", IsPodReady)) << harness_->Get("web").ShortDebugString();
  const std::string id = harness_->Get("web").status().container_statuses(0).container_id();
  const auto request = RequestOf(containerd_->socket(), id.substr(id.rfind('/') + 1));
  ASSERT_TRUE(request.is_object());
  EXPECT_EQ(boost::json::serialize(request.at("linux").at("security_context").at("selinux_options")),
            R"({"user":"u","role":"r","type":"own_t","level":"s0"})");
  if (ReadFile("/sys/module/apparmor/parameters/enabled").value_or("").substr(0, 1) == "Y") return;
  ASSERT_TRUE(AwaitPhase("profiled", "Failed"));
  EXPECT_EQ(harness_->Get("profiled").status().reason(), "AppArmor");
  EXPECT_EQ(harness_->Get("profiled").status().message(),
            "Pod was rejected: Cannot enforce AppArmor: AppArmor is not enabled on the host");
}

// Before containerd 2.0 recursive read-only mounts are not supported.
TEST_F(SettingsTest, ReadOnlyMountsAreSoAllTheWayDownWhereTheRuntimeCan) {
  ASSERT_TRUE(MakeDirs(dir_ + "/outer/inner"));
  ASSERT_TRUE(mounter_->MountTmpfs(dir_ + "/outer/inner", "size=64k"));
  const std::string volumes = R"("volumes":[{"name":"v","hostPath":{"path":")" + dir_ + R"(/outer"}}])";
  auto mounts = [](const std::string& mode) {
    return R"("volumeMounts":[{"name":"v","mountPath":"/v","readOnly":true,"recursiveReadOnly":")" + mode +
           R"("}])";
  };
  const Case plain{"plain", volumes, mounts("Disabled"), "touch /v/inner/x && echo written", "written\n"};
  const Case wish{"wish", volumes, mounts("IfPossible"), "touch /v/x /v/inner/x 2> /dev/null || echo refused",
                  "refused\n"};
  const Case must{"must", volumes, mounts("Enabled"), "touch /v/inner/x 2> /dev/null || echo refused",
                  "refused\n"};
  const auto status = cri_.runtime->Status();
  ASSERT_TRUE(status);
  bool can = false;
  for (const auto& handler : status->handlers) {
    can = can || (handler.name.empty() && handler.recursive_read_only_mounts);
  }
  for (const Case& c : {plain, wish, must}) Create(c);
  for (const Case& c : {plain, wish}) {
    ASSERT_TRUE(harness_->Await(c.name, IsPodReady)) << harness_->Get(c.name).ShortDebugString();
    EXPECT_EQ(Says(c), c.says) << c.name;
    EXPECT_EQ(harness_->Get(c.name).status().container_statuses(0).volume_mounts(0).recursive_read_only(),
              can && c.name == std::string("wish") ? "Enabled" : "Disabled");
  }
  ASSERT_TRUE(harness_->Await("must", [can](const corev1::Pod* pod) {
    if (can || !pod || pod->status().container_statuses().empty()) return can && IsPodReady(pod);
    return pod->status().container_statuses(0).state().waiting().message() ==
           "volume \"v\" requested recursive read-only mode, but it is not supported by the runtime";
  })) << harness_->Get("must").ShortDebugString();
  if (can) {
    EXPECT_EQ(Says(must), must.says);
  }
  EXPECT_TRUE(mounter_->Unmount(dir_ + "/outer/inner", /*lazy=*/true));
}

TEST_F(SettingsTest, OverheadOfARuntimeClassIsRoomForThePod) {
  api::node::v1::RuntimeClass runtime_class;
  runtime_class.mutable_metadata()->set_name("heavy");
  runtime_class.set_handler("runc");
  ASSERT_TRUE(harness_->api().Create(runtime_class));
  Create({"web", R"("runtimeClassName":"heavy","overhead":{"memory":"16Mi"})",
          R"("resources":{"limits":{"memory":"32Mi"}})", "", ""});
  ASSERT_TRUE(harness_->Await("web", IsPodReady)) << harness_->Get("web").ShortDebugString();
  const std::string pod = root_ + "/kubepods/burstable/pod" + harness_->Get("web").metadata().uid();
  EXPECT_EQ(linux_cgroups_->Usage(pod).memory_limit_bytes, 48u << 20);
}

}  // namespace
}  // namespace keelson::kubelet
