#include "lib/client/testing/fake_selection.h"

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/client/watch.h"

namespace keelson::client {

using google::protobuf::Message;

Result<FakeSelection> FakeSelection::From(const FakeRequest& parsed, const ApiRequest& request) {
  FakeSelection selection;
  auto text = [&](const char* name) {
    auto it = parsed.query.find(name);
    return it == parsed.query.end() ? std::string() : it->second;
  };
  KEELSON_ASSIGN_OR_RETURN(selection.labels, api::LabelSelector::Parse(text("labelSelector")));
  KEELSON_ASSIGN_OR_RETURN(selection.fields, api::FieldSelector::Parse(text("fieldSelector")));
  selection.metadata_only = request.accept.find("as=PartialObjectMetadata") != std::string::npos;
  return selection;
}

bool FakeSelection::Matches(const Message& object) const {
  return labels.Matches(api::Meta(object).labels()) && api::Matches(fields, object);
}

metav1::PartialObjectMetadata MetadataOf(const Message& object) {
  metav1::PartialObjectMetadata out;
  *out.mutable_metadata() = api::Meta(object);
  return out;
}

std::string Encode(const api::ResourceInfo& info, const Message& object, bool metadata_only) {
  if (metadata_only) {
    return api::EncodeProtobuf(MetadataOf(object), {"meta.k8s.io", "v1", "PartialObjectMetadata"});
  }
  if (info.IsCustom()) return api::EncodeJson(object, info.Gvk());
  return api::EncodeProtobuf(object, api::GvkOf(object.GetDescriptor()));
}

std::string EncodeEvent(std::string_view type, const api::ResourceInfo& info, const Message& object,
                        bool metadata_only) {
  const std::string encoded = Encode(info, object, metadata_only);
  if (metadata_only || !info.IsCustom()) return EncodeWatchFrame(type, encoded);
  return "{\"type\":\"" + std::string(type) + "\",\"object\":" + encoded + "}\n";
}

}  // namespace keelson::client
