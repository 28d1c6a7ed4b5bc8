#include "controlplane/controllers/endpoints/hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/quantity.h"

namespace keelson::controllers {
namespace {

// "a:n1 b:n2:no": zone, node, and whether it is ready, of each endpoint; "-" has no zone.
std::vector<discoveryv1::Endpoint> Endpoints(const std::string& text) {
  std::vector<discoveryv1::Endpoint> out;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t first = word.find(':'), second = word.find(':', first + 1);
    discoveryv1::Endpoint& endpoint = out.emplace_back();
    if (word[0] != '-') endpoint.set_zone(word.substr(0, first));
    endpoint.set_node_name(word.substr(first + 1, second - first - 1));
    endpoint.mutable_conditions()->set_ready(second == std::string::npos);
    endpoint.mutable_hints()->add_for_zones()->set_name("of-before");
  }
  return out;
}

std::string Describe(const std::vector<discoveryv1::Endpoint>& endpoints) {
  std::string out;
  for (const auto& endpoint : endpoints) {
    out += out.empty() ? "" : " ";
    for (const auto& zone : endpoint.hints().for_zones()) out += zone.name();
    for (const auto& node : endpoint.hints().for_nodes()) out += "/" + node.name();
    if (!endpoint.has_hints()) out += "none";
  }
  return out;
}

std::string Hint(HintMode mode, const std::string& text, const ZoneShares& shares, std::string& problem) {
  std::vector<discoveryv1::Endpoint> endpoints = Endpoints(text);
  std::vector<discoveryv1::Endpoint*> pointers;
  for (auto& endpoint : endpoints) pointers.push_back(&endpoint);
  problem = SetHints(mode, shares, pointers);
  return Describe(endpoints);
}

TEST(HintModeTest, BySpecAndAnnotation) {
  struct Case {
    const char *distribution, *mode, *older;
    HintMode want;
  };
  for (const Case& c :
       {Case{"", "", "", HintMode::kNone}, Case{"PreferClose", "", "", HintMode::kSameZone},
        Case{"PreferSameZone", "", "", HintMode::kSameZone},
        Case{"PreferSameNode", "", "", HintMode::kSameNode}, Case{"Other", "", "", HintMode::kNone},
        Case{"PreferSameNode", "Auto", "", HintMode::kTopology}, Case{"", "auto", "", HintMode::kTopology},
        Case{"", "", "Auto", HintMode::kTopology}, Case{"", "Auto", "Disabled", HintMode::kNone},
        Case{"PreferClose", "Disabled", "", HintMode::kSameZone}}) {
    corev1::Service service;
    if (*c.distribution) service.mutable_spec()->set_traffic_distribution(c.distribution);
    auto& annotations = *service.mutable_metadata()->mutable_annotations();
    if (*c.mode) annotations["service.kubernetes.io/topology-mode"] = c.mode;
    if (*c.older) annotations["service.kubernetes.io/topology-aware-hints"] = c.older;
    EXPECT_EQ(HintModeOf(service), c.want) << c.distribution << " " << c.mode << " " << c.older;
  }
}

TEST(SetHintsTest, CloseOnesAreGivenToTheirOwn) {
  struct Case {
    HintMode mode;
    const char *endpoints, *want;
  };
  for (const Case& c : {Case{HintMode::kNone, "a:n1 b:n2", "none none"},
                        Case{HintMode::kSameZone, "a:n1 b:n2 a:n3:no -:n4", "a b none none"},
                        Case{HintMode::kSameNode, "a:n1 b:n2 a:n3:no -:n4", "a/n1 b/n2 none /n4"}}) {
    std::string problem;
    EXPECT_EQ(Hint(c.mode, c.endpoints, {}, problem), c.want);
    EXPECT_EQ(problem, "");
  }
}

TEST(SetHintsTest, ZonesGetTheirPart) {
  struct Case {
    const char* what;
    ZoneShares shares;
    const char *endpoints, *want, *problem;
  };
  const ZoneShares even = {{"a", 0.5}, {"b", 0.5}}, uneven = {{"a", 0.75}, {"b", 0.25}};
  const Case cases[] = {
      {"balanced", even, "a:n a:n b:n b:n", "a a b b", ""},
      {"only ready ones", even, "a:n b:n a:n:no", "a b none", ""},
      {"the last of the rich goes to the poor", even, "a:n a:n a:n a:n a:n b:n", "a a a b b b", ""},
      {"a zone without any", even, "a:n a:n a:n a:n", "a a b b", ""},
      {"by their CPUs", uneven, "a:n a:n b:n b:n", "a a b a", ""},
      {"a small part too much stays",
       {{"a", 0.55}, {"b", 0.45}},
       "a:n a:n a:n b:n b:n b:n",
       "a a a b b b",
       ""},
      {"a zone without nodes gives", even, "a:n b:n c:n c:n", "a b b a", ""},
      {"nobody knows the zones",
       {},
       "a:n b:n",
       "none none",
       "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"},
      {"less endpoints than zones", even, "a:n", "none",
       "Insufficient number of endpoints (1 endpoints, 2 zones)"},
      {"an odd number", even, "a:n a:n b:n", "none none none",
       "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (3 "
       "endpoints, 2 zones)"},
      {"without a zone", even, "a:n -:n", "none none", "One or more endpoints do not have a zone specified"},
  };
  for (const Case& c : cases) {
    std::string problem;
    EXPECT_EQ(Hint(HintMode::kTopology, c.endpoints, c.shares, problem), c.want) << c.what;
    EXPECT_EQ(problem, c.problem) << c.what;
  }
}

corev1::Node NodeIn(const std::string& zone, const std::string& cpu, const char* ready = "True",
                    const char* label = nullptr) {
  corev1::Node node = NodeNamed("n", ready);
  if (!zone.empty()) (*node.mutable_metadata()->mutable_labels())["topology.kubernetes.io/zone"] = zone;
  if (label) (*node.mutable_metadata()->mutable_labels())[label] = "";
  if (!cpu.empty()) {
    (*node.mutable_status()->mutable_allocatable())["cpu"] = api::Amount::Parse(cpu)->ToQuantity();
  }
  return node;
}

TEST(SharesOfTest, OfReadyNodesThatDoTheWork) {
  struct Case {
    const char* what;
    std::vector<corev1::Node> nodes;
    ZoneShares want;
  };
  const Case cases[] = {
      {"by CPUs", {NodeIn("a", "1"), NodeIn("a", "500m"), NodeIn("b", "500m")}, {{"a", 0.75}, {"b", 0.25}}},
      {"one zone", {NodeIn("a", "1"), NodeIn("a", "1")}, {}},
      {"none", {}, {}},
      {"not ready",
       {NodeIn("a", "1"), NodeIn("b", "1"), NodeIn("b", "6", "False")},
       {{"a", 0.5}, {"b", 0.5}}},
      {"control planes",
       {NodeIn("a", "1"), NodeIn("b", "1"), NodeIn("", "6", "True", "node-role.kubernetes.io/control-plane")},
       {{"a", 0.5}, {"b", 0.5}}},
      {"a node without a zone", {NodeIn("a", "1"), NodeIn("b", "1"), NodeIn("", "1")}, {}},
      {"a node without CPUs", {NodeIn("a", "1"), NodeIn("b", "1"), NodeIn("b", "")}, {}},
  };
  for (const Case& c : cases) {
    std::vector<std::shared_ptr<const corev1::Node>> nodes;
    for (const corev1::Node& node : c.nodes) nodes.push_back(std::make_shared<corev1::Node>(node));
    EXPECT_EQ(SharesOf(nodes), c.want) << c.what;
  }
  EXPECT_NE(ShareKeyOf(NodeIn("a", "1")), ShareKeyOf(NodeIn("a", "2")));
  EXPECT_EQ(ShareKeyOf(NodeIn("a", "1", "False")), "");
}

}  // namespace
}  // namespace keelson::controllers
