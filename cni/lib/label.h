// Ownership of kernel objects: nftables elements and interfaces that outlive a container's namespace carry
// a label, by which DEL and GC find them without files.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "cni/lib/plugin.h"

namespace keelson::cni {

// "NETWORK/CONTAINERID/IFNAME"; long names are cut and end with a hash. At most 120 bytes.
std::string LabelOf(const std::string& network, const Attachment& attachment);
inline std::string LabelOf(const Request& request) {
  return LabelOf(request.network, {request.container_id, request.ifname});
}

// For GC: matches labels of the request's network that belong to none of its valid attachments.
class StaleLabels {
 public:
  explicit StaleLabels(const Request& request);
  bool Contains(std::string_view label) const;

 private:
  std::string prefix_;
  std::set<std::string, std::less<>> valid_;
};

// A 32-bit hash of a text as hexadecimal digits, for names whose length the kernel limits.
std::string ShortHash(std::string_view text);

}  // namespace keelson::cni
