// Separate from scheme.cc, which links every type.
#include <map>

#include "lib/api/scheme.h"

namespace keelson::api {
namespace {

constexpr std::string_view kPackagePrefix = "keelson.api.";

// The API group of a package's first part: "rbac" -> "rbac.authorization.k8s.io".
std::string GroupOfPackage(std::string_view name) {
  static const std::map<std::string_view, std::string_view> kGroups = {
      {"core", ""},
      {"meta", ""},
      {"apps", "apps"},
      {"autoscaling", "autoscaling"},
      {"batch", "batch"},
      {"policy", "policy"},
      {"rbac", "rbac.authorization.k8s.io"},
      {"flowcontrol", "flowcontrol.apiserver.k8s.io"}};
  auto it = kGroups.find(name);
  return it != kGroups.end() ? std::string(it->second) : std::string(name) + ".k8s.io";
}

}  // namespace

GroupVersionKind GvkOf(const Descriptor* descriptor) {
  std::string_view package = descriptor->file()->package();
  if (package.substr(0, kPackagePrefix.size()) == kPackagePrefix) {
    package.remove_prefix(kPackagePrefix.size());
  }
  auto dot = package.find('.');
  if (dot == std::string_view::npos) return {"", "", descriptor->name()};
  return {GroupOfPackage(package.substr(0, dot)), std::string(package.substr(dot + 1)), descriptor->name()};
}

}  // namespace keelson::api
