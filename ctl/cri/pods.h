// Pod sandboxes: which ones, and how they look.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "ctl/cri/client.h"
#include "ctl/cri/filter.h"
#include "lib/base/clock.h"

namespace keelson::ctl {

// kInvalid: unknown state, or a malformed label.
Result<cri::ListPodSandboxRequest> PodRequest(const CriFilter& filter);
// The part of the filter that the runtime does not do: names, and how many; newest first.
Result<std::vector<cri::PodSandbox>> ChosenPods(const cri::ListPodSandboxResponse& all,
                                                const CriFilter& filter);
Result<std::vector<cri::PodSandbox>> ListPods(CriClient& client, const CriFilter& filter);

std::string PodTable(const std::vector<cri::PodSandbox>& pods, bool full_ids, WallTime now);
std::string PodParagraphs(const std::vector<cri::PodSandbox>& pods);  // --verbose
// `inspectp`; `verbose`: with the runtime's info.
std::string PodStatusText(const cri::PodSandboxStatusResponse& reply, bool verbose);
Result<boost::json::value> PodStatusDocument(const cri::PodSandboxStatusResponse& reply);

// Go's print of the runtime's info: "map[key:value ...]".
std::string InfoText(const google::protobuf::Map<std::string, std::string>& info);

}  // namespace keelson::ctl
