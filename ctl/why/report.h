// What the scheduler says of a pod, for people.
#pragma once

#include <string>

#include <boost/json/value.hpp>

namespace keelson::ctl {

// `answer` is that of the scheduler's /debug/why.
std::string WhyPodText(const boost::json::value& answer);
// Whether the pod has no node, and there is none for it.
bool HasNowhereToGo(const boost::json::value& answer);

}  // namespace keelson::ctl
