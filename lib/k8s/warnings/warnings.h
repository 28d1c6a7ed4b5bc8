// What a client should know of an object that is valid, in upstream's words: the text of Warning headers.
// Pure and thread safe.
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/message.h>

namespace keelson::k8s {

using Warnings = std::vector<std::string>;

Warnings WarningsOnCreate(const google::protobuf::Message& object);
// Of the main resource; nothing for kinds that upstream spares.
Warnings WarningsOnUpdate(const google::protobuf::Message& object, const google::protobuf::Message& old);

}  // namespace keelson::k8s
