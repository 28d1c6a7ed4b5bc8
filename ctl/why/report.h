// Explains to people why a pod has no node. Pure.
#pragma once

#include <string>

#include <boost/json/value.hpp>

namespace keelson::ctl {

// `answer`: the document that the scheduler serves at /debug/why.
std::string WhyPodText(const boost::json::value& answer);
// Whether the pod has no node, and no node would take it.
bool HasNowhereToGo(const boost::json::value& answer);

}  // namespace keelson::ctl
