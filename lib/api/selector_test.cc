#include "lib/api/selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/api/proto/batch_v1.pb.h"

namespace keelson::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

LabelMap Labels(std::initializer_list<std::pair<std::string, std::string>> labels) {
  LabelMap map;
  for (const auto& [key, value] : labels) map[key] = value;
  return map;
}

TEST(LabelSelector, Matches) {
  LabelMap labels = Labels({{"app", "web"}, {"tier", "a"}, {"x", "5"}, {"empty", ""}});
  static constexpr std::pair<const char*, bool> kCases[] = {
      {"", true},
      {"app=web", true},
      {"app==web", true},
      {"app=db", false},
      {"app!=db", true},
      {"no!=db", true},
      {"app!=web", false},
      {"tier in (a,b)", true},
      {"tier in (b)", false},
      {"tier notin (b, c)", true},
      {"no notin (b)", true},
      {"tier notin (a)", false},
      {"no in (a)", false},
      {"app", true},
      {"!app", false},
      {"!no", true},
      {" app = web , x>3", true},
      {"x>5", false},
      {"x<6", true},
      {"app>1", false},
      {"empty=", true},
      {"app=", false},
      {"empty in (,a)", true},
      {"app=web,tier=b", false},
      {"in=1", false},
      {"example.com/a!=b", true},
  };
  for (const auto& [text, want] : kCases) {
    auto selector = LabelSelector::Parse(text);
    ASSERT_TRUE(selector) << text << ": " << selector.error().message();
    EXPECT_EQ(selector->Matches(labels), want) << text;
    auto again = LabelSelector::Parse(selector->ToString());
    ASSERT_TRUE(again) << selector->ToString();
    EXPECT_EQ(again->ToString(), selector->ToString());
  }
}

TEST(LabelSelector, ErrorsInUpstreamsWords) {
  static constexpr std::pair<const char*, const char*> kCases[] = {
      {"a=b,", "found '', expected: identifier after ','"},
      {"=b", "found '=', expected: !, identifier, or 'end of string'"},
      {"a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"},
      {"a=b c", "found 'c', expected: ',' or 'end of string'"},
      {"a in b", "unable to parse requirement: found 'b' expected: '('"},
      {"a in (b", "unable to parse requirement: found '', expected: ',', ')' or identifier"},
      {"a>b", "for 'Gt', 'Lt' operators, the value must be an integer"},
      {"a=-b", "Invalid value: \"-b\": a valid label must be"},
      {"-a=b", "<nil>: Invalid value: \"-a\": name part must consist of"},
      {"/a", "prefix part must be non-empty"},
  };
  for (const auto& [text, message] : kCases) {
    auto selector = LabelSelector::Parse(text);
    ASSERT_FALSE(selector) << text;
    EXPECT_EQ(selector.error().code(), Code::kBadRequest);
    EXPECT_THAT(selector.error().message(), HasSubstr(message));
  }
}

TEST(LabelSelector, FromApi) {
  metav1::LabelSelector api;
  EXPECT_TRUE(LabelSelector::From(api)->IsEverything());
  EXPECT_FALSE(LabelSelector::Nothing().Matches({}));
  EXPECT_FALSE(LabelSelector::Nothing().IsEverything());
  (*api.mutable_match_labels())["b"] = "1";
  auto& expression = *api.add_match_expressions();
  expression.set_key("a");
  expression.set_operator_("In");
  EXPECT_FALSE(LabelSelector::From(api));
  expression.add_values("y");
  expression.add_values("x");
  EXPECT_EQ(LabelSelector::From(api)->ToString(), "a in (x,y),b=1");
  expression.set_operator_("Near");
  EXPECT_EQ(LabelSelector::From(api).error().message(), "\"Near\" is not a valid label selector operator");
}

TEST(FieldSelector, ParseAndMatch) {
  corev1::Pod pod;
  pod.mutable_metadata()->set_name("a");
  pod.mutable_metadata()->set_namespace_("ns");
  pod.mutable_spec()->set_node_name("n1");
  pod.mutable_status()->set_phase("Running");
  static constexpr std::pair<const char*, bool> kCases[] = {
      {"", true},
      {"metadata.name=a", true},
      {"metadata.name==a,metadata.namespace=ns", true},
      {"spec.nodeName!=n1", false},
      {"status.phase!=Failed,spec.nodeName=n1", true},
      {"spec.hostNetwork=false", true},
      {"status.podIP=", true},
      {"spec.host=n1", true},
      {"spec.foo=1", false},
  };
  for (const auto& [text, want] : kCases) {
    auto selector = FieldSelector::Parse(text);
    ASSERT_TRUE(selector) << text;
    EXPECT_EQ(Matches(*selector, pod), want) << text;
  }
  EXPECT_EQ(FieldSelector::Parse("a=x\\,y\\=z,b!=c")->terms[0].value, "x,y=z");
  EXPECT_EQ(FieldSelector::Parse("a=x\\,y,b!=c")->ToString(), "a=x\\,y,b!=c");
  EXPECT_EQ(FieldSelector::Parse("bogus").error().message(),
            "invalid selector: 'bogus'; can't understand 'bogus'");
  EXPECT_FALSE(FieldSelector::Parse("a=b\\c"));
  EXPECT_FALSE(FieldSelector::Parse("a!b"));
}

TEST(FieldSelector, FieldsByKind) {
  EXPECT_THAT(SelectableFields(corev1::Node::descriptor()),
              ElementsAre("metadata.name", "spec.unschedulable"));
  EXPECT_THAT(SelectableFields(corev1::Secret::descriptor()),
              ElementsAre("metadata.name", "metadata.namespace", "type"));
  EXPECT_THAT(SelectableFields(batch::v1::Job::descriptor()),
              ElementsAre("metadata.name", "metadata.namespace", "status.successful"));
  corev1::Event event;
  event.set_reporting_component("kubelet");
  EXPECT_EQ(SelectableField(event, "source"), "kubelet");
  event.mutable_involved_object()->set_kind("Pod");
  EXPECT_EQ(SelectableField(event, "involvedObject.kind"), "Pod");
  EXPECT_EQ(SelectableField(event, "involvedObject.labels"), std::nullopt);
  corev1::Node node;
  EXPECT_EQ(SelectableField(node, "spec.unschedulable"), "false");
  EXPECT_EQ(SelectableField(node, "metadata.namespace"), std::nullopt);
  batch::v1::Job job;
  job.mutable_status()->set_succeeded(3);
  EXPECT_EQ(SelectableField(job, "status.successful"), "3");
}

}  // namespace
}  // namespace keelson::api
