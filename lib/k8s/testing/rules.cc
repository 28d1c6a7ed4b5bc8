#include "lib/k8s/testing/rules.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"
#include "lib/api/scheme.h"
#include "lib/k8s/defaulting/defaulting.h"
#include "lib/k8s/validation/validation.h"

namespace keelson::k8s {

namespace {

std::string WithVersion(const std::string& json) {
  std::string out = json;
  out.insert(out.find(R"("name":)"), R"("resourceVersion":"1",)");
  return out;
}

FieldErrors Judge(const api::Message& now, const api::Message& old, const std::string& subresource) {
  if (subresource.empty()) return ValidateUpdate(now, old);
  if (subresource == "status") return ValidateStatusUpdate(now, old);
  return ValidatePartUpdate(now, old, subresource);
}

}  // namespace

std::unique_ptr<api::Message> Parse(const char* api_version, const char* kind, const std::string& json) {
  const auto [group, version] = api::SplitApiVersion(api_version);
  std::unique_ptr<api::Message> object = api::NewObject(api::FindMessage(group, version, kind));
  api::DecodeReport report;
  const Result<> decoded = api::DecodeJson(json, *object, &report);
  EXPECT_TRUE(decoded) << json << ": " << (decoded ? "" : decoded.error().message());
  EXPECT_TRUE(report.problems.empty()) << json << ": " << report.problems[0];
  SetDefaults(*object);
  return object;
}

Lines Print(const FieldErrors& errors) {
  Lines out;
  for (const FieldError& error : errors) out.push_back(error.ToString());
  return out;
}

std::string Pod(const std::string& spec, const std::string& metadata, const std::string& status) {
  return R"({"metadata":{"name":"p","namespace":"default")" + metadata + R"(},"spec":{)" + spec + "}" +
         (status.empty() ? "" : R"(,"status":{)" + status + "}") + "}";
}

std::string PodWith(const std::string& container) {
  return Pod(R"("containers":[{"name":"c","image":"i",)" + container + "}]");
}

std::string PodAnd(const std::string& spec, const std::string& metadata) {
  return Pod(std::string(kContainers) + "," + spec, metadata);
}

void ExpectErrors(const char* api_version, const char* kind, const std::vector<KindCase>& cases) {
  for (const KindCase& c : cases) {
    EXPECT_EQ(Print(Validate(*Parse(api_version, kind, c.json))), c.errors) << c.json;
  }
}

void ExpectUpdateErrors(const char* api_version, const char* kind, const std::string& subresource,
                        const std::vector<KindUpdateCase>& cases, bool self) {
  for (const KindUpdateCase& c : cases) {
    const auto old = Parse(api_version, kind, WithVersion(c.old));
    const auto now = Parse(api_version, kind, WithVersion(c.now));
    EXPECT_EQ(Print(Judge(*now, *old, subresource)), c.errors) << c.now;
    if (!self) continue;
    EXPECT_EQ(Print(Judge(*old, *old, subresource)), Lines()) << c.old;
  }
}

}  // namespace keelson::k8s
