// Standard functions of strings, bytes, lists and maps.
#include "lib/cel/library/library.h"
#include "lib/cel/syntax/source.h"

namespace keelson::cel {
namespace {

using Args = std::span<const Value>;

Value Size(Args args, Arena&) {
  return Value::Int(
      static_cast<int64_t>(args[0].Is(ValueKind::kObject) ? args[0].map().Size() : CostSize(args[0])));
}

Value Contains(Args args, Arena&) {
  return Value::Bool(args[0].text().find(args[1].text()) != std::string_view::npos);
}
Value StartsWith(Args args, Arena&) { return Value::Bool(args[0].text().starts_with(args[1].text())); }
Value EndsWith(Args args, Arena&) { return Value::Bool(args[0].text().ends_with(args[1].text())); }

const FunctionRow kRows[] = {
    {"size", "size_bytes", "", "bytes", "int", 0, Size},
    {"size", "bytes_size", "bytes", "", "int", 0, Size},
    {"size", "size_list", "", "list<A>", "int", 0, Size},
    {"size", "list_size", "list<A>", "", "int", 0, Size},
    {"size", "size_map", "", "map<A,B>", "int", 0, Size},
    {"size", "map_size", "map<A,B>", "", "int", 0, Size},
    {"size", "size_string", "", "string", "int", 0, Size},
    {"size", "string_size", "string", "", "int", 0, Size},
    {"contains", "contains_string", "string", "string", "bool", 0, Contains, CostRule::kContains},
    {"endsWith", "ends_with_string", "string", "string", "bool", 0, EndsWith, CostRule::kTraverseFirst},
    {"startsWith", "starts_with_string", "string", "string", "bool", 0, StartsWith, CostRule::kTraverseFirst},
};

}  // namespace

std::span<const FunctionRow> StandardTexts() { return kRows; }

}  // namespace keelson::cel
