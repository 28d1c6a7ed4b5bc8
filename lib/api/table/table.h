// Server-side tables: the columns and cells of `kubectl get`, in upstream's words.
//
// Cells are made once per object and may be cached: ages in them are marks, which RenderCells() replaces.
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
// The columns of a kind. Kinds without their own table have Name and Created At.
const std::vector<TableColumn>& TableColumns(const Descriptor* descriptor);
// The columns as `columnDefinitions` of a meta.k8s.io/v1 Table: a JSON array.
const std::string& TableColumnsJson(const Descriptor* descriptor);

// The cells as a JSON array, with marks in place of ages.
std::string TableCells(const Message& object);
// Replaces the marks by ages at `now`.
std::string RenderCells(std::string_view cells, WallTime now);
// `conditions` of the row as a JSON array, for pods that have completed; otherwise empty.
std::string TableRowConditions(const Message& object);

enum class IncludeObject { kNone, kMetadata, kObject };
// One row as JSON. `version` is the version of meta.k8s.io.
std::string TableRow(const Message& object, WallTime now, IncludeObject include = IncludeObject::kMetadata,
                     std::string_view version = "v1");
// A whole table. `list_meta_json` is the metadata of the list.
std::string TableJson(const Descriptor* descriptor, std::string_view list_meta_json,
                      const std::vector<const Message*>& objects, WallTime now,
                      IncludeObject include = IncludeObject::kMetadata, std::string_view version = "v1");

// The form of ages in kubectl: 5s, 3m20s, 5h, 2d4h, 3y.
std::string HumanDuration(std::chrono::seconds duration);

}  // namespace keelson::api
