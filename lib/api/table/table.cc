#include "lib/api/table/table.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "lib/api/codec/codec.h"
#include "lib/api/codec/json_text.h"
#include "lib/api/meta.h"
#include "lib/api/selector.h"
#include "lib/api/table/cells.h"

namespace keelson::api {
namespace {

// Surrounds the seconds of a time in cells. JSON escapes control characters, so no text contains it.
constexpr char kMark = '\x1f';

std::vector<TableColumn> ParseColumns(std::string_view text) {
  std::vector<TableColumn> columns;
  while (!text.empty()) {
    size_t end = std::min(text.find('|'), text.size());
    std::string_view name = text.substr(0, end);
    TableColumn column;
    column.type = "string";
    bool is_name = false, is_plain = false;
    for (; !name.empty() && std::string_view("+#?@~").find(name.back()) != std::string_view::npos;
         name.remove_suffix(1)) {
      switch (name.back()) {
        case '+':
          column.priority = 1;
          break;
        case '#':
          column.type = "integer";
          break;
        case '?':
          column.type = "boolean";
          break;
        case '@':
          is_name = true;
          break;
        default:
          is_plain = true;
      }
    }
    column.name = name;
    if (is_name || (name == "Name" && !is_plain)) column.format = "name";
    columns.push_back(std::move(column));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return columns;
}

std::string ColumnsJson(const std::vector<TableColumn>& columns) {
  std::string out = "[";
  for (const TableColumn& column : columns) {
    if (out.size() > 1) out += ',';
    out += fmt::format(R"({{"name":"{}","type":"{}","format":"{}","description":"","priority":{}}})",
                       column.name, column.type, column.format, column.priority);
  }
  return out + "]";
}

struct Entry {
  std::vector<TableColumn> columns;
  std::string columns_json;
  std::function<void(const Message&, Cells&)> fill;
};

struct Tables {
  std::map<const Descriptor*, Entry> by_type;
  Entry other;

  Tables() {
    for (auto family : {WorkloadTables, CoreTables, NetworkTables, StorageTables, PolicyTables}) {
      for (TableKind& kind : family()) {
        Entry entry{ParseColumns(kind.columns), "", std::move(kind.fill)};
        entry.columns_json = ColumnsJson(entry.columns);
        by_type.emplace(kind.descriptor, std::move(entry));
      }
    }
    other.columns = {{"Name", "string", "name", 0}, {"Created At", "date", "", 0}};
    other.columns_json = ColumnsJson(other.columns);
    other.fill = [](const Message& object, Cells& cells) {
      if (!HasObjectMeta(object.GetDescriptor())) {
        cells.Text("").Text("");
        return;
      }
      cells.Text(Meta(object).name()).Text(FormatTime(Meta(object).creation_timestamp()));
    };
  }
};

const Entry& Find(const Descriptor* type) {
  static const Tables* tables = new Tables;
  auto it = tables->by_type.find(type);
  return it == tables->by_type.end() ? tables->other : it->second;
}

std::string MetadataJson(const Message& object, std::string_view version) {
  std::string out =
      fmt::format(R"({{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/{}","metadata":)", version);
  EncodeJson(Meta(object), nullptr, out);
  return out + "}";
}

}  // namespace

void Cells::Comma() {
  if (!json_.empty()) json_ += ',';
}

void Cells::Mark(int64_t seconds) { json_ += kMark + std::to_string(seconds) + kMark; }

Cells& Cells::Text(std::string_view text) {
  Comma();
  Sink sink(json_);
  AppendQuoted(text, sink);
  return *this;
}

Cells& Cells::Number(int64_t number) {
  Comma();
  json_ += std::to_string(number);
  return *this;
}

Cells& Cells::Bool(bool value) {
  Comma();
  json_ += value ? "true" : "false";
  return *this;
}

Cells& Cells::Age(const metav1::Time& since, std::string_view otherwise) {
  if (!since.has_seconds()) return Text(otherwise);
  Comma();
  json_ += '"';
  Mark(since.seconds());
  json_ += '"';
  return *this;
}

Cells& Cells::Age(const metav1::MicroTime& since) {
  metav1::Time time;
  if (since.has_seconds()) time.set_seconds(since.seconds());
  return Age(time);
}

Cells& Cells::NumberAndAge(int64_t number, const metav1::Time& since) {
  Comma();
  json_ += '"' + std::to_string(number) + " (";
  Mark(since.seconds());
  json_ += " ago)\"";
  return *this;
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string FormatLabels(const google::protobuf::Map<std::string, std::string>& labels) {
  std::string text = LabelSelector::FromMap(labels).ToString();
  return text.empty() ? "<none>" : text;
}

std::string FormatSelector(const metav1::LabelSelector& selector) {
  auto parsed = LabelSelector::From(selector);
  if (!parsed) return "<error>";
  std::string text = parsed->ToString();
  return text.empty() ? "<none>" : text;
}

std::string Some(const std::vector<std::string>& parts, size_t most, std::string_view none) {
  if (parts.empty()) return std::string(none);
  if (parts.size() <= most) return Join(parts, ",");
  return fmt::format("{} + {} more...",
                     fmt::join(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(most), ","),
                     parts.size() - most);
}

const std::vector<TableColumn>& TableColumns(const Descriptor* descriptor) {
  return Find(descriptor).columns;
}
const std::string& TableColumnsJson(const Descriptor* descriptor) { return Find(descriptor).columns_json; }

std::string TableCells(const Message& object) {
  Cells cells;
  Find(object.GetDescriptor()).fill(object, cells);
  return cells.Take();
}

std::string RenderCells(std::string_view cells, WallTime now) {
  int64_t now_seconds = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  std::string out;
  out.reserve(cells.size());
  while (true) {
    size_t start = cells.find(kMark);
    out += cells.substr(0, start);
    if (start == std::string_view::npos) return out;
    size_t end = cells.find(kMark, start + 1);
    if (end == std::string_view::npos) return out;
    int64_t since = 0;
    std::from_chars(cells.data() + start + 1, cells.data() + end, since);
    std::string age = HumanDuration(std::chrono::seconds(now_seconds - since));
    out += age == "<invalid>" ? "\\u003cinvalid\\u003e" : age;
    cells.remove_prefix(end + 1);
  }
}

std::string TableRowConditions(const Message& object) {
  if (object.GetDescriptor() != corev1::Pod::descriptor()) return "";
  const std::string& phase = static_cast<const corev1::Pod&>(object).status().phase();
  if (phase != "Succeeded" && phase != "Failed") return "";
  return fmt::format(R"([{{"type":"Completed","status":"True","reason":"{}","message":"{}"}}])", phase,
                     phase == "Failed" ? "The pod failed." : "The pod has completed successfully.");
}

std::string TableRow(const Message& object, WallTime now, IncludeObject include, std::string_view version) {
  std::string out = "{\"cells\":" + RenderCells(TableCells(object), now);
  if (std::string conditions = TableRowConditions(object); !conditions.empty()) {
    out += ",\"conditions\":" + conditions;
  }
  out += ",\"object\":";
  if (include == IncludeObject::kObject) {
    GroupVersionKind gvk = GvkOf(object.GetDescriptor());
    EncodeJson(object, &gvk, out);
  } else if (include == IncludeObject::kMetadata && HasObjectMeta(object.GetDescriptor())) {
    out += MetadataJson(object, version);
  } else {
    out += "null";
  }
  return out + "}";
}

std::string TableJson(const Descriptor* descriptor, std::string_view list_meta_json,
                      const std::vector<const Message*>& objects, WallTime now, IncludeObject include,
                      std::string_view version) {
  std::string out = fmt::format(
      R"({{"kind":"Table","apiVersion":"meta.k8s.io/{}","metadata":{},"columnDefinitions":{},"rows":[)",
      version, list_meta_json, TableColumnsJson(descriptor));
  for (size_t i = 0; i < objects.size(); ++i) {
    if (i != 0) out += ',';
    out += TableRow(*objects[i], now, include, version);
  }
  return out + "]}";
}

std::string HumanDuration(std::chrono::seconds duration) {
  int64_t seconds = duration.count();
  auto two = [](int64_t big, std::string_view big_unit, int64_t small, std::string_view small_unit) {
    return small == 0 ? fmt::format("{}{}", big, big_unit)
                      : fmt::format("{}{}{}{}", big, big_unit, small, small_unit);
  };
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return fmt::format("{}s", seconds);
  int64_t minutes = seconds / 60;
  if (minutes < 10) return two(minutes, "m", seconds % 60, "s");
  if (minutes < 180) return fmt::format("{}m", minutes);
  int64_t hours = minutes / 60;
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  if (hours < 48) return fmt::format("{}h", hours);
  int64_t days = hours / 24;
  if (days < 8) return two(days, "d", hours % 24, "h");
  if (days < 730) return fmt::format("{}d", days);
  if (days < 2920) return two(days / 365, "y", days % 365, "d");
  return fmt::format("{}y", days / 365);
}

}  // namespace keelson::api
