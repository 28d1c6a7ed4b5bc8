#include "lib/client/json_objects.h"

#include <boost/json.hpp>

#include "lib/api/codec/codec.h"
#include "lib/api/codec/custom_object.h"
#include "lib/api/meta.h"
#include "lib/api/proto/custom_object.pb.h"
#include "lib/client/watch.h"

namespace keelson::client {
namespace {

Result<> ReadMetadataList(std::string_view body, metav1::ListMeta& meta,
                          const std::function<Result<>(std::string_view raw)>& each) {
  metav1::PartialObjectMetadataList list;
  KEELSON_RETURN_IF_ERROR(api::DecodeJson(body, list));
  for (const metav1::PartialObjectMetadata& item : list.items()) {
    KEELSON_RETURN_IF_ERROR(each(api::EncodeRaw(item)));
  }
  meta = list.metadata();
  return {};
}

Result<> ReadCustomList(std::string_view body, metav1::ListMeta& meta,
                        const std::function<Result<>(std::string_view raw)>& each) {
  KEELSON_ASSIGN_OR_RETURN(boost::json::value list, api::ParseTree(body));
  boost::json::object* tree = list.if_object();
  if (!tree) return Error(Code::kBadRequest, "the list is no object");
  if (boost::json::value* items = tree->if_contains("items"); items && items->is_array()) {
    for (boost::json::value& item : items->get_array()) {
      if (!item.is_object()) return Error(Code::kBadRequest, "an item of the list is no object");
      KEELSON_ASSIGN_OR_RETURN(const auto object, api::FromTree(std::move(item.get_object())));
      KEELSON_RETURN_IF_ERROR(each(api::EncodeRaw(*object)));
    }
  }
  if (const boost::json::value* metadata = tree->if_contains("metadata")) {
    KEELSON_RETURN_IF_ERROR(api::DecodeJson(api::CanonicalJson(*metadata), meta));
  }
  return {};
}

Result<std::string> WireForm(JsonObjects form, std::string_view json) {
  if (form == JsonObjects::kMetadata) {
    metav1::PartialObjectMetadata object;
    KEELSON_RETURN_IF_ERROR(api::DecodeJson(json, object));
    return api::EncodeRaw(object);
  }
  api::custom::CustomObject object;
  KEELSON_RETURN_IF_ERROR(api::DecodeJson(json, object));
  // As lists have it: equal objects have equal bytes.
  KEELSON_ASSIGN_OR_RETURN(const boost::json::object content, api::ContentOf(object));
  api::SetContent(object, content);
  return api::EncodeRaw(object);
}

}  // namespace

Result<> ReadJsonList(JsonObjects form, std::string_view body, metav1::ListMeta& meta,
                      const std::function<Result<>(std::string_view raw)>& each) {
  return form == JsonObjects::kCustom ? ReadCustomList(body, meta, each) : ReadMetadataList(body, meta, each);
}

Result<WatchEvent> DecodeJsonWatchEvent(JsonObjects form, std::string_view line) {
  metav1::WatchEvent read;
  KEELSON_RETURN_IF_ERROR(api::DecodeJson(line, read));
  if (read.type() == "ERROR") {
    metav1::Status status;
    KEELSON_RETURN_IF_ERROR(api::DecodeJson(read.object().raw(), status));
    return api::FromStatus(status);
  }
  WatchEvent event;
  KEELSON_ASSIGN_OR_RETURN(event.type, WatchEventType(read.type()));
  KEELSON_ASSIGN_OR_RETURN(event.raw, WireForm(form, read.object().raw()));
  return event;
}

}  // namespace keelson::client
