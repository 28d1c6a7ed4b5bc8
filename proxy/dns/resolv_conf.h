// The name servers of resolv.conf(5).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/ip.h"

namespace keelson::proxy::dns {

// In order, without repeats; lines that are not understood are skipped, as libc does. A zone index (%eth0) is
// dropped.
std::vector<IpAddress> NameServers(std::string_view resolv_conf);

// Reads a file again when it has changed: its inode, size or time of change, links followed.
class ResolvConf {
 public:
  explicit ResolvConf(std::string path) : path_(std::move(path)) {}
  // True when the file may say something else than at the last call; the first is always.
  bool Changed();
  Result<std::vector<IpAddress>> Read() const;

 private:
  std::string path_;
  std::string seen_;  // what tells one state of the file from another
  bool first_ = true;
};

}  // namespace keelson::proxy::dns
