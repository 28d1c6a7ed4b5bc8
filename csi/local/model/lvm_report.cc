#include "csi/local/model/lvm_report.h"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>

#include "lib/base/text.h"

namespace keelson::csi::local {

namespace {

namespace json = boost::json;

constexpr double kAll = 100;  // percent

Error Bad(const std::string& why) { return Error(Code::kInternal, "report of lvs: " + why); }

// {"report": [{"lv": [{...}]}]}
Result<json::array> RowsOf(std::string_view report) {
  boost::system::error_code failed;
  const json::value value = json::parse(report, failed);
  if (failed) return Bad(failed.message());
  const json::value* rows = value.find_pointer("/report/0/lv", failed);
  if (!rows || !rows->is_array()) return Bad("it has no volumes");
  return rows->get_array();
}

// Reads the fields of one row, and remembers the first that is wrong.
class Row {
 public:
  explicit Row(const json::value& value) {
    if (value.is_object()) object_ = &value.get_object();
  }
  std::string Text(const char* name) {
    const json::value* value = object_ ? object_->if_contains(name) : nullptr;
    if (value && value->is_string()) return std::string(value->get_string());
    if (why_.empty()) why_ = std::string(name) + " is missing";
    return "";
  }
  template <typename T>
  T Number(const char* name) {
    const std::string text = Text(name);
    T out{};
    const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
    const bool whole = end.ec == std::errc() && end.ptr == text.data() + text.size();
    if (!whole && why_.empty()) why_ = std::string(name) + " is not a number: \"" + text + "\"";
    return out;
  }
  Result<> Done() const {
    if (!why_.empty()) return Bad(why_);
    return {};
  }

 private:
  const json::object* object_ = nullptr;
  std::string why_;
};

}  // namespace

bool LogicalVolume::HasTag(std::string_view tag) const {
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

int64_t LogicalVolume::Taken() const {
  return static_cast<int64_t>(static_cast<double>(size) * std::clamp(taken.value_or(0) / kAll, 0.0, 1.0));
}

Result<std::vector<LogicalVolume>> ParseVolumes(std::string_view report) {
  KEELSON_ASSIGN_OR_RETURN(const json::array rows, RowsOf(report));
  std::vector<LogicalVolume> out;
  for (const json::value& value : rows) {
    Row row(value);
    LogicalVolume volume;
    volume.name = row.Text("lv_name");
    volume.size = row.Number<int64_t>("lv_size");
    volume.tags = SplitList(row.Text("lv_tags"));
    volume.pool = row.Text("pool_lv");
    volume.device = row.Text("lv_dm_path");
    volume.active = row.Text("lv_active") == "active";
    if (!row.Text("data_percent").empty()) volume.taken = row.Number<double>("data_percent");
    KEELSON_RETURN_IF_ERROR(row.Done());
    out.push_back(std::move(volume));
  }
  return out;
}

Result<ThinPool> ParsePool(std::string_view report) {
  KEELSON_ASSIGN_OR_RETURN(const json::array rows, RowsOf(report));
  if (rows.size() != 1) return Bad("it has " + std::to_string(rows.size()) + " volumes, not the pool alone");
  Row row(rows.front());
  const std::string name = row.Text("lv_name"), type = row.Text("segtype");
  if (type != "thin-pool") {
    return Error(Code::kConflict, "logical volume " + name + " is no thin pool: " + type);
  }
  if (row.Text("data_percent").empty()) return Error(Code::kConflict, "thin pool " + name + " is not active");
  ThinPool pool;
  pool.size = row.Number<int64_t>("lv_size");
  pool.extent = row.Number<int64_t>("vg_extent_size");
  pool.metadata = row.Number<double>("metadata_percent");
  pool.zeroes = row.Text("zero") == "1";
  const double taken = row.Number<double>("data_percent");
  KEELSON_RETURN_IF_ERROR(row.Done());
  pool.free = static_cast<int64_t>(static_cast<double>(pool.size) * std::clamp(1 - taken / kAll, 0.0, 1.0));
  if (pool.extent <= 0) return Bad("vg_extent_size is not positive");
  return pool;
}

}  // namespace keelson::csi::local
