// What a request to FakeApi asks for: which objects, and how much of each.
#pragma once

#include <string>

#include "lib/api/selector.h"
#include "lib/api/types.h"
#include "lib/base/error.h"
#include "lib/client/testing/fake_request.h"
#include "lib/client/transport.h"

namespace keelson::client {

inline constexpr char kProtobuf[] = "application/vnd.kubernetes.protobuf";

struct FakeSelection {
  api::LabelSelector labels;
  api::FieldSelector fields;
  bool metadata_only = false;  // PartialObjectMetadata

  // kBadRequest for a selector that does not parse.
  static Result<FakeSelection> From(const FakeRequest& parsed, const ApiRequest& request);
  bool Matches(const google::protobuf::Message& object) const;
};

metav1::PartialObjectMetadata MetadataOf(const google::protobuf::Message& object);
// As the API shows it: protobuf in its envelope, or the JSON of a custom resource's whole object.
std::string Encode(const api::ResourceInfo& info, const google::protobuf::Message& object,
                   bool metadata_only);
// The same in a watch's event: a frame, or a line.
std::string EncodeEvent(std::string_view type, const api::ResourceInfo& info,
                        const google::protobuf::Message& object, bool metadata_only);

}  // namespace keelson::client
