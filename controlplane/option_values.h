// How values of flags are read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/file.h"

namespace keelson::controlplane {

inline std::vector<std::string> SplitCommas(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    auto comma = text.find(',');
    out.emplace_back(text.substr(0, comma));
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return out;
}

// Of the file; empty where no file is named.
inline Result<std::string> ReadIfSet(const std::string& path) {
  return path.empty() ? std::string() : ReadFile(path);
}

}  // namespace keelson::controlplane
