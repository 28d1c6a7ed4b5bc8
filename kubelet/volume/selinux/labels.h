// SELinux labels that container runtimes give to files of a container, so that a volume can be mounted with them.
// Sources: KEP-1710; lxc_contexts(5) and selinux(8); mount(8), option context.
#pragma once

#include <string>

#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

class SeLinuxLabels {  // immutable
 public:
  // Of a host without SELinux: there are no labels.
  SeLinuxLabels() = default;
  // `files`: the policy's label for files of containers, user:role:type[:level].
  explicit SeLinuxLabels(std::string files) : enabled_(true), files_(std::move(files)) {}
  // Reads the kernel's state and the policy's contexts below `root`, which is empty but in tests.
  static SeLinuxLabels OfHost(const std::string& root = "");

  bool enabled() const { return enabled_; }
  // The label of files that a process with these options may use. Empty: the runtime chooses the level, so the label is
  // not known before. kInvalid: an option has characters that no label has, and that could end a mount option.
  Result<std::string> FileLabel(const corev1::SELinuxOptions& options) const;

 private:
  bool enabled_ = false;
  std::string files_;
};

}  // namespace keelson::kubelet
