// resource.k8s.io: defaults of requests, tolerations and taints.

#include "lib/api/meta.h"
#include "lib/api/proto/resource_v1.pb.h"
#include "lib/base/clock.h"
#include "lib/k8s/defaulting/table.h"

namespace keelson::k8s {

namespace resourcev1 = api::resource::v1;

namespace {

template <typename Request>
void DefaultRequest(Request& request) {
  if (request.allocation_mode().empty()) request.set_allocation_mode("ExactCount");
  if (request.allocation_mode() == "ExactCount" && request.count() == 0) request.set_count(1);
  for (resourcev1::DeviceToleration& toleration : *request.mutable_tolerations()) {
    if (toleration.operator_().empty()) toleration.set_operator_("Equal");
  }
}

void DefaultDevices(resourcev1::DeviceClaim& claim) {
  for (resourcev1::DeviceRequest& request : *claim.mutable_requests()) {
    if (request.has_exactly()) DefaultRequest(*request.mutable_exactly());
    for (resourcev1::DeviceSubRequest& sub : *request.mutable_first_available()) DefaultRequest(sub);
  }
}

void DefaultResourceClaim(resourcev1::ResourceClaim& object) {
  if (object.spec().has_devices()) DefaultDevices(*object.mutable_spec()->mutable_devices());
}

void DefaultClaimTemplate(resourcev1::ResourceClaimTemplate& object) {
  if (object.spec().spec().has_devices()) {
    DefaultDevices(*object.mutable_spec()->mutable_spec()->mutable_devices());
  }
}

// timeAdded of a taint defaults to the time of the write.
void DefaultSlice(resourcev1::ResourceSlice& object) {
  if (object.spec().devices().empty()) return;
  for (resourcev1::Device& device : *object.mutable_spec()->mutable_devices()) {
    for (resourcev1::DeviceTaint& taint : *device.mutable_taints()) {
      if (!taint.has_time_added()) *taint.mutable_time_added() = api::ToTime(Clock::Real().Now());
    }
  }
}

}  // namespace

void RegisterDeviceDefaults(DefaultTable& table) {
  table.Add<resourcev1::ResourceClaim, DefaultResourceClaim>();
  table.Add<resourcev1::ResourceClaimTemplate, DefaultClaimTemplate>();
  table.Add<resourcev1::ResourceSlice, DefaultSlice>();
}

}  // namespace keelson::k8s
