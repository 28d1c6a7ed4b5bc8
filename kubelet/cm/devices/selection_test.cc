#include "kubelet/cm/devices/selection.h"

#include <gtest/gtest.h>

#include "kubelet/cm/devices/hints.h"
#include "kubelet/cm/devices/testing/fake_plugin.h"

namespace keelson::kubelet::devices {
namespace {

Ids IdsOf(const DeviceMap& devices) {
  Ids out;
  for (const auto& [id, device] : devices) out.insert(id);
  return out;
}

TopologyHint At(std::vector<size_t> nodes) {
  TopologyHint hint{NumaMask(), true};
  for (size_t node : nodes) hint.nodes->set(node);
  return hint;
}

struct Choice {
  const char* what;
  std::vector<std::string> devices;
  Ids reusable;
  size_t required;
  TopologyHint affinity;
  Ids preferred;
  Ids offered, taken;  // what the plugin is asked about, beside what is taken anyway; the outcome
};

TEST(ChooseDevices, InUpstreamsOrder) {
  for (
      const Choice& c : std::vector<Choice>{
          {"any", {"a", "b", "c"}, {}, 2, {}, {}, {"a", "b", "c"}, {"a", "b"}},
          {"preferred", {"a", "b", "c"}, {}, 2, {}, {"b", "c"}, {"a", "b", "c"}, {"b", "c"}},
          {"too few preferred", {"a", "b", "c"}, {}, 2, {}, {"c"}, {"a", "b", "c"}, {"a", "c"}},
          {"too many preferred", {"a", "b", "c"}, {}, 1, {}, {"b", "c"}, {"a", "b", "c"}, {"b"}},
          {"preferred that is not free", {"a", "b"}, {}, 1, {}, {"x"}, {"a", "b"}, {"a"}},
          {"reused", {"a", "b"}, {"r", "s"}, 2, {}, {}, {}, {"r", "s"}},
          {"reused first", {"a", "b"}, {"r"}, 2, {}, {"b"}, {"a", "b"}, {"b", "r"}},
          {"near", {"a:0", "b:1", "c:1", "d"}, {}, 1, At({1}), {}, {"b", "c"}, {"b"}},
          {"preferred among the near", {"a:0", "b:1", "c:1"}, {}, 1, At({1}), {"a", "c"}, {"b", "c"}, {"c"}},
          {"all the near", {"a:0", "b:1", "c:1"}, {}, 2, At({1}), {"a"}, {}, {"b", "c"}},
          {"all the near, then others", {"a:0", "b:1", "d:0"}, {}, 2, At({1}), {"d"}, {"a", "d"}, {"b", "d"}},
          {"far before nowhere", {"a", "b:1", "d:0"}, {}, 2, At({1}), {}, {"a", "d"}, {"b", "d"}},
          {"near to two nodes", {"a:0", "b:0,1", "c:"}, {}, 1, At({1}), {}, {}, {"b"}},
          {"reused counts before the near", {"a:0", "b:0"}, {"r"}, 2, At({0}), {"b"}, {"a", "b"}, {"b", "r"}},
      }) {
    SCOPED_TRACE(c.what);
    DeviceMap devices = Devices(c.devices);
    DeviceRequest request{"example.com/dev", c.required, c.reusable, IdsOf(devices), devices, c.affinity};
    auto plan = PlanDevices(request);
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_EQ(plan->offered, c.offered);
    EXPECT_EQ(ChooseDevices(*plan, c.preferred), c.taken);
  }
}

TEST(ChooseDevices, NotEnough) {
  DeviceMap devices = Devices({"a", "b"});
  auto plan = PlanDevices({"example.com/dev", 4, {"r"}, IdsOf(devices), devices, {}});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message(),
            "requested number of devices unavailable for example.com/dev. Requested: 3, Available: 2");
}

// "0+1*" is the preferred set of nodes 0 and 1.
std::string Text(const std::vector<TopologyHint>& hints) {
  std::string out;
  for (const TopologyHint& hint : hints) {
    std::string nodes;
    for (size_t node = 0; node < hint.nodes->size(); ++node) {
      if (hint.nodes->test(node)) nodes += (nodes.empty() ? "" : "+") + std::to_string(node);
    }
    out += (out.empty() ? "" : " ") + nodes + (hint.preferred ? "*" : "");
  }
  return out;
}

struct HintCase {
  const char* what;
  std::vector<std::string> devices;
  Ids available, reusable;
  size_t request;
  const char* hints;
};

TEST(DeviceHints, OnTwoNodes) {
  for (const HintCase& c : std::vector<HintCase>{
           {"one anywhere", {"a:0", "b:1"}, {"a", "b"}, {}, 1, "0* 1* 0+1"},
           {"one, the other is taken", {"a:0", "b:1"}, {"b"}, {}, 1, "1* 0+1"},
           {"two across", {"a:0", "b:1"}, {"a", "b"}, {}, 2, "0+1*"},
           {"two on one node", {"a:0", "b:0", "c:1", "d:1"}, {"a", "b", "c", "d"}, {}, 2, "0* 1* 0+1"},
           // Could have been on one node, were none taken: then both is not preferred.
           {"two across, as others took", {"a:0", "b:0", "c:1", "d:1"}, {"a", "c"}, {}, 2, "0+1"},
           {"near to both nodes", {"a:0,1"}, {"a"}, {}, 1, "0* 1* 0+1"},
           {"a reused one pins", {"a:0", "b:0", "c:1"}, {"b", "c"}, {"a"}, 1, "0* 0+1"},
           {"reused and new", {"a:0", "b:1"}, {"b"}, {"a"}, 2, "0+1*"},
           {"reused without topology", {"a", "b:1"}, {"b"}, {"a"}, 1, "1* 0+1"},
           {"devices that are nowhere do not count", {"a:0", "b"}, {"a", "b"}, {}, 2, ""},
       }) {
    SCOPED_TRACE(c.what);
    EXPECT_EQ(Text(DeviceHints(Devices(c.devices), c.available, c.reusable, c.request, {1, 2, 3})), c.hints);
  }
}

TEST(DeviceHints, InTheOrderOfTheSets) {
  EXPECT_EQ(Text(DeviceHints(Devices({"a:0", "b:1", "c:2"}), {"a", "b", "c"}, {}, 2, {1, 2, 4, 3, 5, 6, 7})),
            "0+1* 0+2* 1+2* 0+1+2");
  EXPECT_EQ(Text(DeviceHints(Devices({"a:0"}), {"a"}, {}, 1, {})), "");
  // A node that the machine does not have.
  EXPECT_EQ(Text(DeviceHints(Devices({"a:9"}), {"a"}, {}, 1, {1})), "");
}

}  // namespace
}  // namespace keelson::kubelet::devices
