// Notes which devices got their queueing discipline "clsact", which filters are attached to, from kube-proxy.
// Those are removed with kube-proxy's last filter; one that somebody else has made stays. The notes are
// directories in a BPF file system, PINS/clsact/INDEX, made before the discipline, so that they outlive a
// process that is killed.
#pragma once

#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/dataplane/ebpf_layout.h"
#include "lib/netlink/link.h"

namespace keelson::proxy::ebpf {

class OwnClsact {
 public:
  // Empty: no notes are taken, and every clsact stays.
  explicit OwnClsact(const std::string& pin_directory)
      : directory_(pin_directory.empty() ? "" : pin_directory + dataplane::kPinsClsact) {}

  // Call before a filter is attached. Notes a device that has no clsact yet.
  Result<> Note(netlink::Socket& socket, int link_index) const;
  // Call after filters were removed. Removes a noted clsact without filters, and its note.
  Result<> Release(netlink::Socket& socket, int link_index) const;
  // Removes the notes of devices that have gone.
  Result<> Forget(const std::vector<netlink::Link>& links_there) const;
  // Removes all notes.
  Result<> ForgetAll() const;

 private:
  std::string PathOf(int link_index) const { return directory_ + "/" + std::to_string(link_index); }
  std::string directory_;
};

}  // namespace keelson::proxy::ebpf
