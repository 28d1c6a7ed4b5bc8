#include "csi/local/model/path.h"

#include <climits>

#include "lib/base/text.h"

namespace keelson::csi::local {

bool IsCleanAbsolutePath(std::string_view path) {
  if (path.empty() || path.front() != '/' || path.size() >= PATH_MAX) return false;
  if (path.find('\0') != std::string_view::npos) return false;
  if (path == "/") return true;
  for (std::string_view part : Split(path.substr(1), '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

}  // namespace keelson::csi::local
