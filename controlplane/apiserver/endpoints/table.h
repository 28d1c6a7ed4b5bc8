// Tables: what `kubectl get` prints, made by the server.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/registry/registry.h"
#include "lib/http/message.h"

namespace keelson::apiserver {

// Tables of one resource, for one request's options (?includeObject=None|Metadata|Object).
class TableMaker {
 public:
  // kBadRequest when ?includeObject= is none of those.
  static Result<> Check(const http::Query& query);
  TableMaker(const api::ResourceInfo& info, const http::Query& query, std::string_view version);
  // The table's JSON. Rows are joined from cached cells.
  std::vector<std::shared_ptr<const std::string>> Table(const std::vector<registry::ObjectPtr>& items,
                                                        const metav1::ListMeta& meta, int64_t revision);
  // The same with one row, for a watch event; the columns are given once only.
  std::string Row(const storage::Object& object);

 private:
  std::string Head(const metav1::ListMeta& meta);
  std::string RowJson(const storage::Object& object, WallTime now) const;

  const api::ResourceInfo& info_;
  const std::string version_, include_;
  bool columns_sent_ = false;
};

}  // namespace keelson::apiserver
