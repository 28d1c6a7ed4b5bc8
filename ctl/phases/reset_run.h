// `nodectl reset`: takes back what init and join have done on this machine.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/config/documents.h"
#include "ctl/host/host.h"
#include "ctl/phases/phase_log.h"

namespace keelson::ctl {

// What a reset removes. Pure.
struct ResetPlan {
  std::vector<std::string> units;                  // to stop, in order
  std::vector<std::vector<std::string>> cleanups;  // what daemons have in the kernel, by their own options
  std::vector<std::string> emptied, files, directories;  // `emptied`: what is inside
  std::string volumes;                                   // data directory of keelson-csi-local
};
// `csi_settings`: texts of the files with that unit's flags, in their order.
ResetPlan PlanReset(const ResetConfiguration& config, const std::vector<std::string>& csi_settings = {});
// The data directory of volumes that a reset of this machine leaves; empty: there is none, or it is to be removed.
std::string VolumesThatStay(const Host& host, const ResetConfiguration& config);

// The loop devices in losetup's table NAME,BACK-FILE whose files are below the directory. Pure.
std::vector<std::string> DevicesOf(std::string_view table, const std::string& directory);

struct ResetOptions {
  std::string phase;        // the only one to run; empty: all
  PhaseLog* log = nullptr;  // outlives the run
};
std::string DescribeResetPhases();
// Does all of it, and goes on after what fails: kInternal names everything that is left. Running it again, also after a
// kill, ends the work.
Result<> RunReset(Host& host, const ResetConfiguration& config, std::ostream& out, std::ostream& err,
                  const ResetOptions& options = {});

}  // namespace keelson::ctl
