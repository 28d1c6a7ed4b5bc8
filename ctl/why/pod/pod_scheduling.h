// What the scheduler says of a pod without a node. Pure.
#pragma once

#include <string>
#include <vector>

#include <boost/json/value.hpp>

#include "ctl/problem.h"

namespace keelson::ctl {

// One line a reason of "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {a: }. preemption: ...",
// the scheduler's message in condition PodScheduled and in event FailedScheduling; the line of preemption comes last. A
// message of another form is one line.
std::vector<std::string> SchedulingReasons(const std::string& message);
// How many nodes the message counts; -1: it has another form.
int NodesOf(const std::string& message);
// The commands that show more of what the reasons say.
std::vector<std::string> NextForScheduling(const std::string& message);

// `answer`: the document that the scheduler serves at /debug/why. A line for each node that refuses the pod, with
// numbers, and a line for each that would take it, with its score.
std::vector<std::string> SchedulingLines(const boost::json::value& answer);
// The same, or what the scheduler says of all nodes at once, as a problem.
Problem JudgeSchedulingAnswer(const boost::json::value& answer);

}  // namespace keelson::ctl
