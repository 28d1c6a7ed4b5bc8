// A problem that a verb has found.
#pragma once

#include <string>

namespace keelson::ctl {

struct Problem {
  std::string reason;   // one word for programs: "NoEndpoints"
  std::string message;  // a sentence for people
};

}  // namespace keelson::ctl
