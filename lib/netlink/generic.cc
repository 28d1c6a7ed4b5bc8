#include <linux/genetlink.h>

#include "lib/netlink/generic_internal.h"
#include "lib/netlink/request_internal.h"

namespace keelson::netlink {

Result<int> GenericFamily(Socket& generic, std::string_view name) {
  genlmsghdr header{};
  header.cmd = CTRL_CMD_GETFAMILY;
  header.version = 1;
  Request request(GENL_ID_CTRL, 0, header, "find " + std::string(name) + " in the kernel");
  request.PutString(CTRL_ATTR_FAMILY_NAME, name);
  int id = 0;
  Result<> found = request.Run(generic, [&](nlmsghdr* message) {
    if (nlattr* attribute = nlmsg_find_attr(message, sizeof header, CTRL_ATTR_FAMILY_ID)) {
      id = nla_get_u16(attribute);
    }
  });
  if (!found && found.error().Is(Code::kNotFound)) {
    return Error(Code::kUnimplemented, "this kernel has no " + std::string(name));
  }
  if (!found) return found.error();
  return id;
}

}  // namespace keelson::netlink
