// What containers and pods use: two samples of the runtime make a table.
#pragma once

#include <string>

#include "ctl/cri/client.h"

namespace keelson::ctl {

// By id.
void SortStats(cri::ListContainerStatsResponse& stats);
void SortStats(cri::ListPodSandboxStatsResponse& stats);
// CPU is what was used from `before` to `now`, in percent of one CPU. Leaves out what is in only one of them and,
// without `all`, what uses neither CPU nor memory. kUnavailable: the runtime has no newer sample.
Result<std::string> ContainerStatsTable(const cri::ListContainerStatsResponse& before,
                                        const cri::ListContainerStatsResponse& now, bool all);
Result<std::string> PodStatsTable(const cri::ListPodSandboxStatsResponse& before,
                                  const cri::ListPodSandboxStatsResponse& now);

}  // namespace keelson::ctl
