#include "controlplane/controllers/storageversionmigrator/controller.h"

#include <algorithm>

#include <boost/json.hpp>

#include "lib/api/meta.h"
#include "lib/api/scheme.h"
#include "lib/base/log.h"
#include "lib/client/discovery.h"
#include "lib/client/metadata_client.h"

namespace keelson::controllers {
namespace {

namespace json = boost::json;
using apiextensionsv1::CustomResourceDefinition;

constexpr int kWorkers = 5;
// Discovery may not know a definition yet that came with its migration.
constexpr std::chrono::minutes kPatience{1};
constexpr std::chrono::seconds kLookAgain{2};
constexpr std::string_view kRunning = "Running", kSucceeded = "Succeeded", kFailed = "Failed";

std::string KeyOf(const StorageVersionMigration& migration) {
  const auto& resource = migration.spec().resource();
  return resource.resource() + "." + resource.group();
}

// The row by which the server prefers to serve the resource; null: it does not, or objects cannot be listed and patched.
Result<const api::ResourceInfo*> RowOf(const client::RestClient& api,
                                       const StorageVersionMigration& migration, std::stop_token stop) {
  const auto& wanted = migration.spec().resource();
  const auto fits = [&](const api::ResourceInfo* row) {
    return row && row->group == wanted.group() && row->resource == wanted.resource() &&
           row->HasVerb("list") && row->HasVerb("patch");
  };
  if (wanted.group().empty()) {
    const api::ResourceInfo* row = api::FindResource("", "v1", wanted.resource());
    return fits(row) ? row : nullptr;
  }
  KEELSON_ASSIGN_OR_RETURN(const client::DiscoveredResources found, client::Discover(api, std::move(stop)));
  const auto row = std::find_if(found.resources.begin(), found.resources.end(), fits);
  if (row != found.resources.end()) return *row;
  if (found.HasFailed(wanted.group())) return Error(Code::kUnavailable, found.FailureMessage());
  return nullptr;
}

// The resource version of all objects of the resource together: of a list that holds none.
Result<std::string> VersionOf(const client::RestClient& api, const api::ResourceInfo& row) {
  client::ListOptions options;
  options.field_selector = "metadata.name=-";
  options.metadata_only = true;
  std::string version;
  KEELSON_RETURN_IF_ERROR(
      api.ListEach(row, "", options, &version, [](std::string_view) -> Result<> { return {}; }));
  if (version.empty()) {
    return Error(Code::kInternal, "the list of " + row.GroupResource() + " has no version");
  }
  return version;
}

bool IsPassing(const Error& error) {
  return error.Is(Code::kTooManyRequests) || error.Is(Code::kUnavailable) || error.Is(Code::kTimeout) ||
         error.Is(Code::kInternal) || error.Is(Code::kCancelled);
}

// Patches the status of the resource's definition; nothing without one.
Result<> PatchDefinition(const client::RestClient& api, const StorageVersionMigration& migration,
                         const std::function<std::string(const CustomResourceDefinition&)>& patch) {
  constexpr int kAttempts = 5;
  if (migration.spec().resource().group().empty()) return {};
  for (int attempt = 1;; ++attempt) {
    Result<CustomResourceDefinition> definition = api.Get<CustomResourceDefinition>("", KeyOf(migration));
    if (!definition && definition.error().Is(Code::kNotFound)) return {};
    if (!definition) return definition.error();
    const auto stored = api.Patch<CustomResourceDefinition>("", KeyOf(migration), client::PatchType::kMerge,
                                                            patch(*definition), "status");
    if (stored) return {};
    if (!stored.error().Is(Code::kConflict) || attempt == kAttempts) return stored.error();
  }
}

}  // namespace

StorageVersionMigrator::StorageVersionMigrator(client::RestClient api, client::InformerFactory& informers,
                                               client::EventRecorder&, Clock& clock)
    : Controller("storage-version-migrator-controller", clock, kWorkers),
      api_(std::move(api)),
      migrations_(informers.Get<StorageVersionMigration>()) {
  migrations_.AddHandler([this](const client::Change<StorageVersionMigration>& change) {
    queue().Add(KeyOf(change.new_object ? *change.new_object : *change.old_object));
  });
}

Migrations StorageVersionMigrator::Of(const std::string& key) const {
  Migrations out = migrations_.List();
  std::erase_if(out, [&](const auto& one) { return KeyOf(*one) != key; });
  return out;
}

Result<Requeue> StorageVersionMigrator::Reconcile(const std::string& key, std::stop_token stop) {
  const client::RestClient api = api_.With(stop);
  const Migrations all = Of(key);
  for (const auto& one : all) {
    if (IsOver(*one) && HasCondition(*one, kRunning)) KEELSON_RETURN_IF_ERROR(CleanUp(api, *one));
  }
  const auto active = Active(all);
  // Each write comes back as a change, which leads to the next step.
  if (!active) return Requeue{};
  if (!IsTrue(*active, kRunning)) {
    KEELSON_RETURN_IF_ERROR(Begin(api, *active));
  } else if (active->status().resource_version().empty()) {
    return Mark(api, *active, std::move(stop));
  } else {
    KEELSON_RETURN_IF_ERROR(Migrate(api, *active, std::move(stop)));
  }
  return Requeue{};
}

Result<> StorageVersionMigrator::CleanUp(const client::RestClient& api,
                                         const StorageVersionMigration& migration) {
  const bool success = IsTrue(migration, kSucceeded);
  KEELSON_RETURN_IF_ERROR(PatchDefinition(api, migration, [&](const CustomResourceDefinition& definition) {
    return EndsIn(definition, success, clock().Now());
  }));
  StorageVersionMigration changed = migration;
  RemoveCondition(changed, kRunning);
  const auto stored = api.UpdateStatus(changed);
  if (!stored && !stored.error().Is(Code::kNotFound)) return stored.error();
  return {};
}

Result<> StorageVersionMigrator::Begin(const client::RestClient& api,
                                       const StorageVersionMigration& migration) {
  KEELSON_RETURN_IF_ERROR(PatchDefinition(api, migration, [&](const CustomResourceDefinition& definition) {
    return BeginsIn(definition, migration.metadata().name(), clock().Now());
  }));
  StorageVersionMigration changed = migration;
  AddCondition(changed, kRunning, "MigrationRunning", "The migration is running", clock().Now());
  const auto stored = api.UpdateStatus(changed);
  if (!stored && !stored.error().Is(Code::kNotFound)) return stored.error();
  return {};
}

Result<Requeue> StorageVersionMigrator::Mark(const client::RestClient& api,
                                             const StorageVersionMigration& migration, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const api::ResourceInfo* row, RowOf(api, migration, std::move(stop)));
  if (!row) {
    const auto age = clock().Now() - api::FromTime(migration.metadata().creation_timestamp());
    if (age < kPatience) return Requeue{kLookAgain};
    KEELSON_RETURN_IF_ERROR(Finish(api, migration, kFailed, "resource does not exist in discovery"));
    return Requeue{};
  }
  KEELSON_ASSIGN_OR_RETURN(std::string version, VersionOf(api, *row));
  StorageVersionMigration changed = migration;
  changed.mutable_status()->set_resource_version(std::move(version));
  const auto stored = api.UpdateStatus(changed);
  if (!stored && !stored.error().Is(Code::kNotFound)) return stored.error();
  return Requeue{};
}

// An update that changes nothing makes the server write an object that is stored in another version, or with another key.
// The resource version of the patch spares objects that somebody has written or made anew meanwhile.
Result<> StorageVersionMigrator::Migrate(const client::RestClient& api,
                                         const StorageVersionMigration& migration, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const api::ResourceInfo* row, RowOf(api, migration, stop));
  const std::string unhandled = "migration encountered unhandled error: ";
  if (!row) return Finish(api, migration, kFailed, unhandled + "unable to obtain GVR from discovery");
  const client::MetadataClient metadata(api);
  KEELSON_ASSIGN_OR_RETURN(const std::vector<metav1::ObjectMeta> objects, metadata.List(*row, ""));
  size_t patched = 0;
  for (const metav1::ObjectMeta& object : objects) {
    if (stop.stop_requested()) return Error(Code::kCancelled, "stopped");
    if (IsNewer(object.resource_version(), migration.status().resource_version())) continue;
    const std::string patch =
        json::serialize(json::object{{"metadata", {{"resourceVersion", object.resource_version()}}}});
    const auto stored =
        metadata.Patch(*row, object.namespace_(), object.name(), client::PatchType::kMerge, patch);
    if (stored) ++patched;
    if (stored || stored.error().Is(Code::kConflict) || stored.error().Is(Code::kNotFound)) continue;
    if (IsPassing(stored.error())) return stored.error();
    return Finish(api, migration, kFailed, unhandled + stored.error().message());
  }
  log::Info(
      "Stored objects are migrated",
      {{"migration", migration.metadata().name()}, {"resource", row->GroupResource()}, {"objects", patched}});
  return Finish(api, migration, kSucceeded, "");
}

Result<> StorageVersionMigrator::Finish(const client::RestClient& api, StorageVersionMigration migration,
                                        std::string_view type, std::string_view message) {
  AddCondition(migration, type, "StorageVersionMigration" + std::string(type), message, clock().Now());
  const auto stored = api.UpdateStatus(migration);
  if (!stored && !stored.error().Is(Code::kNotFound)) return stored.error();
  return {};
}

}  // namespace keelson::controllers
