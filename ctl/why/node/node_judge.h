// Finds what keeps a node from taking and running pods. Pure.
#pragma once

#include "ctl/why/node/node_health_view.h"
#include "ctl/why/why_report.h"

namespace keelson::ctl {

WhyReport JudgeNode(const NodeHealthView& view);

}  // namespace keelson::ctl
