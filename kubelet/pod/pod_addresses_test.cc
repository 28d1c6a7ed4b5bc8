#include <gtest/gtest.h>

#include "kubelet/container/field_value.h"
#include "kubelet/pod/pod_sync_task.h"
#include "lib/api/codec/codec.h"

namespace keelson::kubelet {
namespace {

using Ips = std::vector<std::string>;

// What variables and volumes say does not wait for the API to show it.
TEST(PodAddresses, AreTheNodesAndTheSandboxes) {
  const struct {
    const char *spec, *status;
    Ips sandbox, node;
    const char *pod_ip, *pod_ips, *host_ip, *host_ips;
  } cases[] = {
      {R"("hostNetwork":true)", "{}", {}, {"10.7.0.1"}, "10.7.0.1", "10.7.0.1", "10.7.0.1", "10.7.0.1"},
      {R"("hostNetwork":true)",
       "{}",
       {},
       {"10.7.0.1", "fd00::7"},
       "10.7.0.1",
       "10.7.0.1,fd00::7",
       "10.7.0.1",
       "10.7.0.1,fd00::7"},
      {R"("hostNetwork":true)",
       R"({"hostIP":"10.9.9.9","podIPs":[{"ip":"10.9.9.9"}]})",
       {},
       {"10.7.0.1"},
       "10.7.0.1",
       "10.7.0.1",
       "10.7.0.1",
       "10.7.0.1"},
      {R"("hostNetwork":false)",
       "{}",
       {"10.1.0.5", "fd00:1::5"},
       {"fd00::7", "10.7.0.1"},
       "10.1.0.5",
       "10.1.0.5,fd00:1::5",
       "fd00::7",
       "fd00::7,10.7.0.1"},
      {R"("hostNetwork":false)", "{}", {}, {"10.7.0.1"}, "", "", "10.7.0.1", "10.7.0.1"},
  };
  for (const auto& c : cases) {
    corev1::Pod pod;
    ASSERT_TRUE(
        api::DecodeJson(std::string(R"({"spec":{)") + c.spec + R"(},"status":)" + c.status + "}", pod));
    NodeContext node;
    node.node_ips = c.node;
    const corev1::Pod seen = PodWithAddresses(pod, node, c.sandbox);
    const std::pair<const char*, const char*> values[] = {{"status.podIP", c.pod_ip},
                                                          {"status.podIPs", c.pod_ips},
                                                          {"status.hostIP", c.host_ip},
                                                          {"status.hostIPs", c.host_ips}};
    for (const auto& [path, value] : values) EXPECT_EQ(*FieldValue(seen, path), value) << path << c.spec;
  }
}

}  // namespace
}  // namespace keelson::kubelet
