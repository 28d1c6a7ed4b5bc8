// Versions of Kubernetes, and which ones the machine's programs are of.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "ctl/host/host.h"
#include "lib/base/error.h"

namespace keelson::ctl {

struct Version {
  int major = 0, minor = 0, patch = 0;
  std::string pre_release;  // "rc.1" of v1.37.0-rc.1
};
// A pre-release is older than its release; pre-releases compare as texts.
std::strong_ordering operator<=>(const Version& a, const Version& b);
bool operator==(const Version& a, const Version& b);

// Of "v1.36.2", "1.36.2", "v1.37.0-rc.1+build". kInvalid: it is none.
Result<Version> ParseVersion(std::string_view text);

// "v1.36.2", from what the program prints for --version: "Kubernetes v1.36.2". kNotFound: it is not installed. kInvalid: no
// version can be read.
Result<std::string> InstalledVersion(const Host& host, const std::string& program);
// "3.5.16", of the etcd in PATH: "etcd Version: 3.5.16", and lines of other things. Errors as above.
Result<std::string> InstalledEtcdVersion(const Host& host);

}  // namespace keelson::ctl
