// Prints objects as Kubernetes' own servers do in messages: in their internal types, with Go's field names
// and all fields, set or not.
#pragma once

#include <string>

#include <google/protobuf/message.h>

namespace keelson::k8s {

// {"Key":"k","Value":"","Effect":"NoSchedule","TimeAdded":null}. Types of meta/v1 and quantities have no
// internal form and print as JSON.
std::string PrintInternal(const google::protobuf::Message& message);

}  // namespace keelson::k8s
