// Taints of devices and tolerations of requests (KEP-5055). Pure.
#pragma once

#include "lib/api/proto/resource_v1.pb.h"

namespace keelson::scheduler {

namespace resourcev1 = api::resource::v1;

using DeviceTolerations = google::protobuf::RepeatedPtrField<resourcev1::DeviceToleration>;

bool Tolerates(const resourcev1::DeviceToleration& toleration, const resourcev1::DeviceTaint& taint);
// The first taint with effect NoSchedule or NoExecute that is not tolerated, or null. Other effects keep nothing away.
const resourcev1::DeviceTaint* FindUntolerated(const resourcev1::Device& device,
                                               const DeviceTolerations& tolerations);

}  // namespace keelson::scheduler
