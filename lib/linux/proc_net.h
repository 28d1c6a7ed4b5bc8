// Files of /proc/net, which are those of a network namespace: a file stays that of the namespace it was
// opened in, whatever its thread does later. For what the kernel tells by no other way, or by many more
// system calls.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/base/ip.h"

namespace keelson::linux {

class ProcNetFile {
 public:
  // In the calling thread's namespace. kNotFound: this kernel has no such file.
  static Result<ProcNetFile> Open(const std::string& name);
  Result<std::string> Read() const;  // all of it, as it is now

 private:
  explicit ProcNetFile(UniqueFd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}
  UniqueFd fd_;
  std::string name_;
};

// Of the text of `tcp`, `tcp6`, `udp` or `udp6`: addresses of this namespace's own that sockets are connected
// from; of TCP from when that is asked for until nobody sends any more. Those of IPv4 on sockets of IPv6 are
// of IPv4.
void AddConnectedAddresses(std::string_view text, std::set<IpAddress>& out);

// An address as these files have it: words of hexadecimal digits in host order; nullopt when it is not one.
std::optional<IpAddress> ParseProcNetAddress(std::string_view text);

}  // namespace keelson::linux
