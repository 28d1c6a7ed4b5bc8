// Fields that writes ignore, by kind, as in upstream's strategies.
#include <map>

#include "controlplane/apiextensions/custom_resource.h"
#include "controlplane/registry/field_manager.h"

namespace keelson::registry {
namespace {

using api::FieldFilter;
using api::FieldSet;
using api::MakePath;

FieldFilter Without(std::initializer_list<api::FieldPath> paths) {
  FieldSet set;
  for (const api::FieldPath& path : paths) set.Insert(path);
  return FieldFilter::Without(std::move(set));
}

bool HasStatusRow(const ResourceInfo& main) {
  return api::FindResource(main.group, main.version, std::string(main.resource) + "/status") != nullptr;
}

FieldFilter StatusFilter(const ResourceInfo& main) {
  const api::FieldPath spec = MakePath({"spec"}), metadata = MakePath({"metadata"});
  std::string_view name = main.resource;
  if (name == "pods") {
    return Without(
        {spec, MakePath({"metadata", "deletionTimestamp"}), MakePath({"metadata", "ownerReferences"})});
  }
  if (name == "deployments") return Without({spec, MakePath({"metadata", "labels"})});
  if (name == "certificatesigningrequests") return Without({spec, MakePath({"status", "conditions"})});
  if (name == "apiservices" || name == "customresourcedefinitions" || name == "volumeattachments" ||
      name == "flowschemas" || name == "prioritylevelconfigurations" || name == "resourceclaims") {
    return Without({spec, metadata});
  }
  return Without({spec});
}

FieldFilter Make(const ResourceInfo& main, Part part) {
  switch (part) {
    case Part::kMain:
      return HasStatusRow(main) ? Without({MakePath({"status"})}) : FieldFilter();
    case Part::kStatus:
      return StatusFilter(main);
    case Part::kFinalize:
      return Without({MakePath({"status"})});
    case Part::kApproval:
      return Without({MakePath({"spec"}), MakePath({"status", "certificate"})});
    case Part::kEphemeralContainers:
      return FieldFilter::Only({MakePath({"spec", "ephemeralContainers"})});
    case Part::kResize:
      return FieldFilter::Only({{"f:spec", "f:containers", "*", "f:resources"},
                                {"f:spec", "f:containers", "*", "f:resizePolicy"},
                                {"f:spec", "f:initContainers", "*", "f:resources"},
                                {"f:spec", "f:initContainers", "*", "f:resizePolicy"}});
  }
  return {};
}

const FieldFilter& CustomFilter(const apiextensions::CustomRow& row, Part part) {
  static const FieldFilter no_spec = Without({MakePath({"spec"})});
  static const FieldFilter no_status = Without({MakePath({"status"})});
  if (part == Part::kStatus) return no_spec;
  std::shared_ptr<const apiextensions::Version> version = row.owner->VersionOf(row);
  return version && version->has_status ? no_status : FieldFilter::Everything();
}

using Filters = std::map<std::pair<const ResourceInfo*, Part>, FieldFilter>;

Filters MakeAll() {
  Filters filters;
  for (const ResourceInfo& info : api::Resources()) {
    if (info.etcd_prefix.empty()) continue;
    for (Part part : {Part::kMain, Part::kStatus, Part::kFinalize, Part::kApproval,
                      Part::kEphemeralContainers, Part::kResize}) {
      filters.emplace(std::make_pair(&info, part), Make(info, part));
    }
  }
  return filters;
}

}  // namespace

const FieldFilter& ResetFilter(const ResourceInfo& main, Part part) {
  if (const apiextensions::CustomRow* custom = apiextensions::CustomOf(main)) {
    return CustomFilter(*custom, part);
  }
  static const Filters* const filters = new Filters(MakeAll());
  return filters->at({&main, part});
}

}  // namespace keelson::registry
