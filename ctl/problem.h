// Something that is wrong with what was looked at.
#pragma once

#include <string>

namespace keelson::ctl {

struct Problem {
  std::string reason;  // "NoEndpoints", for programs
  std::string message;
};

}  // namespace keelson::ctl
