#include "controlplane/apiserver/endpoints/custom_table.h"

#include <fmt/format.h>

#include "lib/api/codec/custom_object.h"
#include "lib/api/meta.h"
#include "lib/base/json_quote.h"
#include "lib/base/log.h"

namespace keelson::apiserver {
namespace {

constexpr std::string_view kNameText =
    "Name must be unique within a namespace. Is required when creating resources, although some resources "
    "may allow "
    "a client to request the generation of an appropriate name automatically. Name is primarily intended for "
    "creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

std::string ColumnJson(std::string_view name, std::string_view type, std::string_view format,
                       std::string_view description, int priority) {
  return fmt::format(R"({{"name":{},"type":{},"format":{},"description":{},"priority":{}}})",
                     JsonQuoted(name), JsonQuoted(type), JsonQuoted(format), JsonQuoted(description),
                     priority);
}

}  // namespace

std::string CustomColumnsJson(const apiextensions::CustomRow& row) {
  std::string out = "[" + ColumnJson("Name", "string", "name", kNameText, 0);
  if (std::shared_ptr<const apiextensions::Version> version = row.owner->VersionOf(row)) {
    for (const apiextensions::Version::Column& column : version->Columns()) {
      std::string text = column.description;
      if (text.empty()) text = "Custom resource definition column (in JSONPath format): " + column.source;
      out += "," + ColumnJson(column.name, column.type, column.format, text, column.priority);
    }
  }
  return out + "]";
}

std::string CustomCellsJson(const apiextensions::CustomRow& row, const api::Message& object, WallTime now) {
  std::string out = "[" + JsonQuoted(api::Meta(object).name());
  std::shared_ptr<const apiextensions::Version> version = row.owner->VersionOf(row);
  if (!version) return out + "]";
  const std::vector<apiextensions::Version::Column>& columns = version->Columns();
  Result<boost::json::object> read = api::TreeOf(object, row.main->Gvk());
  if (!read) {
    log::Warn("Cannot read a custom object", {{"object", api::KeyOf(object)}, {"err", read.error()}});
    for (size_t i = 0; i < columns.size(); ++i) out += ",null";
    return out + "]";
  }
  const boost::json::value tree = std::move(*read);
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  for (const apiextensions::Version::Column& column : columns) {
    out += "," + api::CanonicalJson(k8s::PrinterCell(column.path, column.type, tree, seconds));
  }
  return out + "]";
}

}  // namespace keelson::apiserver
