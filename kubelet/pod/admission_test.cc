#include "kubelet/pod/admission.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"

namespace keelson::kubelet {
namespace {

TEST(Admission, WhatTheNodeCannotOffer) {
  struct Case {
    const char *spec, *reason, *message;
  };
  const std::vector<std::string> allowed = {"kernel.msg*", "net.core.somaxconn"};
  auto sysctl = [](const char* name, const char* more = "") {
    return std::string(R"({"securityContext":{"sysctls":[{"name":")") + name + R"(","value":"1"}]})" + more +
           "}";
  };
  const std::string safe = sysctl("kernel.shm_rmid_forced"), slashes = sysctl("net/ipv4/tcp_syncookies"),
                    listed = sysctl("kernel.msgmax"), exact = sysctl("net.core.somaxconn"),
                    unsafe = sysctl("kernel.shmmax"), node_wide = sysctl("vm.swappiness"),
                    host_net = sysctl("net.ipv4.tcp_syncookies", ",\"hostNetwork\":true"),
                    host_ipc = sysctl("kernel.msgmax", ",\"hostIPC\":true");
  for (const Case& c : {
           Case{"{}", "", ""},
           {safe.c_str(), "", ""},
           {slashes.c_str(), "", ""},
           {listed.c_str(), "", ""},
           {exact.c_str(), "", ""},
           {unsafe.c_str(), "SysctlForbidden", "forbidden sysctl: \"kernel.shmmax\" not allowlisted"},
           {node_wide.c_str(), "SysctlForbidden", "forbidden sysctl: \"vm.swappiness\" not allowlisted"},
           {host_net.c_str(), "SysctlForbidden",
            "forbidden sysctl: \"net.ipv4.tcp_syncookies\" not allowed with host net enabled"},
           {host_ipc.c_str(), "SysctlForbidden",
            "forbidden sysctl: \"kernel.msgmax\" not allowed with host ipc enabled"},
           {R"({"securityContext":{"supplementalGroupsPolicy":"Strict"}})",
            "SupplementalGroupsPolicyNotSupported",
            "SupplementalGroupsPolicy=Strict is not supported in this node"},
           {R"({"securityContext":{"appArmorProfile":{"type":"Unconfined"}}})", "", ""},
           {R"({"containers":[{"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}}}]})",
            "AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host"},
           {R"({"os":{"name":"windows"}})", "PodOSNotSupported",
            "Failed to admit pod as the OS field doesn't match node OS"},
       }) {
    corev1::Pod pod;
    ASSERT_TRUE(api::DecodeJson(std::string(R"({"spec":)") + c.spec + "}", pod));
    auto failure = CheckFeatures(pod, NodeContext(), allowed);
    EXPECT_EQ(failure ? failure->reason : "", c.reason) << c.spec;
    EXPECT_EQ(failure ? failure->message : "", c.message) << c.spec;
  }
}

TEST(Admission, StrictGroupsWhereTheRuntimeCan) {
  corev1::Pod pod;
  ASSERT_TRUE(api::DecodeJson(R"({"spec":{"securityContext":{"supplementalGroupsPolicy":"Strict"}}})", pod));
  NodeContext node;
  node.supplemental_groups_policy = true;
  EXPECT_FALSE(CheckFeatures(pod, node, {}));
}

}  // namespace
}  // namespace keelson::kubelet
