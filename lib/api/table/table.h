// Server-side tables: the columns and cells of `kubectl get`, in the words that upstream prints.
//
// Cells are made once an object and may be cached: an age in them is a mark that RenderCells() replaces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/api/scheme.h"
#include "lib/base/clock.h"

namespace keelson::api {

struct TableColumn {
  std::string name, type, format;  // type: string, integer, boolean, date
  int priority = 0;                // 1: shown with -o wide only
};
// Kinds without a table of their own have Name and Created At.
const std::vector<TableColumn>& TableColumns(const Descriptor* descriptor);
// As `columnDefinitions` of a meta.k8s.io/v1 Table: a JSON array.
const std::string& TableColumnsJson(const Descriptor* descriptor);

// The cells as a JSON array, with marks where ages go.
std::string TableCells(const Message& object);
// The marks replaced.
std::string RenderCells(std::string_view cells, WallTime now);
// `conditions` of the row as a JSON array, empty when it has none: pods that have completed.
std::string TableRowConditions(const Message& object);

enum class IncludeObject { kNone, kMetadata, kObject };
// One row as JSON. `version` is that of meta.k8s.io.
std::string TableRow(const Message& object, WallTime now, IncludeObject include = IncludeObject::kMetadata,
                     std::string_view version = "v1");
// A whole table; `list_meta_json` is the list's metadata.
std::string TableJson(const Descriptor* descriptor, std::string_view list_meta_json,
                      const std::vector<const Message*>& objects, WallTime now,
                      IncludeObject include = IncludeObject::kMetadata, std::string_view version = "v1");

// 5s, 3m20s, 5h, 2d4h, 3y: how kubectl shows ages.
std::string HumanDuration(std::chrono::seconds duration);

}  // namespace keelson::api
