#include "lib/netlink/xdp_features.h"

#include <linux/genetlink.h>

#include "lib/netlink/generic_internal.h"
#include "lib/netlink/request_internal.h"

namespace keelson::netlink {
namespace {

// From linux/netdev.h, which Debian 12 does not have.
constexpr uint8_t kGetDevice = 1;
constexpr int kIndex = 1, kFeatures = 3;

}  // namespace

Result<uint64_t> XdpFeatures(Socket& generic, int link_index) {
  KEELSON_ASSIGN_OR_RETURN(int family, GenericFamily(generic, "netdev"));
  genlmsghdr header{};
  header.cmd = kGetDevice;
  header.version = 1;
  Request request(family, 0, header, "ask what interface " + std::to_string(link_index) + " can do");
  request.PutU32(kIndex, static_cast<uint32_t>(link_index));
  uint64_t out = 0;
  Result<> asked = request.Run(generic, [&](nlmsghdr* message) {
    if (nlattr* features = nlmsg_find_attr(message, sizeof header, kFeatures)) out = nla_get_u64(features);
  });
  if (!asked) return asked.error();
  return out;
}

}  // namespace keelson::netlink
