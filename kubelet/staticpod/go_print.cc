#include "kubelet/staticpod/go_print.h"

#include <fmt/format.h>

#include "kubelet/staticpod/go_quantity.h"

namespace keelson::kubelet {

namespace {

namespace json = boost::json;

constexpr char kNil[] = "<nil>";

std::string_view Cut(std::string_view& rest, std::string_view by) {
  const size_t at = rest.find(by);
  const std::string_view out = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + by.size());
  return out;
}

std::string KeyOf(std::string_view name) {
  std::string out(name);
  if (!out.empty() && out[0] >= 'A' && out[0] <= 'Z') out[0] = static_cast<char>(out[0] - 'A' + 'a');
  return out;
}

bool IsSet(const json::value* value) { return value && !value->is_null(); }

std::string TextOf(const json::value& value) {
  return value.is_string() ? std::string(value.get_string()) : json::serialize(value);
}

class Printer {
 public:
  explicit Printer(const GoTypes& types) : types_(types) {}

  // With its type before it.
  bool Typed(std::string_view type, const json::value* value) {
    out_ += fmt::format("({})", type);
    if (type[0] != '*') return Value(type, value);
    if (IsSet(value)) return Value(type.substr(1), value);
    out_ += kNil;
    return true;
  }
  std::string Take() { return std::move(out_); }

 private:
  bool Value(std::string_view type, const json::value* value) {
    if (type.substr(0, 2) == "[]") return List(type.substr(2), value);
    if (type.substr(0, 4) == "map[") return Map(type.substr(type.find(']') + 1), value);
    if (type == "core.ResourceList") return Map("resource.Quantity", value);
    if (type == "resource.Quantity") return Quantity(value);
    if (type == "intstr.IntOrString") return IntOrString(value);
    if (type == "v1.Time") {
      out_ += "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}";
      return !IsSet(value);
    }
    if (const auto* fields = types_.Find(type)) return Struct(*fields, value);
    return Scalar(type, value);
  }
  bool List(std::string_view type, const json::value* value) {
    if (!IsSet(value)) {
      out_ += kNil;
      return true;
    }
    if (!value->is_array()) return false;
    out_ += '[';
    bool first = true;
    for (const json::value& item : value->get_array()) {
      if (!std::exchange(first, false)) out_ += ' ';
      if (!Value(type, &item)) return false;
    }
    out_ += ']';
    return true;
  }
  bool Map(std::string_view type, const json::value* value) {
    if (!IsSet(value)) {
      out_ += kNil;
      return true;
    }
    if (!value->is_object()) return false;
    std::map<std::string, const json::value*> sorted;
    for (const auto& member : value->get_object()) sorted.emplace(member.key(), &member.value());
    out_ += "map[";
    bool first = true;
    for (const auto& [key, item] : sorted) {
      if (!std::exchange(first, false)) out_ += ' ';
      out_ += key + ":";
      if (!Value(type, item)) return false;
    }
    out_ += ']';
    return true;
  }
  bool Struct(const std::vector<GoTypes::Field>& fields, const json::value* value) {
    if (IsSet(value) && !value->is_object()) return false;
    const json::object* object = IsSet(value) ? &value->get_object() : nullptr;
    out_ += '{';
    bool first = true;
    for (const GoTypes::Field& field : fields) {
      if (!std::exchange(first, false)) out_ += ' ';
      out_ += field.name + ":";
      const json::value* inner = field.json == "."              ? value
                                 : !object || field.json == "-" ? nullptr
                                                                : object->if_contains(field.json);
      if (!Typed(field.type, inner)) return false;
    }
    out_ += '}';
    return true;
  }
  bool Quantity(const json::value* value) {
    auto printed = IsSet(value) ? PrintGoQuantity(TextOf(*value)) : PrintGoZeroQuantity();
    if (!printed) return false;
    out_ += *printed;
    return true;
  }
  bool IntOrString(const json::value* value) {
    const bool text = IsSet(value) && value->is_string();
    if (IsSet(value) && !text && !value->is_int64()) return false;
    out_ += fmt::format("{{Type:(intstr.Type){} IntVal:(int32){} StrVal:(string){}}}", text ? 1 : 0,
                        IsSet(value) && !text ? value->get_int64() : 0, text ? TextOf(*value) : "");
    return true;
  }
  bool Scalar(std::string_view type, const json::value* value) {
    if (type == "bool") {
      out_ += IsSet(value) && value->is_bool() && value->get_bool() ? "true" : "false";
      return !IsSet(value) || value->is_bool();
    }
    if (type == "int32" || type == "int64") {
      if (IsSet(value) && !value->is_int64()) return false;
      out_ += std::to_string(IsSet(value) ? value->get_int64() : 0);
      return true;
    }
    if (IsSet(value) && !value->is_string()) return false;
    if (IsSet(value)) out_ += TextOf(*value);
    return true;
  }

  const GoTypes& types_;
  std::string out_;
};

}  // namespace

GoTypes::GoTypes(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = Cut(text, "\n");
    if (line.empty()) continue;
    std::vector<Field>& fields = structs_[std::string(Cut(line, ": "))];
    while (!line.empty()) {
      std::string_view field = Cut(line, ", ");
      const std::string_view name = Cut(field, " "), type = Cut(field, " =");
      fields.push_back(
          {std::string(name), std::string(type), field.empty() ? KeyOf(name) : std::string(field)});
    }
  }
}

const std::vector<GoTypes::Field>* GoTypes::Find(std::string_view type) const {
  auto it = structs_.find(type);
  return it == structs_.end() ? nullptr : &it->second;
}

std::optional<std::string> GoPrint(const GoTypes& types, std::string_view type, const json::value& value) {
  Printer printer(types);
  if (!printer.Typed(type, &value)) return std::nullopt;
  return printer.Take();
}

}  // namespace keelson::kubelet
