// Objects as Kubernetes' own servers print them in messages: in their internal types, whose fields go by
// Go's names and are all there, set or not.
#pragma once

#include <string>

#include <google/protobuf/message.h>

namespace keelson::k8s {

// {"Key":"k","Value":"","Effect":"NoSchedule","TimeAdded":null}; types of meta/v1 and quantities have no
// internal form and stand as in JSON.
std::string PrintInternal(const google::protobuf::Message& message);

}  // namespace keelson::k8s
