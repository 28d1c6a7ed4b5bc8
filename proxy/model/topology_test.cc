#include "proxy/model/topology.h"

#include <gtest/gtest.h>

#include <list>

namespace keelson::proxy {
namespace {

// "1" ready, "1t" terminating but serving, "1d" neither; then "*": on this node, "@z,y": zone hints,
// "#n": node hint.
Endpoint Parse(const std::string& text) {
  Endpoint out;
  size_t at = 0;
  while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) ++at;
  out.ip = *IpAddress::Parse("10.1.0." + text.substr(0, at));
  out.ready = out.serving = true;
  std::vector<std::string>* hints = nullptr;
  for (; at < text.size(); ++at) {
    char c = text[at];
    if (c == '@') {
      hints = &out.zone_hints;
      hints->emplace_back();
    } else if (c == '#') {
      hints = &out.node_hints;
      hints->emplace_back();
    } else if (c == ',') {
      hints->emplace_back();
    } else if (hints) {
      hints->back() += c;
    } else if (c == '*') {
      out.local = true;
    } else {
      out.ready = false;
      out.serving = out.terminating = c == 't';
    }
  }
  return out;
}

std::string Text(const std::vector<Backend>& backends) {
  std::string out;
  for (const Backend& b : backends) {
    std::string ip = b.ip.ToString();
    out += (out.empty() ? "" : " ") + ip.substr(ip.rfind('.') + 1) + (b.local ? "*" : "");
  }
  return out;
}

struct Case {
  const char* name;
  std::vector<const char*> endpoints;
  const char* policies;  // "i": internal Local, "e": external Local, "x": externally accessible
  const char *cluster, *local;
  bool any = true;
};

class CategorizeTest : public ::testing::TestWithParam<Case> {};

TEST_P(CategorizeTest, Picks) {
  const Case& c = GetParam();
  std::list<Endpoint> endpoints;
  std::vector<EndpointPort> ports;
  for (const char* text : c.endpoints) ports.push_back({&endpoints.emplace_back(Parse(text)), 80});
  ResolvedPort out;
  std::string policies = c.policies;
  out.service.internal_local = policies.find('i') != std::string::npos;
  out.service.external_local = policies.find('e') != std::string::npos;
  if (policies.find('x') != std::string::npos) out.service.node_port = 30000;
  CategorizeEndpoints(ports, {"here", "a"}, out);
  EXPECT_EQ(Text(out.cluster), c.cluster);
  EXPECT_EQ(Text(out.local), c.local);
  EXPECT_EQ(out.has_endpoints, c.any);
}

const Case kCases[] = {
    {"None", {}, "", "", "", false},
    {"AllReady", {"1", "2*"}, "", "1 2*", ""},
    {"NotReady", {"1d", "2"}, "", "2", ""},
    {"OnlyNotReady", {"1d"}, "x", "", "", false},
    {"ReadyBeatsTerminating", {"1t", "2"}, "", "2", ""},
    {"TerminatingIfNoneIsReady", {"1t", "2t", "3d"}, "", "1 2", ""},
    {"Duplicates", {"1", "1*", "2"}, "", "1* 2", ""},
    {"InternalLocalHasNoCluster", {"1", "2*"}, "i", "", "2*"},
    {"InternalLocalWithNodePortHasBoth", {"1", "2*"}, "ix", "1 2*", "2*"},
    {"InternalLocalElsewhere", {"1"}, "i", "", ""},
    {"ExternalLocalNeedsAccess", {"1", "2*"}, "e", "1 2*", ""},
    {"ExternalLocal", {"1", "2*"}, "ex", "1 2*", "2*"},
    {"LocalFallsBackByItself", {"1", "2t*"}, "ex", "1", "2*"},
    {"LocalReadyBeatsTerminating", {"1*", "2t*"}, "ex", "1*", "1*"},
    {"BothFallBack", {"1t", "2t*"}, "ex", "1 2*", "2*"},
    {"ZoneHints", {"1@a", "2@b", "3@a,b"}, "", "1 3", ""},
    {"ZoneHintMissing", {"1@a", "2"}, "", "1 2", ""},
    {"ZoneHintMissingOnUnready", {"1@a", "2@b", "3d"}, "", "1", ""},
    {"NoHintForThisZone", {"1@b", "2@c"}, "", "1 2", ""},
    {"HintOnlyOnUnreadyHere", {"1d@a", "2@b"}, "", "2", ""},
    {"NodeHints", {"1#here", "2#there"}, "", "1", ""},
    {"NodeHintsBeatZones", {"1@a#here", "2@a#there"}, "", "1", ""},
    {"ZonesIfNoNodeHintPointsHere", {"1@a#there", "2@b#other"}, "", "1", ""},
    {"NodeHintMissing", {"1@a#here", "2@a"}, "", "1 2", ""},
    {"HintsDoNotConcernLocal", {"1@a", "2*@b"}, "ex", "1", "2*"},
    {"HintsDoNotConcernTerminating", {"1t@b", "2t@a"}, "", "1 2", ""},
};
INSTANTIATE_TEST_SUITE_P(All, CategorizeTest, ::testing::ValuesIn(kCases),
                         [](const auto& made) { return made.param.name; });

TEST(CategorizeEndpoints, WithoutAZoneZoneHintsSayNothing) {
  Endpoint e = Parse("1@"), f = Parse("2@b");
  ResolvedPort out;
  CategorizeEndpoints({{&e, 80}, {&f, 80}}, {"here", ""}, out);
  EXPECT_EQ(Text(out.cluster), "1 2");
}

TEST(CategorizeEndpoints, UdpRemembersWhoStillAnswers) {
  Endpoint e = Parse("1t"), f = Parse("2@b"), g = Parse("3@a"), h = Parse("4d");
  ResolvedPort out;
  out.service.protocol = kUdp;
  CategorizeEndpoints({{&e, 80}, {&f, 80}, {&g, 80}, {&h, 80}}, {"here", "a"}, out);
  EXPECT_EQ(Text(out.cluster), "3");
  EXPECT_EQ(Text(out.serving), "1 2 3");
}

}  // namespace
}  // namespace keelson::proxy
