// Differences between two objects, as text for people.
#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/message.h>

namespace keelson::k8s {

// Two lines per changed field, `- path: old` and `+ path: new`; one line when it was added or removed.
// Descends into lists only when they have the same length. `prefix` stands before each path. Empty: no
// difference.
std::string ObjectDiff(const google::protobuf::Message& old, const google::protobuf::Message& now,
                       std::string_view prefix);

}  // namespace keelson::k8s
