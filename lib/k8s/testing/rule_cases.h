// For tests: tables of objects in JSON with the validation errors that they get.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"
#include "lib/api/scheme.h"
#include "lib/k8s/defaulting/defaulting.h"
#include "lib/k8s/validation/validation.h"

namespace keelson::k8s {

using Lines = std::vector<std::string>;

struct RuleCase {
  const char* api_version;
  const char* kind;
  std::string json;
  Lines errors;
};

struct ChangeCase {
  const char* api_version;
  const char* kind;
  std::string old_json, json;
  Lines errors;
};

inline std::unique_ptr<api::Message> ParseObject(const char* api_version, const char* kind,
                                                 const std::string& json) {
  const auto [group, version] = api::SplitApiVersion(api_version);
  std::unique_ptr<api::Message> object = api::NewObject(api::FindMessage(group, version, kind));
  api::DecodeReport report;
  const Result<> decoded = api::DecodeJson(json, *object, &report);
  EXPECT_TRUE(decoded) << json << ": " << (decoded ? "" : decoded.error().message());
  for (const std::string& problem : report.problems) ADD_FAILURE() << json << ": " << problem;
  SetDefaults(*object);
  return object;
}

inline Lines PrintErrors(const FieldErrors& errors) {
  Lines out;
  for (const FieldError& error : errors) out.push_back(error.ToString());
  return out;
}

inline void ExpectErrors(const std::vector<RuleCase>& cases) {
  for (const RuleCase& c : cases) {
    EXPECT_EQ(PrintErrors(Validate(*ParseObject(c.api_version, c.kind, c.json))), c.errors)
        << c.kind << " " << c.json;
  }
}

using ChangeRule = FieldErrors (*)(const api::Message&, const api::Message&);

inline void ExpectChangeErrors(ChangeRule rule, const std::vector<ChangeCase>& cases) {
  for (const ChangeCase& c : cases) {
    std::unique_ptr<api::Message> old = ParseObject(c.api_version, c.kind, c.old_json);
    std::unique_ptr<api::Message> object = ParseObject(c.api_version, c.kind, c.json);
    EXPECT_EQ(PrintErrors(rule(*object, *old)), c.errors) << c.kind << " " << c.old_json << " -> " << c.json;
  }
}

// Valid metadata, with a resourceVersion for updates.
inline std::string Namespaced(const std::string& rest) {
  return R"({"metadata":{"name":"x","namespace":"d","resourceVersion":"1"},)" + rest + "}";
}
inline std::string Cluster(const std::string& rest) {
  return R"({"metadata":{"name":"x","resourceVersion":"1"},)" + rest + "}";
}

inline constexpr char kSubdomainRule[] =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

inline constexpr char kQualifiedRule[] =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
inline constexpr char kLabelRule[] =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

}  // namespace keelson::k8s
