// What has changed between two objects, for messages to people.
#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/message.h>

namespace keelson::k8s {

// Two lines a changed field, `- path: old` and `+ path: new`; one where it has come or gone. Goes down to
// the field where lists have the same length. `prefix` stands before each path. Empty: nothing has changed.
std::string ObjectDiff(const google::protobuf::Message& old, const google::protobuf::Message& now,
                       std::string_view prefix);

}  // namespace keelson::k8s
