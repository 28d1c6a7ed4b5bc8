#include "controlplane/controllers/storageversionmigrator/plan.h"

#include <algorithm>
#include <tuple>

#include <boost/json.hpp>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

namespace json = boost::json;
using apiextensionsv1::CustomResourceDefinition;

constexpr std::string_view kMigrating = "StorageMigrating";

// The definition's conditions with this one among them, as the patch of its status has them.
std::string Patch(const CustomResourceDefinition& definition, bool status, std::string_view reason,
                  std::string message, bool only_storage_version, WallTime now) {
  CustomResourceDefinition changed;
  *changed.mutable_status()->mutable_conditions() = definition.status().conditions();
  auto& conditions = *changed.mutable_status()->mutable_conditions();
  auto found = std::find_if(conditions.begin(), conditions.end(),
                            [](const auto& condition) { return condition.type() == kMigrating; });
  auto& condition = found == conditions.end() ? *conditions.Add() : *found;
  const std::string value = status ? "True" : "False";
  condition.set_type(std::string(kMigrating));
  if (condition.status() != value) *condition.mutable_last_transition_time() = api::ToTime(now);
  condition.set_status(value);
  condition.set_reason(std::string(reason));
  condition.set_message(std::move(message));
  condition.set_observed_generation(definition.metadata().generation());
  json::object patch;
  patch["metadata"] = {{"resourceVersion", definition.metadata().resource_version()}};
  patch["status"] = {{"conditions", json::parse(api::EncodeJson(changed)).at("status").at("conditions")}};
  if (only_storage_version) {
    for (const auto& version : definition.spec().versions()) {
      if (version.storage()) patch["status"].as_object()["storedVersions"] = {version.name()};
    }
  }
  return json::serialize(patch);
}

}  // namespace

bool HasCondition(const StorageVersionMigration& migration, std::string_view type) {
  const auto& conditions = migration.status().conditions();
  return std::any_of(conditions.begin(), conditions.end(),
                     [&](const auto& condition) { return condition.type() == type; });
}

bool IsTrue(const StorageVersionMigration& migration, std::string_view type) {
  const auto& conditions = migration.status().conditions();
  return std::any_of(conditions.begin(), conditions.end(), [&](const auto& condition) {
    return condition.type() == type && condition.status() == "True";
  });
}

bool IsOver(const StorageVersionMigration& migration) {
  return IsTrue(migration, "Succeeded") || IsTrue(migration, "Failed");
}

std::shared_ptr<const StorageVersionMigration> Active(const Migrations& migrations) {
  const auto rank = [](const StorageVersionMigration& one) {
    return std::tuple(!IsTrue(one, "Running"), api::FromTime(one.metadata().creation_timestamp()),
                      std::string_view(one.metadata().name()));
  };
  std::shared_ptr<const StorageVersionMigration> out;
  for (const auto& one : migrations) {
    if (!IsOver(*one) && (!out || rank(*one) < rank(*out))) out = one;
  }
  return out;
}

void AddCondition(StorageVersionMigration& migration, std::string_view type, std::string_view reason,
                  std::string_view message, WallTime now) {
  if (IsTrue(migration, type)) return;
  if (type == "Succeeded" || type == "Failed") {
    for (metav1::Condition& condition : *migration.mutable_status()->mutable_conditions()) {
      if (condition.type() != "Running" || condition.status() == "False") continue;
      condition.set_status("False");
      *condition.mutable_last_transition_time() = api::ToTime(now);
    }
  }
  RemoveCondition(migration, type);
  metav1::Condition& condition = *migration.mutable_status()->add_conditions();
  condition.set_type(std::string(type));
  condition.set_status("True");
  condition.set_reason(std::string(reason));
  condition.set_message(std::string(message));
  *condition.mutable_last_transition_time() = api::ToTime(now);
}

void RemoveCondition(StorageVersionMigration& migration, std::string_view type) {
  auto& conditions = *migration.mutable_status()->mutable_conditions();
  for (int i = conditions.size() - 1; i >= 0; --i) {
    if (conditions[i].type() == type) conditions.DeleteSubrange(i, 1);
  }
}

bool IsNewer(std::string_view version, std::string_view mark) {
  return std::tuple(version.size(), version) > std::tuple(mark.size(), mark);
}

std::string BeginsIn(const CustomResourceDefinition& definition, std::string_view migration, WallTime now) {
  return Patch(definition, true, "MigrationRunning", "Migration " + std::string(migration) + " is running",
               false, now);
}

std::string EndsIn(const CustomResourceDefinition& definition, bool success, WallTime now) {
  if (!success) return Patch(definition, false, "MigrationFailed", "The migration has failed", false, now);
  const auto& conditions = definition.status().conditions();
  const bool same = std::any_of(conditions.begin(), conditions.end(), [&](const auto& condition) {
    return condition.type() == kMigrating &&
           condition.observed_generation() == definition.metadata().generation();
  });
  const char* message =
      same ? "The migration has succeeded and the stored versions have been updated"
           : "The migration has succeeded but the stored versions have not been updated due to a generation "
             "mismatch";
  return Patch(definition, false, "MigrationSucceeded", message, same, now);
}

}  // namespace keelson::controllers
