// Fills in absent fields as upstream's v1 defaults do, so that every reader sees complete objects. Applied
// when a request body is decoded and to objects read from storage; idempotent.
//
// Value-form zero is the same as absent (lib/api/codec/codec.h); pointer-form fields have presence.
#pragma once

#include <google/protobuf/message.h>

#include "lib/api/proto/core_v1_pod.pb.h"

namespace keelson::k8s {

// Sets the defaults for the object's message type; kinds without defaults stay as they are. For a list
// kind: of every item.
void SetDefaults(google::protobuf::Message& object);
// SetDefaults() for a Pod, for programs that know no other kinds.
void SetPodDefaults(api::core::v1::Pod& pod);

}  // namespace keelson::k8s
