// Finds why a Service does not answer, as far as the API tells; `nodectl trace service` asks the kernel. Pure.
#pragma once

#include <vector>

#include "ctl/why/service/service_health_view.h"
#include "ctl/why/why_report.h"

namespace keelson::ctl {

WhyReport JudgeService(const ServiceHealthView& view);

// The parts of it. `ready`: pods that the selector matches and that are Ready.
void JudgePorts(const ServiceHealthView& view, const std::vector<const corev1::Pod*>& ready,
                std::vector<Problem>& out);
void JudgePolicies(const ServiceHealthView& view, const std::vector<const corev1::Pod*>& ready,
                   WhyReport& report);

}  // namespace keelson::ctl
