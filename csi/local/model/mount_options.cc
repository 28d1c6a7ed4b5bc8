#include "csi/local/model/mount_options.h"

#include <sys/mount.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "lib/base/text.h"

namespace keelson::csi::local {

namespace {

struct Change {
  unsigned long set = 0, clear = 0;
};

const std::map<std::string_view, Change>& Flags() {
  static const std::map<std::string_view, Change> kFlags = {
      {"defaults", {}},
      {"rw", {0, MS_RDONLY}},
      {"ro", {MS_RDONLY, 0}},
      {"suid", {0, MS_NOSUID}},
      {"nosuid", {MS_NOSUID, 0}},
      {"dev", {0, MS_NODEV}},
      {"nodev", {MS_NODEV, 0}},
      {"exec", {0, MS_NOEXEC}},
      {"noexec", {MS_NOEXEC, 0}},
      {"async", {0, MS_SYNCHRONOUS}},
      {"sync", {MS_SYNCHRONOUS, 0}},
      {"dirsync", {MS_DIRSYNC, 0}},
      {"atime", {0, MS_NOATIME}},
      {"noatime", {MS_NOATIME, 0}},
      {"diratime", {0, MS_NODIRATIME}},
      {"nodiratime", {MS_NODIRATIME, 0}},
      {"relatime", {MS_RELATIME, 0}},
      {"strictatime", {MS_STRICTATIME, 0}},
      {"lazytime", {MS_LAZYTIME, 0}},
  };
  return kFlags;
}

bool IsRefused(std::string_view option) {
  static const std::set<std::string_view> kRefused = {
      "bind",  "rbind", "move", "remount", "loop",    "offset", "sizelimit", "user",   "users",  "nouser",
      "owner", "group", "auto", "noauto",  "_netdev", "nofail", "comment",   "helper", "uhelper"};
  return kRefused.contains(option.substr(0, option.find('='))) || option.substr(0, 2) == "x-" ||
         option.substr(0, 2) == "X-";
}

bool IsPlain(std::string_view option) {
  return std::all_of(option.begin(), option.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_=.:+").find(c) != std::string_view::npos;
  });
}

}  // namespace

Result<MountOptions> ParseMountOptions(const std::vector<std::string>& options) {
  MountOptions out;
  for (const std::string& text : options) {
    for (const std::string& option : SplitList(text)) {
      if (option.empty()) continue;
      if (auto it = Flags().find(option); it != Flags().end()) {
        out.flags = (out.flags & ~it->second.clear) | it->second.set;
      } else if (IsRefused(option) || !IsPlain(option)) {
        return Error(Code::kInvalid, "mount option \"" + option + "\" is not supported");
      } else {
        out.data += (out.data.empty() ? "" : ",") + option;
      }
    }
  }
  return out;
}

}  // namespace keelson::csi::local
