// Converts HorizontalPodAutoscalers between autoscaling/v1 and v2. v1 has fields for one CPU metric only;
// the rest of a v2 object travels in annotations, as JSON in v1's spelling, so that a round trip loses
// nothing.
#pragma once

#include "lib/api/proto/autoscaling_v2.pb.h"
#include "lib/api/types.h"

namespace keelson::k8s {

namespace autoscalingv2 = api::autoscaling::v2;

autoscalingv1::HorizontalPodAutoscaler ToAutoscalingV1(const autoscalingv2::HorizontalPodAutoscaler& from);
autoscalingv2::HorizontalPodAutoscaler ToAutoscalingV2(const autoscalingv1::HorizontalPodAutoscaler& from);

}  // namespace keelson::k8s
