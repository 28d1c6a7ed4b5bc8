#include "controlplane/apiserver/handlers/table.h"

#include "controlplane/apiserver/handlers/response.h"
#include "lib/api/codec.h"
#include "lib/api/meta.h"

namespace keelson::apiserver {
namespace {

using Pieces = std::vector<std::shared_ptr<const std::string>>;

std::shared_ptr<const std::string> Own(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

// Kinds without columns of their own.
constexpr std::string_view kDefaultColumns =
    R"([{"name":"Name","type":"string","format":"name","description":"Name of the object","priority":0},)"
    R"({"name":"Created At","type":"date","format":"","description":"Time of creation","priority":0}])";

std::string DefaultCells(const storage::Object& object) {
  return "[\"" + std::string(object.name()) + "\",\"" +
         api::FormatTime(api::Meta(*object.Decode()).creation_timestamp()) + "\"]";
}

}  // namespace

TableMaker::TableMaker(const api::ResourceInfo& info, const http::Query& query, std::string_view version)
    : info_(info), version_(version), include_(query.Get("includeObject")) {}

bool TableMaker::ok() const { return true; }

std::string TableMaker::RowJson(const storage::Object& object) const {
  std::string row = "{\"cells\":" + *object.Cached(DefaultCells) + ",\"object\":";
  if (include_ == "Object")
    row += *object.Json();
  else if (include_ == "None")
    row += "null";
  else
    row += PartialMetadataJson(object, version_);
  return row + "}";
}

Pieces TableMaker::Table(const std::vector<registry::ObjectPtr>& items, const metav1::ListMeta& meta,
                         int64_t revision) {
  metav1::ListMeta shown = meta;
  shown.set_resource_version(std::to_string(revision));
  Pieces out;
  out.push_back(Own("{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/" + version_ +
                    "\",\"metadata\":" + api::EncodeJson(shown) + ",\"columnDefinitions\":" +
                    (columns_sent_ ? "[]" : std::string(kDefaultColumns)) + ",\"rows\":["));
  columns_sent_ = true;
  for (size_t i = 0; i < items.size(); ++i) out.push_back(Own((i == 0 ? "" : ",") + RowJson(*items[i])));
  out.push_back(Own("]}"));
  return out;
}

std::string TableMaker::Row(const storage::Object& object) {
  std::string out = "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/" + version_ +
                    "\",\"metadata\":{\"resourceVersion\":\"" + std::to_string(object.revision()) +
                    "\"},\"columnDefinitions\":" + (columns_sent_ ? "[]" : std::string(kDefaultColumns)) +
                    ",\"rows\":[" + RowJson(object) + "]}";
  columns_sent_ = true;
  return out;
}

}  // namespace keelson::apiserver
