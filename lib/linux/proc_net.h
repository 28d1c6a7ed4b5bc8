// Files of /proc/net. An open file stays with the network namespace that it was opened in, whatever its
// thread does later. For facts that the kernel offers in no other way, or only with many more system calls.
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
  // Opens /proc/net/NAME in the calling thread's namespace. kNotFound: this kernel has no such file.
  static Result<ProcNetFile> Open(const std::string& name);
  Result<std::string> Read() const;  // the whole file as it is now

 private:
  explicit ProcNetFile(UniqueFd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}
  UniqueFd fd_;
  std::string name_;
};

// Adds the local addresses of connected sockets. `text` is that of `tcp`, `tcp6`, `udp` or `udp6`. A TCP
// socket counts from SYN until neither side sends any more. IPv4 addresses on IPv6 sockets are added as
// IPv4.
void AddConnectedAddresses(std::string_view text, std::set<IpAddress>& out);

// An address in the form of these files: words of hexadecimal digits in host order. nullopt: not an
// address.
std::optional<IpAddress> ParseProcNetAddress(std::string_view text);

}  // namespace keelson::linux
