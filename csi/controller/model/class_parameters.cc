#include "csi/controller/model/class_parameters.h"

#include <fmt/format.h>
#include <strings.h>

#include "csi/controller/model/secret_reference.h"
#include "lib/base/json_quote.h"

namespace keelson::csi::controller {
namespace {

constexpr std::string_view kPrefix = "csi.storage.k8s.io/";
constexpr char kFsType[] = "csi.storage.k8s.io/fstype";

}  // namespace

Result<ClassParameters> ReadClassParameters(const Strings& parameters, const std::string& default_fs_type) {
  ClassParameters out;
  int fs_types = 0;
  for (const auto& [key, value] : parameters) {
    const bool old_fs_type = strcasecmp(key.c_str(), "fstype") == 0;
    if (old_fs_type || key == kFsType) {
      out.fs_type = value;
      ++fs_types;
    }
    // The old spelling goes on to the driver too, as drivers expect it.
    if (key.compare(0, kPrefix.size(), kPrefix) != 0) {
      out.driver[key] = value;
    } else if (key != kFsType && !IsSecretParameter(key)) {
      return Error(
          Code::kInvalid,
          fmt::format("failed to strip CSI Parameters of prefixed keys: found unknown parameter key {} "
                      "with reserved namespace {}",
                      JsonQuoted(key), kPrefix));
    }
  }
  if (fs_types > 1) {
    return Error(Code::kInvalid,
                 fmt::format(R"(fstype specified in parameters with both "fstype" and "{}" keys)", kFsType));
  }
  if (out.fs_type.empty()) out.fs_type = default_fs_type;
  return out;
}

}  // namespace keelson::csi::controller
