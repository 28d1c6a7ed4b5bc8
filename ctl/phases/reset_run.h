// `nodectl reset`: takes back what init and join have done on this machine.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "ctl/config/documents.h"
#include "ctl/host/host.h"

namespace keelson::ctl {

// What a reset removes. Pure.
struct ResetPlan {
  std::vector<std::string> units;                  // to stop, in order
  std::vector<std::vector<std::string>> cleanups;  // what daemons have in the kernel, by their own options
  std::vector<std::string> emptied, files, directories;  // `emptied`: what is inside
};
ResetPlan PlanReset(const ResetConfiguration& config);

// Does all of it, and goes on after what fails: kInternal names everything that is left. Running it again, also after a
// kill, ends the work.
Result<> RunReset(Host& host, const ResetConfiguration& config, std::ostream& out, std::ostream& err);

}  // namespace keelson::ctl
