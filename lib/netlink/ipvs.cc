#include "lib/netlink/ipvs.h"

#include <linux/genetlink.h>
#include <linux/ip_vs.h>

#include "lib/netlink/generic_internal.h"
#include "lib/netlink/request_internal.h"

namespace keelson::netlink {

Result<> FlushVirtualServers(Socket& generic) {
  ASSIGN_OR_RETURN(int family, GenericFamily(generic, IPVS_GENL_NAME));
  genlmsghdr header{};
  header.cmd = IPVS_CMD_FLUSH;
  header.version = IPVS_GENL_VERSION;
  return Request(family, 0, header, "remove virtual servers").Run(generic);
}

}  // namespace keelson::netlink
