// Whose kernel objects are: nftables elements and interfaces that outlive a container's namespace carry a
// label, by which DEL and GC find them without any file of their own.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "cni/lib/plugin.h"

namespace keelson::cni {

// "NETWORK/CONTAINERID/IFNAME"; longer names are cut and closed with a hash. At most 120 bytes.
std::string LabelOf(const std::string& network, const Attachment& attachment);
inline std::string LabelOf(const Request& request) {
  return LabelOf(request.network, {request.container_id, request.ifname});
}

// GC: labels of the request's network that are none of its valid attachments'.
class StaleLabels {
 public:
  explicit StaleLabels(const Request& request);
  bool Contains(std::string_view label) const;

 private:
  std::string prefix_;
  std::set<std::string, std::less<>> valid_;
};

// 32 bits of a text, as hexadecimal digits: for names that the kernel limits.
std::string ShortHash(std::string_view text);

}  // namespace keelson::cni
