// What `kubectl explain` reads from the documents.
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "lib/api/openapi/openapi.h"

namespace keelson::api {
namespace {

namespace json = boost::json;

// A member of a schema of a version 3 document.
json::value Of(const std::string& document, const std::string& schema, const char* pointer) {
  boost::system::error_code error;
  const json::value parsed = json::parse(document);
  const json::value* found = parsed.at("components").at("schemas").at(schema).find_pointer(pointer, error);
  return found ? *found : json::value();
}

TEST(OpenApiExplain, EphemeralContainersHaveNames) {
  EXPECT_EQ(
      json::serialize(Of(OpenApiV3Json("api/v1"), "io.k8s.api.core.v1.EphemeralContainer", "/required")),
      R"(["name"])");
}

TEST(OpenApiExplain, ListsOfStringsStandWhereTheyAreUsed) {
  struct Case {
    const char *group, *schema;
  };
  constexpr Case kCases[] = {
      {"certificates.k8s.io", "io.k8s.api.certificates.v1.CertificateSigningRequestSpec"},
      {"authorization.k8s.io", "io.k8s.api.authorization.v1.SubjectAccessReviewSpec"},
      {"authentication.k8s.io", "io.k8s.api.authentication.v1.UserInfo"}};
  for (const Case& one : kCases) {
    const std::string document = OpenApiV3Json(std::string("apis/") + one.group + "/v1");
    EXPECT_EQ(json::serialize(Of(document, one.schema, "/properties/extra/additionalProperties")),
              R"({"items":{"default":"","type":"string"},"type":"array"})")
        << one.group;
    EXPECT_EQ(document.find(".ExtraValue\":"), std::string::npos) << "its schema has nobody to name it";
  }
}

}  // namespace
}  // namespace keelson::api
