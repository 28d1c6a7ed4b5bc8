#include "kubelet/cm/devices/admission.h"

#include <sys/stat.h>

#include <algorithm>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/text/names.h"

namespace keelson::kubelet::devices {
namespace {

constexpr char kVersion[] = "v1beta1";

Result<> CheckResource(const std::string& resource) {
  // A quota's name for it, "requests." before it, has to be a name as well.
  if (k8s::IsExtendedResource(resource) && k8s::CheckQualifiedName("requests." + resource).empty()) return {};
  return Error(Code::kInvalid, "the ResourceName " + k8s::Quote(resource) + " is invalid");
}

}  // namespace

Result<> CheckRegistration(const RegistrationRequest& request) {
  if (request.version == kVersion) return CheckResource(request.resource);
  return Error(Code::kInvalid, "requested API version " + k8s::Quote(request.version) +
                                   " is not supported by kubelet. Supported version is [" +
                                   k8s::Quote(kVersion) + "]");
}

Result<> CheckRegistration(const std::string& resource, const std::vector<std::string>& versions) {
  if (std::find(versions.begin(), versions.end(), kVersion) == versions.end()) {
    return Error(Code::kInvalid, "manager version, " + std::string(kVersion) +
                                     ", is not among plugin supported versions [" +
                                     fmt::format("{}", fmt::join(versions, " ")) + "]");
  }
  Result<> valid = CheckResource(resource);
  return valid ? valid : valid.error().Wrap("invalid name of device plugin socket");
}

void RemoveSockets(const std::string& dir) {
  auto names = ListDir(dir);
  if (!names) {
    log::Error("Failed to clean up the device plugin directory", {{"dir", dir}, {"err", names.error()}});
    return;
  }
  for (const std::string& name : *names) {
    std::string path = dir + "/" + name;
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) continue;
    if (Result<> done = RemoveFile(path); !done) {
      log::Error("Failed to remove a stale socket", {{"path", path}, {"err", done.error()}});
    }
  }
}

}  // namespace keelson::kubelet::devices
