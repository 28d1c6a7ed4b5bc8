// Parses values of flags.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/text.h"

namespace keelson::controlplane {

// Of the file; empty where no file is named.
inline Result<std::string> ReadIfSet(const std::string& path) {
  return path.empty() ? std::string() : ReadFile(path);
}

// The key prefix in etcd: "/a/b" for "a/b" and "/a/b/". kInvalid for an empty or non-canonical path ("a//b",
// "a/../b").
inline Result<std::string> EtcdPrefix(std::string_view flag) {
  while (flag.starts_with('/')) flag.remove_prefix(1);
  while (flag.ends_with('/')) flag.remove_suffix(1);
  std::string out = "/" + std::string(flag);
  const std::string closed = out + "/";
  for (const char* odd : {"//", "/./", "/../"}) {
    if (closed.find(odd) != std::string::npos) {
      return Error(Code::kInvalid, "--etcd-prefix is no path with a name: \"" + std::string(flag) + "\"");
    }
  }
  return out;
}

}  // namespace keelson::controlplane
