// StorageVersionMigrations (pkg/apis/storagemigration/validation).
#include <algorithm>

#include <fmt/format.h>

#include "lib/api/codec/codec.h"
#include "lib/api/proto/storagemigration_v1beta1.pb.h"
#include "lib/base/text.h"
#include "lib/k8s/validation/extension/storage_migration.h"
#include "lib/k8s/validation/parts.h"

namespace keelson::k8s {
namespace {

namespace storagemigrationv1beta1 = api::storagemigration::v1beta1;
using Migration = storagemigrationv1beta1::StorageVersionMigration;
using Status = storagemigrationv1beta1::StorageVersionMigrationStatus;

void CheckMigration(const Migration& object, FieldErrors& errors) {
  const Path spec("spec"), path = spec.Child("resource");
  const auto& resource = object.spec().resource();
  if (resource.resource().empty()) {
    errors.push_back(Required(path.Child("resource"), "resource is required to be set"));
  } else if (const Problems problems = CheckDns1035Label(resource.resource()); !problems.empty()) {
    errors.push_back(Invalid(path.Child("resource"), resource.resource(), Join(problems, ",")));
  }
  if (resource.group().empty()) return;
  if (const Problems problems = CheckDns1123Subdomain(resource.group()); !problems.empty()) {
    errors.push_back(Invalid(path.Child("group"), resource.group(), Join(problems, ",")));
  }
}

void CheckUpdate(const Migration& object, const Migration& old, FieldErrors& errors) {
  CheckFrozen(object.spec(), old.spec(), Path("spec"), errors);
}

bool IsTrue(const Status& status, std::string_view type) {
  return std::any_of(status.conditions().begin(), status.conditions().end(), [&](const auto& condition) {
    return condition.type() == type && condition.status() == "True";
  });
}

// A whole number without leading zeros, as resource versions are.
bool IsVersion(std::string_view text) {
  return !text.empty() && text.front() != '0' && text.find_first_not_of("0123456789") == text.npos;
}

std::string Printed(const Status& status) {
  std::string out;
  for (const metav1::Condition& condition : status.conditions()) {
    out += (out.empty() ? "" : ",") + api::EncodeJson(condition);
  }
  return "[" + out + "]";
}

void CheckStatus(const Migration& object, const Migration& before, FieldErrors& errors) {
  const Path path("status"), version = path.Child("resourceVersion"), list = path.Child("conditions");
  const Status &status = object.status(), &old = before.status();
  const std::string& now = status.resource_version();
  if (!now.empty() && !IsVersion(now)) {
    errors.push_back(Invalid(version, now, "resource version is not well formed: " + now));
  }
  CheckConditions(status.conditions(), list, errors);
  if (!old.resource_version().empty() && now != old.resource_version()) {
    errors.push_back(Invalid(version, now, "field is immutable"));
  }
  const bool succeeded = IsTrue(status, "Succeeded"), failed = IsTrue(status, "Failed"),
             running = IsTrue(status, "Running");
  const std::pair<bool, std::string_view> rules[] = {
      {succeeded && failed, "Both success and failed conditions cannot be true at the same time"},
      {succeeded && running, "Running condition cannot be true when success condition is true"},
      {failed && running, "Running condition cannot be true when failed condition is true"},
      {IsTrue(old, "Succeeded") && !succeeded, "Success condition cannot be set to false once it is true"},
      {IsTrue(old, "Failed") && !failed, "Failed condition cannot be set to false once it is true"},
  };
  for (const auto& [broken, why] : rules) {
    if (broken) errors.push_back(InvalidRaw(list, Printed(status), why));
  }
}

}  // namespace

void RegisterStorageMigrationRules(RuleTable& table) {
  table.Add<Migration, CheckMigration>();
  table.AddUpdate<Migration, CheckUpdate>();
  table.AddStatus<Migration, CheckStatus>();
}

}  // namespace keelson::k8s
