// The name servers of resolv.conf(5).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/ip.h"

namespace keelson::proxy::dns {

// In order, without repeats; skips malformed lines and drops a zone index (%eth0), as libc does.
std::vector<IpAddress> NameServers(std::string_view resolv_conf);

// Detects changes of a file by its inode, size and time of change; follows links.
class ResolvConf {
 public:
  explicit ResolvConf(std::string path) : path_(std::move(path)) {}
  // Whether the file may have changed since the last call. True for the first call.
  bool Changed();
  Result<std::vector<IpAddress>> Read() const;

 private:
  std::string path_;
  std::string seen_;  // identifies the state of the file
  bool first_ = true;
};

}  // namespace keelson::proxy::dns
