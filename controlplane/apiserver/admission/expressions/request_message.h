// A request as the AdmissionRequest of admission.k8s.io, which webhooks and expressions see.
#pragma once

#include "controlplane/apiserver/admission/admission.h"
#include "lib/api/proto/admission_v1.pb.h"

namespace keelson::apiserver {

// All fields but uid, object and oldObject. `row`: in whose version the rules want to see the request.
void FillRequestMessage(const AdmissionRequest& request, const api::ResourceInfo& row,
                        api::admission::v1::AdmissionRequest& out);

}  // namespace keelson::apiserver
