// URLs as Go's url.ParseRequestURI reads them: absolute, or an absolute path.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::cel {

struct GoUrl {
  std::string scheme, host;  // host with its port
  std::string path;          // decoded
  std::string raw_path;      // as it was
  std::string raw_query;
  std::string opaque;  // of URLs like mailto:x

  // kBadRequest in Go's words: parse "x": invalid URI for request
  static Result<GoUrl> Parse(std::string_view text);

  std::string Hostname() const;
  std::string Port() const;
  std::string EscapedPath() const;
  std::map<std::string, std::vector<std::string>> Query() const;  // without pairs that do not decode
  std::string ToString() const;
  bool operator==(const GoUrl& other) const { return ToString() == other.ToString(); }
};

}  // namespace keelson::cel
