// Short notations for objects and errors, for tests of validation rules.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/api/scheme.h"
#include "lib/k8s/field_error.h"

namespace keelson::k8s {

using Lines = std::vector<std::string>;

// Parses an object and sets its defaults. Fails the test when the JSON or a field is wrong.
std::unique_ptr<api::Message> Parse(const char* api_version, const char* kind, const std::string& json);
Lines Print(const FieldErrors& errors);

inline constexpr char kContainers[] = R"("containers":[{"name":"c","image":"i"}])";

// A pod with these fields in its spec (Pod), or with these fields in its only container (PodWith).
std::string Pod(const std::string& spec, const std::string& metadata = "", const std::string& status = "");
std::string PodWith(const std::string& container);
// A pod with one container and these additional fields in its spec.
std::string PodAnd(const std::string& spec, const std::string& metadata = "");

// One object of a kind with its expected errors.
struct KindCase {
  std::string json;
  Lines errors;
};
void ExpectErrors(const char* api_version, const char* kind, const std::vector<KindCase>& cases);

// An update with its expected errors. metadata.resourceVersion is added to both objects.
struct KindUpdateCase {
  std::string old, now;
  Lines errors;
};
// `subresource`: "" (the main resource), "status" or another one. With `self`, the old object must also be
// a valid update of itself.
void ExpectUpdateErrors(const char* api_version, const char* kind, const std::string& subresource,
                        const std::vector<KindUpdateCase>& cases, bool self = true);

}  // namespace keelson::k8s
