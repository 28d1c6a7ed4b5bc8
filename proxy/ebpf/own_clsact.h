// Filters hang on a device's queueing discipline "clsact", which others use as well. Those that this node's
// proxies have made go with the last filter. Which these are is told by directories in a BPF file system,
// PINS/clsact/INDEX, that are there before the discipline is: no process need be, and a kill leaves nothing
// that stays.
#pragma once

#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/dataplane/ebpf_layout.h"
#include "lib/netlink/link.h"

namespace keelson::proxy::ebpf {

class OwnClsact {
 public:
  // Empty: no note is taken, and all stay.
  explicit OwnClsact(const std::string& pin_directory)
      : directory_(pin_directory.empty() ? "" : pin_directory + dataplane::kPinsClsact) {}

  // Before a filter is attached, which makes the discipline if there is none.
  Result<> Note(netlink::Socket& socket, int link_index) const;
  // After filters have gone.
  Result<> Release(netlink::Socket& socket, int link_index) const;
  // Of devices that are no more there is nothing to be told.
  Result<> Forget(const std::vector<netlink::Link>& links_there) const;
  // Whatever is left.
  Result<> ForgetAll() const;

 private:
  std::string PathOf(int link_index) const { return directory_ + "/" + std::to_string(link_index); }
  std::string directory_;
};

}  // namespace keelson::proxy::ebpf
