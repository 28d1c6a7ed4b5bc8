#include "lib/k8s/schema/go_print.h"

#include <charconv>
#include <map>

#include "lib/api/codec/json_text.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/schema/json_path.h"
#include "lib/k8s/schema/nodes.h"

namespace keelson::k8s {

namespace {

namespace json = boost::json;

void AppendJson(const json::value& value, api::Sink& sink) {
  if (const json::string* text = value.if_string()) {
    api::AppendQuoted(View(*text), sink);
  } else if (const double* number = value.if_double()) {
    api::AppendDouble(*number, sink);
  } else if (const json::array* list = value.if_array()) {
    sink.Append("[");
    for (size_t i = 0; i < list->size(); ++i) {
      if (i > 0) sink.Append(",");
      AppendJson((*list)[i], sink);
    }
    sink.Append("]");
  } else if (const json::object* object = value.if_object()) {
    std::map<std::string_view, const json::value*> sorted;
    for (const auto& member : *object) sorted.emplace(View(member.key()), &member.value());
    const char* separator = "{";
    for (const auto& [name, below] : sorted) {
      sink.Append(separator);
      api::AppendQuoted(name, sink);
      sink.Append(":");
      AppendJson(*below, sink);
      separator = ",";
    }
    sink.Append(sorted.empty() ? "{}" : "}");
  } else if (value.is_int64()) {
    sink.Append(std::to_string(value.get_int64()));
  } else if (value.is_uint64()) {
    sink.Append(std::to_string(value.get_uint64()));
  } else {
    sink.Append(value.is_null() ? "null" : value.get_bool() ? "true" : "false");
  }
}

}  // namespace

std::string GoFloat(double value) {
  char scientific[40];
  const auto printed =
      std::to_chars(scientific, scientific + sizeof(scientific), value, std::chars_format::scientific);
  const std::string_view text(scientific, static_cast<size_t>(printed.ptr - scientific));
  const size_t mark = text.find('e');
  if (mark == std::string_view::npos) return value > 0 ? "+Inf" : value < 0 ? "-Inf" : "NaN";
  int exponent = 0;
  std::string_view digits = text.substr(mark + 1);
  if (digits.front() == '+') digits.remove_prefix(1);
  std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  constexpr int kLow = -4, kHigh = 21;
  if (exponent < kLow || exponent >= kHigh) return std::string(text);
  char fixed[64];
  const auto plain = std::to_chars(fixed, fixed + sizeof(fixed), value, std::chars_format::fixed);
  return std::string(fixed, static_cast<size_t>(plain.ptr - fixed));
}

std::string SortedJson(const json::value& value) {
  std::string out;
  api::Sink sink(out);
  AppendJson(value, sink);
  sink.Finish();
  return out;
}

std::string PrintBadValue(const json::value& value) {
  if (const json::string* text = value.if_string()) return Quote(View(*text));
  if (const double* number = value.if_double()) return GoFloat(*number);
  if (value.is_null()) return Quote("null");
  return SortedJson(value);
}

std::string GoText(const json::value& value) {
  if (const json::string* text = value.if_string()) return std::string(View(*text));
  if (const double* number = value.if_double()) return GoFloat(*number);
  if (value.is_null()) return "<nil>";
  if (const json::array* list = value.if_array()) {
    std::string out = "[";
    for (const json::value& item : *list) out += (out.size() > 1 ? " " : "") + GoText(item);
    return out + "]";
  }
  if (const json::object* object = value.if_object()) {
    std::map<std::string_view, const json::value*> sorted;
    for (const auto& member : *object) sorted.emplace(View(member.key()), &member.value());
    std::string out = "map[";
    for (const auto& [name, below] : sorted) {
      if (out.size() > 4) out += ' ';
      out += name;
      out += ':';
      out += GoText(*below);
    }
    return out + "]";
  }
  return SortedJson(value);
}

}  // namespace keelson::k8s
