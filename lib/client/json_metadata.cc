#include "lib/client/json_metadata.h"

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/client/watch.h"

namespace keelson::client {

Result<> ReadJsonList(std::string_view body, metav1::ListMeta& meta,
                      const std::function<Result<>(std::string_view raw)>& each) {
  metav1::PartialObjectMetadataList list;
  KEELSON_RETURN_IF_ERROR(api::DecodeJson(body, list));
  for (const metav1::PartialObjectMetadata& item : list.items()) {
    KEELSON_RETURN_IF_ERROR(each(api::EncodeRaw(item)));
  }
  meta = list.metadata();
  return {};
}

Result<WatchEvent> DecodeJsonWatchEvent(std::string_view line) {
  metav1::WatchEvent read;
  KEELSON_RETURN_IF_ERROR(api::DecodeJson(line, read));
  if (read.type() == "ERROR") {
    metav1::Status status;
    KEELSON_RETURN_IF_ERROR(api::DecodeJson(read.object().raw(), status));
    return api::FromStatus(status);
  }
  WatchEvent event;
  KEELSON_ASSIGN_OR_RETURN(event.type, WatchEventType(read.type()));
  metav1::PartialObjectMetadata object;
  KEELSON_RETURN_IF_ERROR(api::DecodeJson(read.object().raw(), object));
  event.raw = api::EncodeRaw(object);
  return event;
}

}  // namespace keelson::client
