#include "csi/local/testing/sanity_kinds.h"

namespace keelson::csi::local {

std::vector<VolumeKind> SanityKinds() {
  const std::vector<std::string> flags{"--directory-quotas=false"};
  return {{.name = "FileSystem", .block = false, .type = "", .flags = flags},
          {.name = "Directory", .block = false, .type = "directory", .flags = flags},
          {.name = "Block", .block = true, .type = "file", .flags = flags}};
}

}  // namespace keelson::csi::local
