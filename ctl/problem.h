// A problem that a verb has found.
#pragma once

#include <string>
#include <vector>

namespace keelson::ctl {

struct Problem {
  std::string reason;                      // one word for programs: "NoEndpoints"
  std::string message;                     // a sentence for people
  std::vector<std::string> evidence = {};  // what shows it, a line each
  std::vector<std::string> next = {};      // commands to copy, the first one first
};

}  // namespace keelson::ctl
