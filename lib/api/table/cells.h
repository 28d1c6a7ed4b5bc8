// Internal to lib/api/table: how the tables of the kinds are described and filled.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/scheme.h"
#include "lib/api/types.h"

namespace keelson::api {

// Collects the cells of one row.
class Cells {
 public:
  Cells& Text(std::string_view text);
  Cells& TextOr(std::string_view text, std::string_view otherwise) {
    return Text(text.empty() ? otherwise : text);
  }
  Cells& Number(int64_t number);
  Cells& Bool(bool value);
  // The time since then, or `otherwise` when the time is not set.
  Cells& Age(const metav1::Time& since, std::string_view otherwise = "<unknown>");
  Cells& Age(const metav1::MicroTime& since);
  Cells& Age(const metav1::ObjectMeta& meta) { return Age(meta.creation_timestamp()); }
  // "<number> (<age> ago)"
  Cells& NumberAndAge(int64_t number, const metav1::Time& since);
  std::string Take() { return "[" + std::move(json_) + "]"; }

 private:
  void Comma();
  void Mark(int64_t seconds);
  std::string json_;
};

// "Name|Ready|Status|IP+|Desired#|Suspend?": `+` is shown with -o wide only, `#` is an integer, `?` a
// boolean. The column "Name" has the format "name"; `~` removes it, `@` gives it to another column.
struct TableKind {
  const Descriptor* descriptor;
  std::string_view columns;
  std::function<void(const Message&, Cells&)> fill;
};

template <typename T>
TableKind TableOf(std::string_view columns, void (*fill)(const T&, Cells&)) {
  return {T::descriptor(), columns,
          [fill](const Message& object, Cells& cells) { fill(static_cast<const T&>(object), cells); }};
}

std::vector<TableKind> WorkloadTables();
std::vector<TableKind> CoreTables();
std::vector<TableKind> NetworkTables();
std::vector<TableKind> StorageTables();
std::vector<TableKind> PolicyTables();

// Shared by several kinds.
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
std::string FormatLabels(const google::protobuf::Map<std::string, std::string>& labels);  // <none> if empty
std::string FormatSelector(const metav1::LabelSelector& selector);                        // <none> if empty
// The first `most` parts: "a,b + 2 more...". `none` if there are no parts.
std::string Some(const std::vector<std::string>& parts, size_t most, std::string_view none);

}  // namespace keelson::api
