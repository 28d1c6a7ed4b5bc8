#include "proxy/ebpf/own_clsact.h"

#include <unistd.h>

#include <algorithm>

#include "lib/base/file.h"
#include "lib/bpf/fs.h"
#include "lib/netlink/tc/clsact.h"

namespace keelson::proxy::ebpf {

Result<> OwnClsact::Note(netlink::Socket& socket, int link_index) const {
  if (directory_.empty()) return {};
  KEELSON_ASSIGN_OR_RETURN(bool there, netlink::HasClsact(socket, link_index));
  return there ? Result<>() : bpf::MakePinDirectory(PathOf(link_index));
}

Result<> OwnClsact::Release(netlink::Socket& socket, int link_index) const {
  if (directory_.empty() || !PathExists(PathOf(link_index))) return {};
  KEELSON_RETURN_IF_ERROR(netlink::RemoveIdleClsact(socket, link_index));
  KEELSON_ASSIGN_OR_RETURN(bool there, netlink::HasClsact(socket, link_index));
  if (there) return {};  // the other family's filters, or somebody's
  KEELSON_RETURN_IF_ERROR(bpf::RemovePinDirectory(PathOf(link_index)));
  (void)::rmdir(directory_.c_str());  // the last one's
  return {};
}

Result<> OwnClsact::Forget(const std::vector<netlink::Link>& links_there) const {
  if (directory_.empty() || !PathExists(directory_)) return {};
  KEELSON_ASSIGN_OR_RETURN(std::vector<std::string> noted, ListDir(directory_));
  for (const std::string& index : noted) {
    const bool there = std::any_of(links_there.begin(), links_there.end(), [&](const netlink::Link& link) {
      return std::to_string(link.index) == index;
    });
    if (!there) KEELSON_RETURN_IF_ERROR(bpf::RemovePinDirectory(directory_ + "/" + index));
  }
  return {};
}

Result<> OwnClsact::ForgetAll() const {
  if (directory_.empty()) return {};
  return bpf::RemovePinDirectory(directory_);
}

}  // namespace keelson::proxy::ebpf
