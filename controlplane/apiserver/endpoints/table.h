// Server-side tables, which `kubectl get` prints.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/registry/registry.h"
#include "lib/http/message.h"

namespace keelson::apiserver {

// Tables of one resource, with one request's options (?includeObject=None|Metadata|Object).
class TableMaker {
 public:
  // kBadRequest for another value of ?includeObject=.
  static Result<> Check(const http::Query& query);
  TableMaker(const api::ResourceInfo& info, const http::Query& query, std::string_view version);
  // Returns the table's JSON. Rows are joined from cached cells.
  std::vector<std::shared_ptr<const std::string>> Table(const std::vector<registry::ObjectPtr>& items,
                                                        const metav1::ListMeta& meta, int64_t revision);
  // Returns a table with one row, for a watch event; only the first call includes the columns.
  std::string Row(const storage::Object& object);

 private:
  std::string Head(const metav1::ListMeta& meta);
  std::string ColumnsJson() const;
  std::string RowJson(const storage::Object& object, WallTime now) const;
  std::string CustomRowJson(const storage::Object& object, WallTime now) const;

  const api::ResourceInfo& info_;
  const std::string version_, include_;
  bool columns_sent_ = false;
};

}  // namespace keelson::apiserver
