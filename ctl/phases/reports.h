// What init and join have made, for their documents.
#pragma once

#include <boost/json/object.hpp>

#include "ctl/phases/init_run.h"
#include "ctl/phases/join_run.h"

namespace keelson::ctl {

// How to reach the cluster and how others join it. Token and certificate key are absent where they are not to be printed, or none was
// made; what a run that has failed does not know is absent too.
boost::json::object InitReport(InitRun& run);
boost::json::object JoinReport(const JoinRun& run);

}  // namespace keelson::ctl
