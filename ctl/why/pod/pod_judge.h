// Finds what keeps a pod from being created, scheduled, started, ready, or gone. Pure.
#pragma once

#include <string>
#include <vector>

#include "ctl/problem.h"
#include "ctl/why/pod/pod_view.h"
#include "ctl/why/why_report.h"

namespace keelson::ctl {

WhyReport JudgePod(const PodView& view);
WhyReport JudgeAbsentPod(const AbsentPodView& view);

// The parts of it, each of which adds what it finds.
void JudgeEnd(const PodView& view, std::vector<Problem>& out);         // deletion, eviction, failure
void JudgeScheduling(const PodView& view, std::vector<Problem>& out);  // of a pod without a node
void JudgeNodeOfPod(const PodView& view, std::vector<Problem>& out);
void JudgeStart(const PodView& view, std::vector<Problem>& out);  // volumes, sandbox
void JudgeContainers(const PodView& view, std::vector<Problem>& out);
Problem JudgeImage(const PodView& view, const corev1::ContainerStatus& status, const std::string& what);
// `ended`: how the last instance ended.
Problem JudgeExit(const PodView& view, const corev1::ContainerStatus& status, const std::string& what,
                  const corev1::ContainerStateTerminated& ended);

// The ConfigMap, Secret or key that the text says is missing.
std::optional<Problem> MissingReference(const PodView& view, const std::string& what,
                                        const std::string& text);

}  // namespace keelson::ctl
