#include "controlplane/apiserver/endpoints/table.h"

#include <fmt/format.h>

#include "controlplane/apiserver/endpoints/custom_table.h"
#include "controlplane/apiserver/endpoints/response.h"
#include "lib/api/codec/codec.h"
#include "lib/api/table/table.h"

namespace keelson::apiserver {
namespace {

using Pieces = std::vector<std::shared_ptr<const std::string>>;

std::shared_ptr<const std::string> Own(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

// The parts of a row, cached with the object: cells with placeholders for ages, conditions (may be empty) and
// metadata; one line each, without newlines inside.
std::string MakeParts(const storage::Object& object) {
  std::shared_ptr<const api::Message> message = object.Decode();
  return api::TableCells(*message) + "\n" + api::TableRowConditions(*message) + "\n" +
         PartialMetadataJson(object, "v1");
}

}  // namespace

Result<> TableMaker::Check(const http::Query& query) {
  std::string_view include = query.Get("includeObject");
  if (include.empty() || include == "None" || include == "Metadata" || include == "Object") return {};
  return Error(
      Code::kBadRequest,
      fmt::format("Unable to convert to Table as requested: includeObject: Invalid value: \"{}\": must "
                  "be 'Metadata', 'Object', 'None', or empty",
                  include));
}

TableMaker::TableMaker(const api::ResourceInfo& info, const http::Query& query, std::string_view version)
    : info_(info), version_(version), include_(query.Get("includeObject")) {}

std::string TableMaker::RowJson(const storage::Object& object, WallTime now) const {
  if (object.info().IsCustom()) return CustomRowJson(object, now);
  storage::Bytes parts = object.Cached(MakeParts);
  std::string_view rest = *parts;
  auto next = [&rest] {
    auto end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    return line;
  };
  std::string row = "{\"cells\":" + api::RenderCells(next(), now);
  if (std::string_view conditions = next(); !conditions.empty()) {
    row += ",\"conditions\":";
    row += conditions;
  }
  row += ",\"object\":";
  if (include_ == "Object") {
    object.AppendTyped(*object.Json(), row);
  } else if (include_ == "None") {
    row += "null";
  } else if (version_ == "v1") {
    row += next();
  } else {
    row += PartialMetadataJson(object, version_);
  }
  return row + "}";
}

// Not cached: the columns change with the definition.
std::string TableMaker::CustomRowJson(const storage::Object& object, WallTime now) const {
  std::string row =
      "{\"cells\":" + CustomCellsJson(*apiextensions::CustomOf(object.info()), *object.Decode(), now);
  row += ",\"object\":";
  if (include_ == "Object") {
    object.AppendTyped(*object.Json(), row);
  } else {
    row += include_ == "None" ? "null" : PartialMetadataJson(object, version_);
  }
  return row + "}";
}

std::string TableMaker::ColumnsJson() const {
  return info_.IsCustom() ? CustomColumnsJson(*apiextensions::CustomOf(info_))
                          : api::TableColumnsJson(info_.descriptor());
}

std::string TableMaker::Head(const metav1::ListMeta& meta) {
  bool first = !std::exchange(columns_sent_, true);
  return "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/" + version_ +
         "\",\"metadata\":" + api::EncodeJson(meta) +
         ",\"columnDefinitions\":" + (first ? ColumnsJson() : "null") + ",\"rows\":[";
}

Pieces TableMaker::Table(const std::vector<registry::ObjectPtr>& items, const metav1::ListMeta& meta,
                         int64_t revision) {
  metav1::ListMeta shown = meta;
  if (revision > 0) shown.set_resource_version(std::to_string(revision));
  WallTime now = Clock::Real().Now();
  Pieces out;
  out.reserve(items.size() + 2);
  out.push_back(Own(Head(shown)));
  for (size_t i = 0; i < items.size(); ++i) out.push_back(Own((i == 0 ? "" : ",") + RowJson(*items[i], now)));
  out.push_back(Own("]}"));
  return out;
}

std::string TableMaker::Row(const storage::Object& object) {
  metav1::ListMeta meta;
  meta.set_resource_version(std::to_string(object.revision()));
  return Head(meta) + RowJson(object, Clock::Real().Now()) + "]}";
}

}  // namespace keelson::apiserver
