#include "lib/api/openapi/descriptions.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "lib/api/openapi/parts.h"
#include "lib/api/type_table.h"
#include "lib/api/types.h"

namespace keelson::api {
namespace {

constexpr size_t kLongest = 250;

// All types that the OpenAPI documents refer to.
std::set<const Descriptor*> ServedTypes() {
  std::set<const Descriptor*> types;
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const ResourceInfo& info : Resources()) {
    if (seen.emplace(info.group, info.version).second) types.merge(TypesOf(info.group, info.version, {}));
  }
  return types;
}

// Checks that a text is a sentence, fits a screen and contains nothing that JSON would escape.
std::string FaultOf(std::string_view text) {
  if (text.empty()) return "missing";
  if (text.size() > kLongest) return "over " + std::to_string(kLongest) + " characters";
  if (text.back() != '.') return "does not end with a full stop";
  if (text.front() >= 'a' && text.front() <= 'z') return "starts with a small letter";
  if (text.find("  ") != std::string_view::npos) return "has two spaces in a row";
  bool plain = std::all_of(text.begin(), text.end(),
                           [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; });
  return plain ? "" : "has a character that is not plain text";
}

TEST(Descriptions, EveryServedTypeAndFieldHasOne) {
  std::set<const Descriptor*> types = ServedTypes();
  EXPECT_GT(types.size(), 400u);
  for (const Descriptor* type : types) {
    EXPECT_EQ(FaultOf(DescriptionOf(type)), "") << type->full_name();
    if (InfoOf(type).form != JSON_OBJECT) continue;
    for (const JsonKey& key : InfoOf(type).keys) {
      EXPECT_EQ(FaultOf(DescriptionOf(key.field->descriptor)), "") << key.field->descriptor->full_name();
    }
  }
}

TEST(Descriptions, BelongToTheirFields) {
  const Descriptor* pod_spec = corev1::PodSpec::descriptor();
  auto says = [&](const char* field, const char* word) {
    return DescriptionOf(pod_spec->FindFieldByName(field)).find(word) != std::string_view::npos;
  };
  // The first field, one in the middle and the last: catches a shifted table.
  EXPECT_TRUE(says("volumes", "olumes"));
  EXPECT_TRUE(says("node_name", "node"));
  EXPECT_TRUE(says("scheduling_group", "Group"));
  EXPECT_NE(DescriptionOf(appsv1::Deployment::descriptor()), DescriptionOf(appsv1::DaemonSet::descriptor()));
}

TEST(Descriptions, AbsentOnesAreEmpty) {
  EXPECT_EQ(DescriptionOf(google::protobuf::FileOptions::descriptor()), "");
  const auto* entry = corev1::ConfigMap::descriptor()->FindFieldByName("data")->message_type();
  EXPECT_EQ(DescriptionOf(entry), "");
  EXPECT_EQ(DescriptionOf(entry->field(0)), "");
}

}  // namespace
}  // namespace keelson::api
