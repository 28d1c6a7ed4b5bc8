#include "kubelet/container/security.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lib/api/codec/codec.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

using Type = cri::SecurityProfile::Type;
using Mode = cri::NamespaceMode;

corev1::Pod PodOf(const std::string& spec) {
  corev1::Pod pod;
  auto decoded =
      api::DecodeJson(R"({"metadata":{"name":"p","namespace":"n","uid":"u"},"spec":)" + spec + "}", pod);
  EXPECT_TRUE(decoded) << spec << decoded.error().message();
  return pod;
}
// Of the pod's only container.
cri::ContainerConfig Apply(const std::string& spec, const NodeContext& node = {},
                           const cri::Image& image = {}) {
  const corev1::Pod pod = PodOf(spec);
  cri::ContainerConfig out;
  auto applied = ApplyContainerSecurity(pod, pod.spec().containers(0), image, node, out);
  EXPECT_TRUE(applied) << spec << applied.error().message();
  return out;
}
std::string WithContext(const std::string& own, const std::string& pods = "{}") {
  return R"({"securityContext":)" + pods + R"(,"containers":[{"name":"c","securityContext":)" + own + "}]}";
}

TEST(Security, NamespacesThatAreShared) {
  struct Case {
    const char* spec;
    Mode network, pid, ipc;
  };
  for (const Case& c : {Case{"{}", Mode::kPod, Mode::kContainer, Mode::kPod},
                        {R"({"shareProcessNamespace":true})", Mode::kPod, Mode::kPod, Mode::kPod},
                        {R"({"hostPID":true})", Mode::kPod, Mode::kNode, Mode::kPod},
                        {R"({"hostIPC":true})", Mode::kPod, Mode::kContainer, Mode::kNode},
                        {R"({"hostNetwork":true})", Mode::kNode, Mode::kContainer, Mode::kPod}}) {
    const cri::NamespaceOptions namespaces = PodNamespaces(PodOf(c.spec).spec());
    EXPECT_EQ(namespaces.network, c.network) << c.spec;
    EXPECT_EQ(namespaces.pid, c.pid) << c.spec;
    EXPECT_EQ(namespaces.ipc, c.ipc) << c.spec;
  }
}

TEST(Security, WhatIsHiddenBelowProcAndSys) {
  for (const char* shown : {R"({"procMount":"Unmasked"})", R"({"privileged":true})"}) {
    const auto config = Apply(WithContext(shown));
    EXPECT_TRUE(config.masked_paths.empty() && config.readonly_paths.empty()) << shown;
  }
  for (const char* hidden : {"{}", R"({"procMount":"Default"})"}) {
    const auto config = Apply(WithContext(hidden));
    const auto& paths = config.masked_paths;
    for (const char* path : {"/proc/kcore", "/proc/interrupts", "/sys/firmware"}) {
      EXPECT_EQ(std::count(paths.begin(), paths.end(), path), 1) << hidden << path;
    }
    EXPECT_EQ(std::count(paths.begin(), paths.end(), "/sys/devices/system/cpu/cpu0/thermal_throttle"),
              PathExists("/sys/devices/system/cpu/cpu0/thermal_throttle") ? 1 : 0);
    EXPECT_EQ(std::count(config.readonly_paths.begin(), config.readonly_paths.end(), "/proc/sys"), 1);
  }
}

TEST(Security, WhatAContainerMayDo) {
  const auto none = Apply(WithContext("{}"));
  EXPECT_FALSE(none.privileged || none.readonly_rootfs || none.no_new_privs);
  const auto all = Apply(WithContext(
      R"({"privileged":true,"readOnlyRootFilesystem":true,"capabilities":{"add":["NET_ADMIN"],"drop":["ALL"]}})"));
  EXPECT_TRUE(all.privileged);
  EXPECT_TRUE(all.readonly_rootfs);
  EXPECT_EQ(all.add_capabilities, (std::vector<std::string>{"NET_ADMIN"}));
  EXPECT_EQ(all.drop_capabilities, (std::vector<std::string>{"ALL"}));
  EXPECT_TRUE(Apply(WithContext(R"({"allowPrivilegeEscalation":false})")).no_new_privs);
  EXPECT_FALSE(Apply(WithContext(R"({"allowPrivilegeEscalation":true})")).no_new_privs);
}

TEST(Security, TheContainersOwnWordHolds) {
  const char* pods =
      R"({"runAsUser":1,"runAsGroup":2,"fsGroup":3,"supplementalGroups":[4],"seLinuxOptions":{"level":"pod"},
          "seccompProfile":{"type":"Unconfined"},"appArmorProfile":{"type":"Localhost","localhostProfile":"pod"}})";
  const auto inherited = Apply(WithContext("{}", pods));
  EXPECT_EQ(inherited.run_as_user, 1);
  EXPECT_EQ(inherited.run_as_group, 2);
  EXPECT_EQ(inherited.supplemental_groups, (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(inherited.selinux->level, "pod");
  EXPECT_EQ(inherited.seccomp->type, Type::kUnconfined);
  EXPECT_EQ(inherited.apparmor->localhost_ref, "pod");
  const auto own = Apply(WithContext(
      R"({"runAsUser":10,"runAsGroup":20,"seLinuxOptions":{"type":"own"},"seccompProfile":{"type":"RuntimeDefault"},
          "appArmorProfile":{"type":"Unconfined"}})",
      pods));
  EXPECT_EQ(own.run_as_user, 10);
  EXPECT_EQ(own.run_as_group, 20);
  EXPECT_EQ(own.selinux->type, "own");
  EXPECT_EQ(own.selinux->level, "") << "as a whole";
  EXPECT_EQ(own.seccomp->type, Type::kRuntimeDefault);
  EXPECT_EQ(own.apparmor->type, Type::kUnconfined);
}

TEST(Security, UsersOfTheImageAndProfilesByDefault) {
  cri::Image numbered, named;
  numbered.uid = 7;
  named.username = "www";
  EXPECT_EQ(Apply(WithContext("{}"), {}, numbered).run_as_user, 7);
  EXPECT_EQ(Apply(WithContext("{}"), {}, named).run_as_username, "www");
  EXPECT_EQ(Apply(WithContext(R"({"runAsUser":0})"), {}, named).run_as_username, "");
  EXPECT_EQ(Apply(WithContext("{}")).seccomp->type, Type::kUnconfined);
  NodeContext node;
  node.seccomp_default = true;
  EXPECT_EQ(Apply(WithContext("{}"), node).seccomp->type, Type::kRuntimeDefault);
  EXPECT_EQ(Apply(WithContext(R"({"privileged":true})"), node).seccomp->type, Type::kUnconfined);
}

}  // namespace
}  // namespace keelson::kubelet
