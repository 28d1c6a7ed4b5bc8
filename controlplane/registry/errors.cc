#include <fmt/format.h>

#include "controlplane/registry/impl.h"
#include "lib/api/meta.h"

namespace keelson::registry {
namespace {

// In these errors upstream sets details.kind to the name of the resource, not of the kind.
ErrorDetails DetailsOf(const ResourceInfo& info, std::string_view name) {
  ErrorDetails details;
  details.name = std::string(name);
  details.group = std::string(info.group);
  details.kind = std::string(info.resource.substr(0, info.resource.find('/')));
  return details;
}

Error PreconditionFailed(const ResourceInfo& info, std::string_view ns, std::string_view name,
                         std::string_view what, std::string_view wanted, std::string_view stored) {
  return ConflictError(
      info, name,
      fmt::format("StorageError: invalid object, Code: 4, Key: {}{}, ResourceVersion: 0, AdditionalErrorMsg: "
                  "Precondition failed: {} in precondition: {}, {} in object meta: {}",
                  info.etcd_prefix, api::KeyOf(ns, name), what, wanted, what, stored));
}

}  // namespace

Error UidConflict(const ResourceInfo& info, std::string_view ns, std::string_view name,
                  std::string_view wanted, std::string_view stored) {
  return PreconditionFailed(info, ns, name, "UID", wanted, stored);
}

Error VersionConflict(const ResourceInfo& info, std::string_view ns, std::string_view name,
                      std::string_view wanted, std::string_view stored) {
  return PreconditionFailed(info, ns, name, "ResourceVersion", wanted, stored);
}

Error NotFoundError(const ResourceInfo& info, std::string_view name) {
  return Error(Code::kNotFound, fmt::format("{} \"{}\" not found", info.GroupResource(), name))
      .WithDetails(DetailsOf(info, name));
}

Error AlreadyExistsError(const ResourceInfo& info, std::string_view name) {
  return Error(Code::kAlreadyExists, fmt::format("{} \"{}\" already exists", info.GroupResource(), name))
      .WithDetails(DetailsOf(info, name));
}

Error ConflictError(const ResourceInfo& info, std::string_view name, std::string_view why) {
  return Error(Code::kConflict,
               fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", info.GroupResource(), name, why))
      .WithDetails(DetailsOf(info, name));
}

Error ForbiddenError(const ResourceInfo& info, std::string_view name, std::string_view why) {
  std::string subject =
      name.empty() ? info.GroupResource() : fmt::format("{} \"{}\"", info.GroupResource(), name);
  return Error(Code::kForbidden, fmt::format("{} is forbidden: {}", subject, why))
      .WithDetails(DetailsOf(info, name));
}

}  // namespace keelson::registry
