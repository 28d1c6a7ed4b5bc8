// Checks that the fixtures set every field of the stored kinds, except those listed with a reason in
// uncovered.txt.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "lib/api/codec/codec.h"
#include "lib/api/scheme.h"
#include "lib/base/file.h"
#include "tests/api/fixture.h"

namespace keelson::apitest {
namespace {

using google::protobuf::FieldDescriptor;

// "core.v1.PodSpec.hostname", with JSON's spelling of names.
std::string NameOf(const FieldDescriptor& field) {
  const std::string& name = field.full_name();
  const std::string prefix = "keelson.api.";
  return name.compare(0, prefix.size(), prefix) == 0 ? name.substr(prefix.size()) : name;
}

// Types with a scalar JSON form.
bool IsLeaf(const api::Descriptor& descriptor) {
  const std::string& package = descriptor.file()->package();
  if (package.find("keelson.api.") != 0) return true;
  static const std::set<std::string> kLeaves = {
      "Time", "MicroTime", "FieldsV1", "Timestamp", "JSONSchemaProps", "ManagedFieldsEntry", "Verbs"};
  return kLeaves.count(descriptor.name()) > 0 || package == "keelson.api.resource" ||
         package == "keelson.api.intstr" || package == "keelson.api.runtime";
}

void Reachable(const api::Descriptor& descriptor, std::set<const api::Descriptor*>& seen,
               std::set<std::string>& out) {
  if (IsLeaf(descriptor) || !seen.insert(&descriptor).second) return;
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    if (!descriptor.options().map_entry()) out.insert(NameOf(field));
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) Reachable(*field.message_type(), seen, out);
  }
}

void Mark(const api::Message& message, std::set<std::string>& out) {
  if (IsLeaf(*message.GetDescriptor())) return;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    out.insert(NameOf(*field));
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      Mark(reflection.GetMessage(message, field), out);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      Mark(reflection.GetRepeatedMessage(message, field, i), out);
    }
  }
}

// Removes <matchers>, which no field can hold.
json::value Plain(const json::value& value) {
  if (value.is_object()) {
    json::object out;
    for (const auto& item : value.as_object()) {
      bool matcher = item.value().is_string() && item.value().as_string().starts_with("<");
      if (!matcher) out[item.key()] = Plain(item.value());
    }
    return out;
  }
  if (!value.is_array()) return value;
  json::array out;
  for (const json::value& one : value.as_array()) {
    if (!one.is_string() || !one.as_string().starts_with("<")) out.push_back(Plain(one));
  }
  return out;
}

void MarkObject(const json::value& object, const api::ResourceInfo& info, std::set<std::string>& out) {
  std::unique_ptr<api::Message> message = api::NewObject(info.descriptor());
  Result<> decoded = api::DecodeJson(json::serialize(Plain(object)), *message);
  EXPECT_TRUE(decoded) << info.GroupResource() << ": " << (decoded ? "" : decoded.error().message());
  Mark(*message, out);
}

// The objects in the fixture.
void MarkFixture(const Fixture& fixture, std::set<std::string>& out) {
  json::value object = fixture.Create();
  MarkObject(object, *fixture.info, out);
  if (const json::value* defaults = fixture.Find("defaults")) object = Overlay(std::move(object), *defaults);
  MarkObject(object, *fixture.info, out);
  if (const json::value* steps = fixture.Find("steps")) {
    for (const json::value& one : steps->as_array()) {
      const json::object& step = one.as_object();
      const json::value* change = step.if_contains("diff");
      if (!change && !step.contains("status")) {
        change = step.contains("update") ? step.if_contains("update") : step.if_contains("merge");
      }
      if (!change) continue;
      object = Overlay(std::move(object), *change);
      MarkObject(object, *fixture.info, out);
    }
  }
  const json::value* more = fixture.Find("more");
  if (!more) return;
  for (const json::value& one : more->as_array()) {
    const json::value* change = one.as_object().if_contains("change");
    json::value other = change ? Overlay(fixture.Create(), *change) : one.at("create");
    if (const json::value* defaults = one.as_object().if_contains("defaults")) {
      other = Overlay(std::move(other), *defaults);
    }
    MarkObject(other, *fixture.info, out);
  }
}

TEST(Coverage, EveryFieldIsSetSomewhere) {
  std::set<std::string> set, all, excused;
  std::set<const api::Descriptor*> seen;
  for (const std::string& file : FixtureFiles(KEELSON_FIXTURES)) {
    Fixture fixture = LoadFixture(file);
    Reachable(*fixture.info->descriptor(), seen, all);
    MarkFixture(fixture, set);
  }
  std::istringstream lines(*ReadFile(KEELSON_UNCOVERED));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    excused.insert(line);
  }
  std::string missing, superfluous;
  for (const std::string& name : all) {
    if (!set.count(name) && !excused.count(name)) missing += name + "\n";
  }
  for (const std::string& name : excused) {
    if (set.count(name) || !all.count(name)) superfluous += name + "\n";
  }
  EXPECT_EQ(missing, "") << "no fixture sets these";
  EXPECT_EQ(superfluous, "") << "excused, but set or not there at all";
}

}  // namespace
}  // namespace keelson::apitest
