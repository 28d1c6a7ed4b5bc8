// Objects and errors in short, for the tests of rules.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/api/scheme.h"
#include "lib/k8s/field_error.h"

namespace keelson::k8s {

using Lines = std::vector<std::string>;

// The object with its defaults. Fails the test where JSON or fields are wrong.
std::unique_ptr<api::Message> Parse(const char* api_version, const char* kind, const std::string& json);
Lines Print(const FieldErrors& errors);

inline constexpr char kContainers[] = R"("containers":[{"name":"c","image":"i"}])";

// A pod with these fields of the spec; with these fields of its only container.
std::string Pod(const std::string& spec, const std::string& metadata = "", const std::string& status = "");
std::string PodWith(const std::string& container);
// A pod with a container and these further fields of the spec.
std::string PodAnd(const std::string& spec, const std::string& metadata = "");

// One object of a kind and what is wrong with it.
struct KindCase {
  std::string json;
  Lines errors;
};
void ExpectErrors(const char* api_version, const char* kind, const std::vector<KindCase>& cases);

// An object, what it was, and what is wrong with the update. metadata.resourceVersion is added to both.
struct KindUpdateCase {
  std::string old, now;
  Lines errors;
};
// `subresource`: "" (the main resource), "status" or a part. Where `self`, the old one must also be a valid
// update of itself.
void ExpectUpdateErrors(const char* api_version, const char* kind, const std::string& subresource,
                        const std::vector<KindUpdateCase>& cases, bool self = true);

}  // namespace keelson::k8s
