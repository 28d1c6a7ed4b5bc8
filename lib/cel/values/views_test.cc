// JSON trees and API messages as values.
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/codec/codec.h"
#include "lib/api/resource_table.h"
#include "lib/api/testing/random_object.h"
#include "lib/api/types.h"
#include "lib/cel/env.h"
#include "lib/cel/values/json_view.h"
#include "lib/cel/values/message_view.h"

namespace keelson::cel {
namespace {

namespace json = boost::json;

DeclField Field(std::string name, DeclTypePtr type, std::string escaped = {}) {
  if (escaped.empty()) escaped = name;
  return {std::move(name), std::move(escaped), std::move(type), false, false};
}

DeclTypePtr SelfType() {
  DeclTypePtr entry =
      DeclType::Object("self.entries", {Field("key", DeclType::String()), Field("value", DeclType::Int())});
  return DeclType::Object("self",
                          {
                              Field("namespace", DeclType::String(), "__namespace__"),
                              Field("a-b", DeclType::Int(), "a__dash__b"),
                              Field("when", DeclType::DateTime()),
                              Field("day", DeclType::Date()),
                              Field("span", DeclType::Duration()),
                              Field("data", DeclType::Bytes()),
                              Field("ratio", DeclType::Double()),
                              Field("port", DeclType::IntOrString()),
                              Field("nothing", DeclType::String({}, true)),
                              Field("strict", DeclType::String()),
                              Field("labels", DeclType::Map(DeclType::String())),
                              Field("set", DeclType::List(DeclType::Int(), {}, ListSemantics::kSet)),
                              Field("entries", DeclType::List(entry, {}, ListSemantics::kMap, {"key"})),
                              Field("others", DeclType::List(entry, {}, ListSemantics::kMap, {"key"})),
                              Field("wrong", DeclType::Int()),
                              {"secret", "", DeclType::Preserved(), false, false},
                          });
}

class JsonView : public testing::Test {
 protected:
  JsonView() {
    EnvOptions options;
    options.variables = {{"self", type_}, {"oldSelf", type_}};
    env_ = Env::Make(options);
  }

  std::string Outcome(std::string_view expression) {
    auto program = env_->Compile(expression);
    if (!program) return program.error().message();
    Arena arena;
    Activation activation(*env_);
    activation.Set("self", JsonValue(self_, type_.get(), arena));
    activation.Set("oldSelf", JsonValue(old_, type_.get(), arena));
    auto value = (*program)->Evaluate(activation, arena);
    return value ? ToText(*value) : value.error().message();
  }

  DeclTypePtr type_ = SelfType();
  EnvPtr env_;
  json::value self_ = json::parse(
      R"({"namespace": "ns", "a-b": 1, "when": "2024-01-02T03:04:05Z", "day": "2024-01-02", "span": "1h", "data": "aGk=",
    "ratio": 2, "port": "http", "nothing": null, "strict": null, "labels": {"x/y": "z"}, "set": [1, 2], "wrong": "text", "secret": {"a": 1},
    "entries": [{"key": "a", "value": 1}, {"key": "b", "value": 2}], "others": [{"key": "b", "value": 3}, {"key": "c", "value": 4}]})");
  json::value old_ = json::parse(
      R"({"set": [2, 1], "secret": {"a": 2}, "entries": [{"key": "b", "value": 2}, {"key": "a", "value": 1}]})");
};

TEST_F(JsonView, ReadsDeclaredForms) {
  const std::pair<const char*, const char*> cases[] = {
      {"self.__namespace__ + 'x'", "nsx"},
      {"self.a__dash__b + 1", "2"},
      {"self.when.getHours()", "3"},
      {"self.day == timestamp('2024-01-02T00:00:00Z')", "true"},
      {"self.span > duration('59m')", "true"},
      {"self.data == b'hi'", "true"},
      {"self.ratio / 4.0", "0.5"},
      {"type(self.port) == string && self.port == 'http'", "true"},
      {"self.nothing == dyn(null)", "true"},
      {"self.strict == 'x'", "invalid data, got null for schema with nullable=false"},
      {"self.wrong + 1", "invalid data, expected int, got string"},
      {"self.labels['x/y']", "z"},
      {"self.labels.all(k, v, v == 'z')", "true"},
      {"has(self.nothing) && !has(oldSelf.nothing)", "true"},
      {"oldSelf.when == self.when", "no such key: when"},
      {"self.secret == 1", "ERROR: <input>:1:5: undefined field 'secret'\n | self.secret == 1\n | ....^"},
      {"self.unknown == 1", "ERROR: <input>:1:5: undefined field 'unknown'\n | self.unknown == 1\n | ....^"},
      {"self.a-b == 1",
       "ERROR: <input>:1:5: undefined field 'a'\n | self.a-b == 1\n | ....^\n"
       "ERROR: <input>:1:8: undeclared reference to 'b' (in container '')\n | self.a-b == 1\n | .......^"},
  };
  for (const auto& [expression, outcome] : cases) EXPECT_EQ(Outcome(expression), outcome) << expression;
}

TEST_F(JsonView, ComparesAndAddsByListType) {
  const std::pair<const char*, const char*> cases[] = {
      {"self.set == oldSelf.set", "true"},
      {"self.set == [2, 1]", "true"},
      {"[2, 1] == self.set", "false"},
      {"size(self.set + [2, 3])", "3"},
      {"self.entries == oldSelf.entries", "true"},
      {"size(self.entries + self.others)", "3"},
      {"(self.entries + self.others)[1].value", "3"},
      {"self == oldSelf", "false"},
      {"oldSelf == oldSelf", "true"},
  };
  for (const auto& [expression, outcome] : cases) EXPECT_EQ(Outcome(expression), outcome) << expression;
}

TEST_F(JsonView, HiddenFieldsTakePartInComparisons) {
  json::value other = self_;
  other.as_object()["secret"].as_object()["a"] = 5;
  Arena arena;
  EXPECT_FALSE(Equals(JsonValue(self_, type_.get(), arena), JsonValue(other, type_.get(), arena), arena));
  other = self_;
  other.as_object()["undeclared"] = 5;
  EXPECT_FALSE(Equals(JsonValue(self_, type_.get(), arena), JsonValue(other, type_.get(), arena), arena));
}

TEST(ToJson, IsTheInverseOfAView) {
  json::value value = json::parse(R"({"a": [1, 2.5, true, null, "x", {"b": {}}]})");
  Arena arena;
  auto back = ToJson(JsonValue(value, nullptr, arena), arena);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, value);
  EXPECT_FALSE(ToJson(Value::OfType(&types::kInt), arena));
}

// Every kind with random fields, against its JSON.
TEST(MessageView, SaysWhatJsonSays) {
  std::mt19937 random(1);
  for (const api::ResourceInfo& resource : api::Resources()) {
    const auto* descriptor = resource.descriptor();
    if (!descriptor) continue;
    for (int i = 0; i < 5; ++i) {
      std::unique_ptr<api::Message> object(
          google::protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor)->New());
      api::FillRandom(*object, random);
      json::value expected = json::parse(api::EncodeJson(*object));
      Arena arena;
      Value view = MessageValue(*object, arena);
      auto found = ToJson(view, arena);
      ASSERT_TRUE(found) << descriptor->full_name();
      EXPECT_TRUE(Equals(view, JsonValue(expected, nullptr, arena), arena)) << descriptor->full_name() << "\n"
                                                                            << json::serialize(*found) << "\n"
                                                                            << json::serialize(expected);
    }
  }
}

TEST(MessageView, ClaimTemplatesHaveAKind) {
  appsv1::StatefulSet set;
  set.mutable_spec()->add_volume_claim_templates()->mutable_metadata()->set_name("data");
  EnvOptions options;
  options.variables = {{"object", MessageType(set.GetDescriptor(), "StatefulSet", true)}};
  EnvPtr env = Env::Make(options);
  Arena arena;
  for (const char* expression : {"object.spec.volumeClaimTemplates.all(c, c.kind == 'PersistentVolumeClaim')",
                                 "object.spec.volumeClaimTemplates[0].apiVersion == 'v1'"}) {
    auto program = env->Compile(expression);
    ASSERT_TRUE(program) << program.error().message();
    Activation activation(*env);
    activation.Set("object", MessageValue(set, arena, "apps/v1", "StatefulSet"));
    auto value = (*program)->Evaluate(activation, arena);
    ASSERT_TRUE(value) << value.error().message();
    EXPECT_EQ(ToText(*value), "true") << expression;
  }
}

TEST(MessageView, ChecksAndEvaluatesPolicies) {
  corev1::Pod pod;
  pod.mutable_metadata()->set_name("web");
  (*pod.mutable_metadata()->mutable_labels())["app"] = "web";
  auto& container = *pod.mutable_spec()->add_containers();
  container.set_image("registry/app:1");
  (*container.mutable_resources()->mutable_limits())["cpu"].set_string("1500m");
  EnvOptions options;
  options.variables = {{"object", MessageType(pod.GetDescriptor(), "Pod", true)}, {"any", DeclType::Dyn()}};
  EnvPtr env = Env::Make(options);
  const std::pair<const char*, const char*> cases[] = {
      {"object.kind + object.metadata.name", "Podweb"},
      {"object.metadata.labels['app'] == 'web' && !has(object.metadata.annotations)", "true"},
      {"object.spec.containers.all(c, c.image.startsWith('registry/'))", "true"},
      {"quantity(object.spec.containers[0].resources.limits['cpu']).isLessThan(quantity('2'))", "true"},
      {"object.spec.replicas == 1",
       "ERROR: <input>:1:12: undefined field 'replicas'\n | object.spec.replicas == 1\n | ...........^"},
      {"any.spec.replicas == 1", "no such key: replicas"},
      {"any.metadata.map(k, k).exists(k, k == 'name')", "true"},
  };
  for (const auto& [expression, outcome] : cases) {
    auto program = env->Compile(expression);
    if (!program) {
      EXPECT_EQ(program.error().message(), outcome) << expression;
      continue;
    }
    Arena arena;
    Activation activation(*env);
    activation.Set("object", MessageValue(pod, arena, "v1", "Pod"));
    activation.Set("any", MessageValue(pod, arena, "v1", "Pod"));
    auto value = (*program)->Evaluate(activation, arena);
    EXPECT_EQ(value ? ToText(*value) : value.error().message(), outcome) << expression;
  }
}

}  // namespace
}  // namespace keelson::cel
