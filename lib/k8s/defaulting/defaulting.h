// Fills in what a user left out, as upstream's v1 defaults do, so that every reader sees complete objects.
// Done on decode of a request body and on objects read from storage; idempotent.
//
// Value-form zero is the same as absent (lib/api/codec/codec.h); pointer-form fields have presence.
#pragma once

#include <google/protobuf/message.h>

#include "lib/api/proto/core_v1_pod.pb.h"

namespace keelson::k8s {

// Dispatches by message type; kinds without defaults are left alone. List kinds: every item.
void SetDefaults(google::protobuf::Message& object);
// The same of a Pod, for programs that know no other kinds.
void SetPodDefaults(api::core::v1::Pod& pod);

}  // namespace keelson::k8s
