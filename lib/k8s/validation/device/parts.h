// Internal to lib/k8s/validation/device: rules that claims, classes and slices of resource.k8s.io share.
#pragma once

#include <fmt/format.h>

#include "lib/api/proto/resource_v1.pb.h"
#include "lib/k8s/validation/parts.h"

namespace keelson::k8s {

namespace resourcev1 = api::resource::v1;

// Checks each item with `check`. A list of more than `max` items only gets the error about its length. A
// negative `max` means no limit.
template <typename List, typename Check>
void CheckList(const List& list, int max, const Path& path, FieldErrors& errors, const Check& check) {
  if (max >= 0 && list.size() > max) {
    errors.push_back(TooMany(path, list.size(), max));
    return;
  }
  for (int i = 0; i < list.size(); ++i) check(list[i], path.Index(i));
}

// Like CheckList(), and no two items may have the same key.
template <typename List, typename Key, typename Check>
void CheckUnique(const List& list, int max, const Path& path, FieldErrors& errors, const Key& key,
                 const Check& check) {
  CheckList(list, max, path, errors, check);
  if (max >= 0 && list.size() > max) return;
  std::set<std::string> seen;
  for (int i = 0; i < list.size(); ++i) {
    const std::string value = key(list[i]);
    if (!seen.insert(value).second) errors.push_back(Duplicate(path.Index(i), value));
  }
}

// "domain/name" or "name": attributes and capacities of devices.
void CheckQualifiedDeviceName(std::string_view name, bool needs_domain, const Path& path,
                              FieldErrors& errors);
void CheckPoolName(const std::string& name, const Path& path, FieldErrors& errors);
void CheckOpaque(const resourcev1::DeviceConfiguration& configuration, const Path& path, FieldErrors& errors);
// Raw JSON that must be an object of at most 10 KiB.
void CheckParameters(const std::string& raw, const Path& path, FieldErrors& errors);
void CheckShareId(const std::string& id, const Path& path, FieldErrors& errors);
void CheckDeviceStatuses(const resourcev1::ResourceClaimStatus& status, const Path& path,
                         FieldErrors& errors);
// For a capacity with a policy.
void CheckRequestPolicy(const resourcev1::DeviceCapacity& capacity, const Path& path, FieldErrors& errors);
void CheckSelectors(const google::protobuf::RepeatedPtrField<resourcev1::DeviceSelector>& selectors,
                    const Path& path, FieldErrors& errors);
void CheckDeviceToleration(const resourcev1::DeviceToleration& toleration, const Path& path,
                           FieldErrors& errors);
void CheckBindingConditions(const Strings& conditions, const Strings& failures, const Path& path,
                            FieldErrors& errors);

}  // namespace keelson::k8s
