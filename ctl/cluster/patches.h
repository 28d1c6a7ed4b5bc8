// kubeadm's patches: a directory of files that change the KubeletConfiguration of one node. The files are named
// target[suffix][+patchtype].extension ("kubeletconfiguration0+merge.yaml"), and are applied in the order of their names. Other targets
// of kubeadm are static pods and a Deployment, which do not exist here: their files are named in a warning.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::ctl {

enum class PatchKind { kStrategic, kMerge, kJson };

struct PatchName {
  std::string target;  // empty: the file is no patch, and `why` says so
  PatchKind kind = PatchKind::kStrategic;
  std::string why;
};
// kInvalid: a patch type that there is not. Pure.
Result<PatchName> ParsePatchName(std::string_view file);

struct KubeletPatch {
  std::string file;
  PatchKind kind = PatchKind::kStrategic;
  boost::json::value patch;
};
using KubeletPatches = std::vector<KubeletPatch>;

// Reads the files of the directory, and tells on `out` which ones it takes and which not. An empty path: no patches. kInvalid: a file
// cannot be understood. The directory is this machine's own, wherever --rootfs is.
Result<KubeletPatches> ReadPatches(const std::string& directory, std::ostream& out, std::ostream& err);

// kInvalid: a patch does not fit the document, or would make it another kind of document. Pure.
Result<boost::json::object> ApplyPatches(boost::json::object kubelet, const KubeletPatches& patches);

}  // namespace keelson::ctl
