// What kubectl explain says about types and fields: the comments beside them in lib/api/proto, which a step
// of the build collects. The texts are constant data that only programs with OpenAPI documents link.
#pragma once

#include <string_view>

#include <google/protobuf/descriptor.h>

namespace keelson::api {

// The comment above a message or a field, on one line; empty when there is none.
std::string_view DescriptionOf(const google::protobuf::Descriptor* message);
std::string_view DescriptionOf(const google::protobuf::FieldDescriptor* field);

}  // namespace keelson::api
