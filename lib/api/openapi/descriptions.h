// Descriptions of types and fields for kubectl explain: the comments in lib/api/proto, collected by a build
// step. The texts are constant data, which only programs with OpenAPI documents link.
#pragma once

#include <string_view>

#include <google/protobuf/descriptor.h>

namespace keelson::api {

// The comment above a message or a field, on one line; empty when it has none.
std::string_view DescriptionOf(const google::protobuf::Descriptor* message);
std::string_view DescriptionOf(const google::protobuf::FieldDescriptor* field);

}  // namespace keelson::api
