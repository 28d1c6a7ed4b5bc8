#include "lib/component/document_reader.h"

#include <limits>

#include "lib/api/duration.h"
#include "lib/api/quantity.h"

namespace keelson::component {

namespace json = boost::json;

namespace {

std::string KindOf(const json::value& value) {
  switch (value.kind()) {
    case json::kind::object:
      return "object";
    case json::kind::array:
      return "array";
    case json::kind::string:
      return "string";
    case json::kind::bool_:
      return "bool";
    case json::kind::null:
      return "null";
    default:
      return "number " + json::serialize(value);
  }
}

// Go's name of a type, for people.
std::string_view WordsOf(std::string_view type) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"bool", "must be true or false"},
      {"float64", "must be a number"},
      {"int32", "must be a whole number of 32 bits"},
      {"int64", "must be a whole number"},
      {"map", "must be a mapping"},
      {"slice", "must be a list"},
      {"string", "must be a string"},
      {"struct", "must be an object"},
  };
  for (const auto& [name, words] : kWords) {
    if (name == type) return words;
  }
  return "has a wrong type";
}

// Go names a field without the places in lists on the way to it.
std::string WithoutIndexes(const std::string& path) {
  std::string out;
  bool inside = false;
  for (char c : path) {
    inside = inside ? c != ']' : c == '[';
    if (!inside && c != ']') out += c;
  }
  return out;
}

const json::object& Nothing() {
  static const json::object nothing;
  return nothing;
}

}  // namespace

DocumentReader::DocumentReader(const json::object& object, DocumentProblems& problems, std::string path)
    : object_(object), problems_(problems), path_(std::move(path)) {}

DocumentReader::~DocumentReader() { TellUnknown(object_, ""); }

void DocumentReader::TellUnknown(const json::object& object, const std::string& at) {
  for (const auto& [key, value] : object) {
    const std::string field = at + std::string(key);
    if (known_.contains(field)) continue;
    const auto below = known_.lower_bound(field + ".");
    const bool section = below != known_.end() && below->starts_with(field + ".");
    if (!section) {
      problems_.strict.push_back("unknown field \"" + PathOf(field) + "\"");
    } else if (value.is_object()) {
      TellUnknown(value.get_object(), field + ".");
    } else if (!value.is_null()) {
      Mismatch(value, PathOf(field), "struct");
    }
  }
}

std::string DocumentReader::PathOf(std::string_view field) const {
  if (path_.empty() || field.empty()) return path_ + std::string(field);
  return path_ + "." + std::string(field);
}

const json::value* DocumentReader::Find(std::string_view field) {
  known_.emplace(field);
  const json::object* at = &object_;
  for (size_t dot = field.find('.'); dot != std::string_view::npos; dot = field.find('.')) {
    const json::value* section = at->if_contains(field.substr(0, dot));
    if (!section || !section->is_object()) return nullptr;
    at = &section->get_object();
    field.remove_prefix(dot + 1);
  }
  const json::value* value = at->if_contains(field);
  return value && !value->is_null() ? value : nullptr;
}

void DocumentReader::Ignore(std::initializer_list<std::string_view> fields) {
  for (std::string_view field : fields) known_.emplace(field);
}

void DocumentReader::Object(std::string_view field, const std::function<void(DocumentReader&)>& read) {
  if (Find(field)) Section(field, read);
}

void DocumentReader::Section(std::string_view field, const std::function<void(DocumentReader&)>& read) {
  const json::value* value = Find(field);
  if (value && !value->is_object()) return WrongType(field, *value, "struct");
  DocumentReader inner(value ? value->get_object() : Nothing(), problems_, PathOf(field));
  read(inner);
}

void DocumentReader::List(std::string_view field, const std::function<void(DocumentReader&)>& read_item) {
  const json::value* value = Find(field);
  if (!value) return;
  if (!value->is_array()) return WrongType(field, *value, "slice");
  for (size_t i = 0; i < value->get_array().size(); ++i) {
    const json::value& item = value->get_array()[i];
    const std::string path = PathOf(field) + "[" + std::to_string(i) + "]";
    if (!item.is_object() && !item.is_null()) {
      Mismatch(item, path, "struct");
      continue;
    }
    DocumentReader inner(item.is_object() ? item.get_object() : Nothing(), problems_, path);
    read_item(inner);
  }
}

void DocumentReader::Problem(std::string_view field, std::string_view what) { Wrong(PathOf(field), what); }

void DocumentReader::WrongType(std::string_view field, const json::value& value, std::string_view type) {
  Mismatch(value, PathOf(field), type);
}

bool DocumentReader::Wrong(const std::string& path, std::string_view what) {
  problems_.wrong.push_back(path + ": " + std::string(what));
  return false;
}

bool DocumentReader::Mismatch(const Value& value, const std::string& path, std::string_view type) {
  const std::string go = "json: cannot unmarshal " + KindOf(value) + " into ";
  const std::string of_type = " of type " + std::string(type);
  switch (problems_.words) {
    case TypeWords::kGoField:
      problems_.wrong.push_back(go + "Go struct field " + std::string(problems_.kind) + "." +
                                WithoutIndexes(path) + of_type);
      return false;
    case TypeWords::kGoValue:
      return Wrong(path, go + "a value" + of_type);
    case TypeWords::kInvalidValue:
      return Wrong(path, "Invalid value: " + std::string(WordsOf(type)));
    case TypeWords::kMustBe:
      break;
  }
  return Wrong(path, WordsOf(type));
}

bool DocumentReader::Convert(const Value& value, const std::string& path, bool& out) {
  if (!value.is_bool()) return Mismatch(value, path, "bool");
  out = value.get_bool();
  return true;
}

bool DocumentReader::Convert(const Value& value, const std::string& path, int32_t& out) {
  if (!value.is_int64() || value.get_int64() < std::numeric_limits<int32_t>::min() ||
      value.get_int64() > std::numeric_limits<int32_t>::max()) {
    return Mismatch(value, path, "int32");
  }
  out = static_cast<int32_t>(value.get_int64());
  return true;
}

bool DocumentReader::Convert(const Value& value, const std::string& path, int64_t& out) {
  if (!value.is_int64()) return Mismatch(value, path, "int64");
  out = value.get_int64();
  return true;
}

bool DocumentReader::Convert(const Value& value, const std::string& path, double& out) {
  if (!value.is_number()) return Mismatch(value, path, "float64");
  out = value.to_number<double>();
  return true;
}

bool DocumentReader::Convert(const Value& value, const std::string& path, std::string& out) {
  if (!value.is_string()) return Mismatch(value, path, "string");
  out.assign(value.get_string().data(), value.get_string().size());
  return true;
}

bool DocumentReader::Convert(const Value& value, const std::string& path, QuantityText& out) {
  if (value.is_number()) {
    out.text = json::serialize(value);
  } else if (!value.is_string()) {
    return Mismatch(value, path, "resource.QuantityValue");
  } else {
    out.text.assign(value.get_string().data(), value.get_string().size());
  }
  const Result<api::Amount> amount = api::Amount::Parse(out.text);
  return amount ? true : Wrong(path, amount.error().message());
}

bool DocumentReader::Convert(const Value& value, const std::string& path, std::chrono::nanoseconds& out) {
  std::string text;
  if (!Convert(value, path, text)) return false;
  const Result<int64_t> nanos = api::ParseGoDuration(text);
  if (!nanos) return Wrong(path, nanos.error().message());
  out = std::chrono::nanoseconds(*nanos);
  return true;
}

bool DocumentReader::Convert(const Value& value, const std::string& path, TimeOrDuration& out) {
  if (value.is_string()) return Convert(value, path, out.value);
  if (!value.is_int64()) return Wrong(path, "invalid duration \"" + json::serialize(value) + "\"");
  out.value = std::chrono::nanoseconds(value.get_int64());
  return true;
}

}  // namespace keelson::component
