// Containers: which ones, and how they look.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "ctl/cri/client.h"
#include "ctl/cri/filter.h"
#include "lib/base/clock.h"

namespace keelson::ctl {

// Without --all and --state only running ones; --latest and --last count those of all states. kInvalid: unknown
// state, or a malformed label.
Result<cri::ListContainersRequest> ContainerRequest(const CriFilter& filter);
// The part of the filter that the runtime does not do, but for the image: names, and how many; newest first.
Result<std::vector<cri::Container>> ChosenContainers(std::vector<cri::Container> all,
                                                     const CriFilter& filter);
Result<std::vector<cri::Container>> ListContainers(CriClient& client, const CriFilter& filter);
// The container itself: kNotFound, or another failure of the runtime.
Result<cri::ContainerStatusResponse> GetContainerStatus(CriClient& client, const std::string& id,
                                                        bool verbose);

std::string ContainerTable(const std::vector<cri::Container>& containers, bool full_ids, WallTime now);
std::string ContainerParagraphs(const std::vector<cri::Container>& containers, WallTime now);  // --verbose
// `inspect`; `verbose`: with the runtime's info.
std::string ContainerStatusText(const cri::ContainerStatusResponse& reply, bool verbose, WallTime now);
Result<boost::json::value> ContainerStatusDocument(const cri::ContainerStatusResponse& reply);

}  // namespace keelson::ctl
