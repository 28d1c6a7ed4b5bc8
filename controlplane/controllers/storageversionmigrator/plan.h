// Storage version migrations: what to do next, and how objects show it. Pure.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/api/proto/storagemigration_v1beta1.pb.h"
#include "lib/base/wall_time.h"

namespace keelson::controllers {

namespace apiextensionsv1 = api::apiextensions::v1;
namespace storagemigrationv1beta1 = api::storagemigration::v1beta1;
using StorageVersionMigration = storagemigrationv1beta1::StorageVersionMigration;
using Migrations = std::vector<std::shared_ptr<const StorageVersionMigration>>;

bool IsTrue(const StorageVersionMigration& migration, std::string_view type);
bool HasCondition(const StorageVersionMigration& migration, std::string_view type);
bool IsOver(const StorageVersionMigration& migration);  // Succeeded or Failed

// The one that may work now, of the migrations of one resource: the running one, else the oldest that is not over, else
// null.
std::shared_ptr<const StorageVersionMigration> Active(const Migrations& migrations);

// Adds the condition with status True. Succeeded and Failed end Running.
void AddCondition(StorageVersionMigration& migration, std::string_view type, std::string_view reason,
                  std::string_view message, WallTime now);
void RemoveCondition(StorageVersionMigration& migration, std::string_view type);

// Whether an object of version `version` is one that was written after `mark`. Both are resource versions.
bool IsNewer(std::string_view version, std::string_view mark);

// ---- the condition StorageMigrating of a definition ----
// JSON merge patches of its status, which apply to this state of the definition only.
std::string BeginsIn(const apiextensionsv1::CustomResourceDefinition& definition, std::string_view migration,
                     WallTime now);
// A success leaves the storage version alone in storedVersions, unless the definition has changed since the migration
// began: then objects may be stored in yet another version.
std::string EndsIn(const apiextensionsv1::CustomResourceDefinition& definition, bool success, WallTime now);

}  // namespace keelson::controllers
