// API objects (lib/api/types.h) as values, without encoding them: what their JSON says, by its names. Times, quantities,
// durations and binary data are strings, as in JSON; so a policy sees the same as of a custom resource without schema.
#pragma once

#include <string_view>

#include <google/protobuf/message.h>

#include "lib/cel/types/decl_type.h"
#include "lib/cel/values/value.h"

namespace keelson::cel {

// A view of the message, which has to outlive the value and not change meanwhile. `api_version` and `kind`, if given,
// are fields of the object; they have to outlive it too. What JSON leaves out is missing.
Value MessageValue(const google::protobuf::Message& message, Arena& arena, std::string_view api_version = {},
                   std::string_view kind = {});

// The declared type of such objects, for checking expressions before there is any. Recursive fields are dyn. `name` tells
// it apart: "Pod". With `root`, it has apiVersion and kind.
DeclTypePtr MessageType(const google::protobuf::Descriptor* descriptor, std::string_view name, bool root);

}  // namespace keelson::cel
