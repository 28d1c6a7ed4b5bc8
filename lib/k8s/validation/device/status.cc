// Device status that drivers report in claims.
#include <set>

#include <fmt/format.h>

#include "lib/base/ip.h"
#include "lib/k8s/validation/device/parts.h"

namespace keelson::k8s {
namespace {

constexpr int kMaxConditions = 8, kMaxIps = 16;
constexpr size_t kInterfaceBytes = 256, kHardwareBytes = 128;

// "10.9.8.7/24": an address with the length of its prefix.
void CheckInterfaceAddress(const std::string& value, const Path& path, FieldErrors& errors) {
  const size_t slash = value.find('/');
  const Result<IpAddress> ip = IpAddress::Parse(std::string_view(value).substr(0, slash));
  if (!ip || !IsCidr(value)) {
    errors.push_back(
        Invalid(path, value, "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"));
    return;
  }
  const std::string canonical = ip->ToString() + value.substr(slash);
  if (canonical != value) {
    errors.push_back(Invalid(path, value, fmt::format("must be in canonical form ({})", Quote(canonical))));
  }
}

void CheckNetwork(const resourcev1::NetworkDeviceData& network, const Path& path, FieldErrors& errors) {
  if (network.interface_name().size() > kInterfaceBytes) {
    errors.push_back(TooLong(path.Child("interfaceName"), kInterfaceBytes));
  }
  if (network.hardware_address().size() > kHardwareBytes) {
    errors.push_back(TooLong(path.Child("hardwareAddress"), kHardwareBytes));
  }
  CheckUnique(
      network.ips(), kMaxIps, path.Child("ips"), errors, [](const std::string& ip) { return ip; },
      [&](const std::string& ip, const Path& place) { CheckInterfaceAddress(ip, place, errors); });
}

std::string DeviceId(const std::string& driver, const std::string& pool, const std::string& device,
                     const std::string& share) {
  const std::string id = driver + "/" + pool + "/" + device;
  return share.empty() ? id : id + "/" + share;
}

bool IsUuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : std::string_view("0123456789abcdefABCDEF").find(text[i]) == text.npos) {
      return false;
    }
  }
  return true;
}

}  // namespace

void CheckShareId(const std::string& id, const Path& path, FieldErrors& errors) {
  if (id.size() != 36) {
    errors.push_back(
        Invalid(path, id, fmt::format("error validating uid: invalid UUID length: {}", id.size())));
  } else if (!IsUuid(id)) {
    errors.push_back(Invalid(path, id, "error validating uid: invalid UUID format"));
  } else if (id.find_first_of("ABCDEF") != std::string::npos) {
    errors.push_back(Invalid(path, id,
                             "uid must be in RFC 4122 normalized form, "
                             "`xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"));
  }
}

void CheckDeviceStatuses(const resourcev1::ResourceClaimStatus& status, const Path& path,
                         FieldErrors& errors) {
  std::set<std::string> allocated;
  for (const auto& result : status.allocation().devices().results()) {
    allocated.insert(DeviceId(result.driver(), result.pool(), result.device(), result.share_id()));
  }
  CheckUnique(
      status.devices(), -1, path, errors,
      [](const auto& device) {
        return DeviceId(device.driver(), device.pool(), device.device(), device.share_id());
      },
      [&](const resourcev1::AllocatedDeviceStatus& device, const Path& place) {
        CheckCsiDriverName(device.driver(), place.Child("driver"), errors);
        CheckPoolName(device.pool(), place.Child("pool"), errors);
        AddProblems(CheckDns1123Label(device.device()), device.device(), place.Child("device"), errors);
        if (device.has_share_id()) CheckShareId(device.share_id(), place.Child("shareID"), errors);
        const std::string id = DeviceId(device.driver(), device.pool(), device.device(), device.share_id());
        if (!allocated.count(id)) {
          errors.push_back(Invalid(place, id, "must be an allocated device in the claim"));
        }
        const Path conditions = place.Child("conditions");
        if (device.conditions_size() > kMaxConditions) {
          errors.push_back(TooMany(conditions, device.conditions_size(), kMaxConditions));
        }
        CheckConditions(device.conditions(), conditions, errors);
        if (!device.data().raw().empty()) CheckParameters(device.data().raw(), place.Child("data"), errors);
        if (device.has_network_data()) {
          CheckNetwork(device.network_data(), place.Child("networkData"), errors);
        }
      });
}

}  // namespace keelson::k8s
