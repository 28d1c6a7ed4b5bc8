// Internal to lib/k8s/validation: StorageVersionMigrations.
#pragma once

#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

void RegisterStorageMigrationRules(RuleTable& table);

}  // namespace keelson::k8s
