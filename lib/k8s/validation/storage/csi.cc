// CSIDrivers and CSINodes.
#include <fmt/format.h>

#include "lib/api/proto/storage_v1.pb.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace storagev1 = api::storage::v1;

namespace {

constexpr size_t kNodeIdBytes = 192;
constexpr int64_t kTokenMin = 10 * 60, kTokenMax = int64_t{1} << 32;
constexpr int64_t kUpdatePeriodMin = 10;

void CheckTokenRequests(const storagev1::CSIDriverSpec& spec, const Path& path, FieldErrors& errors) {
  const Path list = path.Child("tokenRequests");
  std::set<std::string_view> audiences;
  for (int i = 0; i < spec.token_requests_size(); ++i) {
    const storagev1::TokenRequest& request = spec.token_requests(i);
    const Path item = list.Index(i);
    if (!audiences.insert(request.audience()).second) {
      errors.push_back(Duplicate(item.Child("audience"), request.audience()));
      continue;
    }
    if (!request.has_expiration_seconds()) continue;
    const Path expiration = item.Child("expirationSeconds");
    const int64_t seconds = request.expiration_seconds();
    if (seconds < kTokenMin) {
      errors.push_back(Invalid(expiration, seconds, "may not specify a duration less than 10 minutes"));
    }
    if (seconds > kTokenMax) {
      errors.push_back(Invalid(expiration, seconds, "may not specify a duration larger than 2^32 seconds"));
    }
  }
}

void CheckDriver(const storagev1::CSIDriver& object, FieldErrors& errors) {
  const Path path("spec");
  const storagev1::CSIDriverSpec& spec = object.spec();
  if (!spec.has_attach_required()) errors.push_back(Required(path.Child("attachedRequired")));
  if (!spec.has_pod_info_on_mount()) errors.push_back(Required(path.Child("podInfoOnMount")));
  if (!spec.has_storage_capacity()) errors.push_back(Required(path.Child("storageCapacity")));
  if (spec.has_fs_group_policy()) {
    CheckOneOf(spec.fs_group_policy(), {"File", "None", "ReadWriteOnceWithFSType"},
               path.Child("fsGroupPolicy"), errors);
  }
  CheckTokenRequests(spec, path, errors);
  for (const std::string& mode : spec.volume_lifecycle_modes()) {
    CheckOneOf(mode, {"Persistent", "Ephemeral"}, path.Child("volumeLifecycleModes"), errors);
  }
  if (!spec.has_se_linux_mount()) errors.push_back(Required(path.Child("seLinuxMount")));
  if (spec.has_node_allocatable_update_period_seconds() &&
      spec.node_allocatable_update_period_seconds() < kUpdatePeriodMin) {
    errors.push_back(Invalid(path.Child("nodeAllocatableUpdatePeriodSeconds"),
                             spec.node_allocatable_update_period_seconds(),
                             "must be greater than or equal to 10 seconds"));
  }
  if (spec.has_service_account_token_in_secrets() && spec.token_requests().empty()) {
    errors.push_back(InvalidBool(path.Child("serviceAccountTokenInSecrets"),
                                 spec.service_account_token_in_secrets(),
                                 "must be unset when tokenRequests is empty"));
  }
}

void CheckDriverUpdate(const storagev1::CSIDriver& object, const storagev1::CSIDriver& old,
                       FieldErrors& errors) {
  const Path path("spec");
  if (object.spec().attach_required() != old.spec().attach_required()) {
    errors.push_back(
        InvalidBool(path.Child("attachedRequired"), object.spec().attach_required(), kImmutable));
  }
  if (!SameStrings(object.spec().volume_lifecycle_modes(), old.spec().volume_lifecycle_modes())) {
    errors.push_back(InvalidRaw(path.Child("volumeLifecycleModes"),
                                PrintStrings(object.spec().volume_lifecycle_modes()), kImmutable));
  }
}

void CheckNodeDriver(const storagev1::CSINodeDriver& driver, const Path& path, FieldErrors& errors) {
  CheckCsiDriverName(driver.name(), path.Child("name"), errors);
  const Path id = path.Child("nodeID");
  if (driver.node_id().empty()) errors.push_back(Required(id));
  if (driver.node_id().size() > kNodeIdBytes) {
    errors.push_back(
        Invalid(id, driver.node_id(), fmt::format("must be {} characters or less", kNodeIdBytes)));
  }
  if (driver.allocatable().has_count()) {
    CheckNonNegative(driver.allocatable().count(), path.Child("allocatable").Child("count"), errors);
  }
}

void CheckNodeDrivers(const storagev1::CSINode& object, FieldErrors& errors) {
  const Path spec("spec");
  const Path list = spec.Child("drivers");
  std::set<std::string_view> names;
  for (int i = 0; i < object.spec().drivers_size(); ++i) {
    const storagev1::CSINodeDriver& driver = object.spec().drivers(i);
    const Path item = list.Index(i);
    CheckNodeDriver(driver, item, errors);
    if (!names.insert(driver.name()).second) errors.push_back(Duplicate(item.Child("name"), driver.name()));
    std::set<std::string_view> seen;
    for (const std::string& key : driver.topology_keys()) {
      if (key.empty()) errors.push_back(Required(item));
      if (!seen.insert(key).second) errors.push_back(Duplicate(item, key));
      AddProblems(CheckQualifiedName(key), key, item, errors);
    }
  }
}

// A driver's entry must not change, except for the number of volumes that fit.
void CheckNodeDriversUpdate(const storagev1::CSINode& object, const storagev1::CSINode& old,
                            FieldErrors& errors) {
  CheckNodeDrivers(object, errors);
  for (const storagev1::CSINodeDriver& before : old.spec().drivers()) {
    for (const storagev1::CSINodeDriver& now : object.spec().drivers()) {
      if (now.name() != before.name()) continue;
      storagev1::CSINodeDriver a = now, b = before;
      a.clear_allocatable();
      b.clear_allocatable();
      if (!SameMessage(a, b)) errors.push_back(InvalidInternal(Path("spec").Child("drivers"), a, kImmutable));
    }
  }
}

}  // namespace

void RegisterCsiRules(RuleTable& table) {
  table.Add<storagev1::CSIDriver, CheckDriver>();
  table.AddUpdate<storagev1::CSIDriver, CheckDriverUpdate>();
  table.Add<storagev1::CSINode, CheckNodeDrivers>();
  table.AddUpdate<storagev1::CSINode, CheckNodeDriversUpdate>(true);
}

}  // namespace keelson::k8s
