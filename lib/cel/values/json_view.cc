#include "lib/cel/values/json_view.h"

#include <fmt/format.h>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "lib/base/base64.h"
#include "lib/cel/values/text_forms.h"
#include "lib/cel/values/time.h"

namespace keelson::cel {
namespace {

namespace json = boost::json;

std::string_view Text(const json::string& text) { return {text.data(), text.size()}; }
std::string_view Key(const json::key_value_pair& pair) { return {pair.key().data(), pair.key().size()}; }

class JsonList : public ListValue {
 public:
  JsonList(const json::array& array, const DeclType* declared) : array_(array), declared_(declared) {}
  size_t Size() const override { return array_.size(); }
  Value At(size_t index, Arena& arena) const override {
    return JsonValue(array_[index], declared_ ? declared_->element().get() : nullptr, arena);
  }
  const DeclType* declared() const override { return declared_; }

 private:
  const json::array& array_;
  const DeclType* declared_;
};

// Without declared type, or with one for all values.
class JsonMap : public MapValue {
 public:
  JsonMap(const json::object& object, const DeclType* element) : object_(object), element_(element) {}
  size_t Size() const override { return object_.size(); }
  bool Find(const Value& key, Value& out, Arena& arena) const override {
    if (!key.Is(ValueKind::kString)) return false;
    const json::value* found = object_.if_contains({key.text().data(), key.text().size()});
    if (!found) return false;
    out = JsonValue(*found, element_, arena);
    return true;
  }
  Value KeyAt(size_t index, Arena&) const override { return Value::String(Key(object_.begin()[index])); }
  Value ValueAt(size_t index, Arena& arena) const override {
    return JsonValue(object_.begin()[index].value(), element_, arena);
  }

 private:
  const json::object& object_;
  const DeclType* element_;
};

// With declared fields. What is not declared takes part in comparisons only.
class JsonObject : public MapValue {
 public:
  JsonObject(const json::object& object, const DeclType& declared) : object_(object), declared_(declared) {}
  size_t Size() const override { return object_.size(); }
  bool Find(const Value& key, Value& out, Arena& arena) const override {
    if (!key.Is(ValueKind::kString)) return false;
    const DeclField* field = declared_.FindField(key.text());
    if (!field) return false;
    const json::value* found = object_.if_contains(field->json_name);
    if (!found) return false;
    out = JsonValue(*found, field->type.get(), arena);
    return true;
  }
  bool FindEqual(const Value& key, Value& out, Arena& arena) const override {
    if (Find(key, out, arena)) return true;
    if (!key.Is(ValueKind::kString)) return false;
    const json::value* found = object_.if_contains({key.text().data(), key.text().size()});
    if (!found) return false;
    const DeclField* field = declared_.FindJsonField(key.text());
    out = JsonValue(*found, field ? field->type.get() : nullptr, arena);
    return true;
  }
  Value KeyAt(size_t index, Arena&) const override {
    std::string_view name = Key(object_.begin()[index]);
    const DeclField* field = declared_.FindJsonField(name);
    return Value::String(field && !field->name.empty() ? std::string_view(field->name) : name);
  }
  Value ValueAt(size_t index, Arena& arena) const override {
    const json::key_value_pair& pair = object_.begin()[index];
    const DeclField* field = declared_.FindJsonField(Key(pair));
    return JsonValue(pair.value(), field ? field->type.get() : nullptr, arena);
  }

 private:
  const json::object& object_;
  const DeclType& declared_;
};

Value Number(const json::value& value) {
  if (value.is_int64()) return Value::Int(value.get_int64());
  if (value.is_uint64()) return Value::Double(static_cast<double>(value.get_uint64()));
  return Value::Double(value.get_double());
}

Value Dynamic(const json::value& value, Arena& arena) {
  switch (value.kind()) {
    case json::kind::null:
      return Value();
    case json::kind::bool_:
      return Value::Bool(value.get_bool());
    case json::kind::string:
      return Value::String(Text(value.get_string()));
    case json::kind::array:
      return Value::List(arena.New<JsonList>(value.get_array(), nullptr));
    case json::kind::object:
      return Value::Map(arena.New<JsonMap>(value.get_object(), nullptr));
    default:
      return Number(value);
  }
}

// Go's name of the type that JSON decodes to.
std::string_view GoType(const json::value& value) {
  switch (value.kind()) {
    case json::kind::bool_:
      return "bool";
    case json::kind::int64:
    case json::kind::uint64:
      return "int64";
    case json::kind::double_:
      return "float64";
    case json::kind::string:
      return "string";
    case json::kind::array:
      return "[]interface {}";
    case json::kind::object:
      return "map[string]interface {}";
    default:
      return "<nil>";
  }
}

Value FormattedString(std::string_view text, DeclForm form, Arena& arena) {
  auto bad = [&](std::string_view what, std::string_view why) {
    return Value::Error(fmt::format("Invalid {} {}: {}", what, text, why), arena);
  };
  switch (form) {
    case DeclForm::kBytes: {
      auto bytes = DecodeBase64(text, Base64::kStd, "\r\n");
      return bytes ? Value::Bytes(arena.Copy(*bytes)) : bad("byte formatted string", bytes.error().message());
    }
    case DeclForm::kDuration: {
      auto nanos = ParseFormatDuration(text);
      return nanos ? Value::Duration(*nanos)
                   : bad("duration", fmt::format("unable to parse {} as duration", text));
    }
    case DeclForm::kDate: {
      auto time = ParseDate(text);
      return time
                 ? Value::Time(*time)
                 : bad("date formatted string",
                       fmt::format("parsing time \"{0}\" as \"2006-01-02\": cannot parse \"{0}\" as \"2006\"",
                                   text));
    }
    case DeclForm::kDateTime: {
      auto time = ParseFormatDateTime(text);
      return time ? Value::Time(*time)
                  : bad("date-time formatted string", fmt::format("unable to parse {} as date-time", text));
    }
    default:
      return Value::String(text);
  }
}

Value Mismatch(std::string_view expected, const json::value& value, Arena& arena) {
  return Value::Error(fmt::format("invalid data, expected {}, got {}", expected, GoType(value)), arena);
}

Result<json::value> Refuse(const Value& value) {
  return Error(Code::kInvalid, fmt::format("unsupported conversion of {} to JSON", TypeName(value)));
}

}  // namespace

Value JsonValue(const json::value& value, const DeclType* declared, Arena& arena) {
  if (!declared || declared->form() == DeclForm::kDyn || declared->form() == DeclForm::kPreserved) {
    return Dynamic(value, arena);
  }
  if (value.is_null()) {
    return declared->nullable() ? Value()
                                : Value::StaticError("invalid data, got null for schema with nullable=false");
  }
  switch (declared->form()) {
    case DeclForm::kBool:
      return value.is_bool() ? Value::Bool(value.get_bool()) : Mismatch("bool", value, arena);
    case DeclForm::kInt:
      return value.is_int64() ? Value::Int(value.get_int64()) : Mismatch("int", value, arena);
    case DeclForm::kDouble:
      if (value.is_int64()) return Value::Double(static_cast<double>(value.get_int64()));
      return value.is_number() ? Number(value) : Mismatch("float", value, arena);
    case DeclForm::kIntOrString:
      if (value.is_int64()) return Value::Int(value.get_int64());
      if (value.is_string()) return Value::String(Text(value.get_string()));
      return Value::StaticError("invalid data, expected XIntOrString value to be either a string or integer");
    case DeclForm::kList:
      if (!value.is_array()) {
        return Value::StaticError("invalid data, expected an array for the provided schema with type=array");
      }
      return Value::List(arena.New<JsonList>(value.get_array(), declared));
    case DeclForm::kMap:
    case DeclForm::kObject:
      if (!value.is_object()) {
        return Value::StaticError("invalid data, expected a map for the provided schema with type=object");
      }
      if (declared->form() == DeclForm::kObject) {
        return Value::Map(arena.New<JsonObject>(value.get_object(), *declared));
      }
      return Value::Map(arena.New<JsonMap>(value.get_object(), declared->element().get()));
    case DeclForm::kNative:
      return Dynamic(value, arena);
    default:
      if (!value.is_string()) return Mismatch("string", value, arena);
      return FormattedString(Text(value.get_string()), declared->form(), arena);
  }
}

Result<json::value> ToJson(const Value& value, Arena& arena) {
  switch (value.kind()) {
    case ValueKind::kNull:
      return json::value(nullptr);
    case ValueKind::kBool:
      return json::value(value.as_bool());
    case ValueKind::kInt:
      return json::value(value.as_int());
    case ValueKind::kUint:
      return json::value(value.as_uint());
    case ValueKind::kDouble:
      return json::value(value.as_double());
    case ValueKind::kString:
      return json::value(json::string_view(value.text().data(), value.text().size()));
    case ValueKind::kBytes:
      return json::value(json::string(EncodeBase64(value.text())));
    case ValueKind::kDuration:
    case ValueKind::kTimestamp:
      return json::value(json::string(ToText(value)));
    case ValueKind::kList: {
      json::array out;
      for (size_t i = 0; i < value.list().Size(); ++i) {
        KEELSON_ASSIGN_OR_RETURN(json::value item, ToJson(value.list().At(i, arena), arena));
        out.push_back(std::move(item));
      }
      return json::value(std::move(out));
    }
    case ValueKind::kMap:
    case ValueKind::kObject: {
      json::object out;
      for (size_t i = 0; i < value.map().Size(); ++i) {
        Value key = value.map().KeyAt(i, arena);
        if (!key.Is(ValueKind::kString)) return Refuse(key);
        KEELSON_ASSIGN_OR_RETURN(json::value item, ToJson(value.map().ValueAt(i, arena), arena));
        out.insert_or_assign({key.text().data(), key.text().size()}, std::move(item));
      }
      return json::value(std::move(out));
    }
    case ValueKind::kOptional:
      if (value.has_value()) return ToJson(value.inner(), arena);
      return json::value(nullptr);
    case ValueKind::kError:
      return Error(Code::kInvalid, std::string(value.text()));
    default:
      return Refuse(value);
  }
}

}  // namespace keelson::cel
