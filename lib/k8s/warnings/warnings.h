// Warnings about valid objects, in upstream's words: the text of Warning headers. Pure and thread safe.
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/message.h>

namespace keelson::k8s {

using Warnings = std::vector<std::string>;

Warnings WarningsOnCreate(const google::protobuf::Message& object);
// Warnings for an update of the main resource; none for kinds that upstream does not warn about.
Warnings WarningsOnUpdate(const google::protobuf::Message& object, const google::protobuf::Message& old);

}  // namespace keelson::k8s
