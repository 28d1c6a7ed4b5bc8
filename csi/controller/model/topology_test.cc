#include "csi/controller/model/topology.h"

#include <gmock/gmock.h>

#include "lib/api/codec/codec.h"

namespace keelson::csi::controller {
namespace {

using ::testing::HasSubstr;

const std::vector<TopologyNode> kNodes{{"n1", {{"zone", "a"}, {"rack", "1"}}, {"zone", "rack"}},
                                       {"n2", {{"zone", "b"}, {"rack", "1"}}, {"zone", "rack"}},
                                       {"n3", {{"zone", "b"}, {"rack", "1"}}, {"zone", "rack"}},
                                       {"n4", {{"zone", "c"}}, {"zone", "rack"}},
                                       {"n5", {}, {}}};

std::string Text(const google::protobuf::RepeatedPtrField<v1::Topology>& topologies) {
  std::string out;
  for (const v1::Topology& one : topologies) {
    if (!out.empty()) out += ' ';
    for (const auto& [key, value] : Segments(one.segments().begin(), one.segments().end())) {
      out += key[0] + value;
    }
  }
  return out;
}

storagev1::StorageClass ClassWith(const std::string& allowed) {
  storagev1::StorageClass out;
  EXPECT_TRUE(api::DecodeJson(R"({"allowedTopologies":)" + allowed + "}", out));
  return out;
}

struct Case {
  std::string allowed, node;
  TopologyOptions options;
  std::string requisite, preferred;  // empty: no requirement
  std::string error;
};

TEST(TopologyTest, Requirements) {
  const std::string zones =
      R"([{"matchLabelExpressions":[{"key":"zone","values":["b","a"]},{"key":"rack","values":["1","2"]}]}])";
  const Case cases[] = {
      {"[]", "", {}, "r1za r1zb", "", ""},  // preferred: by the claim's name
      {"[]", "", {.strict = false, .immediate = false}, "", "", ""},
      {"[]", "n2", {}, "r1za r1zb", "r1zb r1za", ""},
      {"[]", "n2", {.strict = true}, "r1zb", "r1zb", ""},
      {zones, "n1", {}, "r1za r1zb r2za r2zb", "r1za r1zb r2za r2zb", ""},
      {zones, "n1", {.strict = true}, "r1za", "r1za", ""},
      {R"([{"matchLabelExpressions":[{"key":"zone","values":["b"]}]}])",
       "n1",
       {.strict = true},
       "",
       "",
       "is not in allowed topologies: [map[zone:b]]"},
      {R"([{"matchLabelExpressions":[{"key":"zone","values":["b"]}]}])",
       "n1",
       {},
       "",
       "",
       "is not in requisite"},
      {"[]", "n4", {}, "", "", "does not match topology keys from CSINode [zone rack]"},
      {"[]", "n5", {}, "", "", "no topology key found for node n5"},
      {"[]", "gone", {}, "", "", "no topology key found for node gone"},
  };
  for (const Case& c : cases) {
    const auto made =
        RequireTopology("data", ClassWith(c.allowed).allowed_topologies(), c.node, kNodes, c.options);
    SCOPED_TRACE(c.allowed + " " + c.node);
    if (!c.error.empty()) {
      ASSERT_FALSE(made);
      EXPECT_THAT(made.error().message(), HasSubstr(c.error));
      continue;
    }
    ASSERT_TRUE(made) << made.error().message();
    ASSERT_EQ(made->has_value(), !c.requisite.empty());
    if (!*made) continue;
    EXPECT_EQ(Text((*made)->requisite()), c.requisite);
    if (!c.preferred.empty()) {
      EXPECT_EQ(Text((*made)->preferred()), c.preferred);
    }
  }
  EXPECT_THAT(RequireTopology("data", {}, "", {{"n5", {}, {}}}, {}).error().message(),
              HasSubstr("no available topology found"));
}

TEST(TopologyTest, SpreadsTheVolumesOfAStatefulSet) {
  EXPECT_EQ(SpreadingOffset("data-web-1"), SpreadingOffset("data-web-0") + 1);
  EXPECT_EQ(SpreadingOffset("log-web-1"), SpreadingOffset("data-web-1"));
  EXPECT_NE(SpreadingOffset("data-web-1"), SpreadingOffset("data-db-1"));
  EXPECT_EQ(SpreadingOffset("a"), 0x050c5d7eU);  // FNV-1 of "a"
}

TEST(TopologyTest, Affinity) {
  google::protobuf::RepeatedPtrField<v1::Topology> accessible;
  EXPECT_FALSE(NodeAffinity(accessible));
  (*accessible.Add()->mutable_segments())["zone"] = "a";
  (*accessible.Add()->mutable_segments())["zone"] = "b";
  const auto affinity = NodeAffinity(accessible);
  ASSERT_TRUE(affinity);
  EXPECT_EQ(affinity->required().node_selector_terms_size(), 2);
  corev1::PersistentVolume volume;
  EXPECT_FALSE(IsReachable(volume, {{"zone", "a"}}));
  *volume.mutable_spec()->mutable_node_affinity() = *affinity;
  EXPECT_TRUE(IsReachable(volume, {{"zone", "a"}}));
  EXPECT_TRUE(IsReachable(volume, {{"zone", "b"}, {"rack", "1"}}));
  EXPECT_FALSE(IsReachable(volume, {{"zone", "c"}}));
  EXPECT_FALSE(IsReachable(volume, {}));
}

}  // namespace
}  // namespace keelson::csi::controller
