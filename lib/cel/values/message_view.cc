#include "lib/cel/values/message_view.h"

#include <optional>

#include <google/protobuf/descriptor.h>
#include <boost/json/parse.hpp>

#include "lib/api/codec/codec.h"
#include "lib/api/duration.h"
#include "lib/api/resource_table.h"
#include "lib/api/type_table.h"
#include "lib/base/base64.h"
#include "lib/cel/values/json_view.h"
#include "lib/cel/values/time.h"

namespace keelson::cel {
namespace {

using api::FieldInfo;
using api::MessageInfo;
using google::protobuf::Message;
using google::protobuf::Reflection;

const Reflection& ReflectionOf(const Message& message) { return *message.GetReflection(); }

struct TypeMeta {
  std::string_view api_version, kind;
};

// Of a whole object inside another, such as a claim template; empty for other messages.
TypeMeta TypeMetaOf(const FieldInfo& field) {
  const std::string_view text = field.type_meta;  // "kind":"X","apiVersion":"v1"
  const auto value = [&](std::string_view name) {
    const size_t begin = text.find(name) + name.size();
    return text.substr(begin, text.find('"', begin) - begin);
  };
  if (text.empty()) return {};
  return {value(R"("apiVersion":")"), value(R"("kind":")")};
}

Value OfMessage(const Message& message, const MessageInfo& info, Arena& arena, TypeMeta type_meta = {});

// One value of a field: `index` of a list or map's entries, -1 of a singular field.
Value Scalar(const Message& message, const FieldInfo& field,
             const google::protobuf::FieldDescriptor* descriptor, int index, Arena& arena) {
  const Reflection& r = ReflectionOf(message);
  std::string scratch;
  switch (field.kind) {
    case api::ValueKind::kString:
      return Value::String(index < 0 ? r.GetStringReference(message, descriptor, &scratch)
                                     : r.GetRepeatedStringReference(message, descriptor, index, &scratch));
    case api::ValueKind::kBytes:
      return Value::String(arena.Copy(
          EncodeBase64(index < 0 ? r.GetStringReference(message, descriptor, &scratch)
                                 : r.GetRepeatedStringReference(message, descriptor, index, &scratch))));
    case api::ValueKind::kBool:
      return Value::Bool(index < 0 ? r.GetBool(message, descriptor)
                                   : r.GetRepeatedBool(message, descriptor, index));
    case api::ValueKind::kInt32:
      return Value::Int(index < 0 ? r.GetInt32(message, descriptor)
                                  : r.GetRepeatedInt32(message, descriptor, index));
    case api::ValueKind::kInt64:
      return Value::Int(index < 0 ? r.GetInt64(message, descriptor)
                                  : r.GetRepeatedInt64(message, descriptor, index));
    case api::ValueKind::kDouble:
      return Value::Double(index < 0 ? r.GetDouble(message, descriptor)
                                     : r.GetRepeatedDouble(message, descriptor, index));
    case api::ValueKind::kMessage:
      return OfMessage(
          index < 0 ? r.GetMessage(message, descriptor) : r.GetRepeatedMessage(message, descriptor, index),
          *field.message, arena, TypeMetaOf(field));
  }
  return Value();
}

class MessageList : public ListValue {
 public:
  MessageList(const Message& message, const FieldInfo& field) : message_(message), field_(field) {}
  size_t Size() const override {
    return static_cast<size_t>(ReflectionOf(message_).FieldSize(message_, field_.descriptor));
  }
  Value At(size_t index, Arena& arena) const override {
    return Scalar(message_, field_, field_.descriptor, static_cast<int>(index), arena);
  }

 private:
  const Message& message_;
  const FieldInfo& field_;
};

// A map field, as its entries.
class MessageMap : public MapValue {
 public:
  MessageMap(const Message& message, const FieldInfo& field) : message_(message), field_(field) {}
  size_t Size() const override {
    return static_cast<size_t>(ReflectionOf(message_).FieldSize(message_, field_.descriptor));
  }
  bool Find(const Value& key, Value& out, Arena& arena) const override {
    if (!key.Is(ValueKind::kString)) return false;
    for (size_t i = 0; i < Size(); ++i) {
      if (KeyAt(i, arena).text() != key.text()) continue;
      out = ValueAt(i, arena);
      return true;
    }
    return false;
  }
  Value KeyAt(size_t index, Arena&) const override {
    const Message& entry = Entry(index);
    std::string scratch;
    return Value::String(ReflectionOf(entry).GetStringReference(
        entry, field_.descriptor->message_type()->map_key(), &scratch));
  }
  Value ValueAt(size_t index, Arena& arena) const override {
    return Scalar(Entry(index), field_, field_.descriptor->message_type()->map_value(), -1, arena);
  }

 private:
  const Message& Entry(size_t index) const {
    return ReflectionOf(message_).GetRepeatedMessage(message_, field_.descriptor, static_cast<int>(index));
  }

  const Message& message_;
  const FieldInfo& field_;
};

// Whether JSON has the field, and what it says: the rules of the encoder (lib/api/codec).
bool ReadField(const Message& message, const FieldInfo& field, Value& out, Arena& arena) {
  const Reflection& r = ReflectionOf(message);
  if (field.map || field.repeated) {
    bool present = r.FieldSize(message, field.descriptor) > 0;
    if (!present && !field.always) return false;
    if (!present && !field.empty_list) {
      out = Value();
    } else {
      out = field.map ? Value::Map(arena.New<MessageMap>(message, field))
                      : Value::List(arena.New<MessageList>(message, field));
    }
    return true;
  }
  bool present = r.HasField(message, field.descriptor);
  if (field.kind == api::ValueKind::kMessage) {
    bool missing = field.pointer ? !present && !field.always : field.omit_zero && !present;
    if (missing) return false;
    out = field.pointer && !present
              ? Value()
              : OfMessage(r.GetMessage(message, field.descriptor), *field.message, arena);
    return true;
  }
  Value value = Scalar(message, field, field.descriptor, -1, arena);
  if (!field.always && (field.pointer ? !present : IsZero(value))) return false;
  bool null = field.kind == api::ValueKind::kBytes ? IsZero(value) : field.pointer && !present;
  out = null ? Value() : value;
  return true;
}

class MessageObject : public MapValue {
 public:
  MessageObject(const Message& message, const MessageInfo& info, TypeMeta type_meta)
      : message_(message), info_(info), api_version_(type_meta.api_version), kind_(type_meta.kind) {}

  bool Find(const Value& key, Value& out, Arena& arena) const override {
    if (!key.Is(ValueKind::kString)) return false;
    if (!kind_.empty() && (key.text() == "kind" || key.text() == "apiVersion")) {
      out = Value::String(key.text() == "kind" ? kind_ : api_version_);
      return true;
    }
    int index = info_.LookUp(key.text());
    return index >= 0 && Read(info_.keys[static_cast<size_t>(index)], out, arena);
  }
  size_t Size() const override { return Present().size() + (kind_.empty() ? 0 : 2); }
  Value KeyAt(size_t index, Arena&) const override {
    if (index < Present().size()) return Value::String(Present()[index]->field->json_name);
    return Value::String(index == Present().size() ? "kind" : "apiVersion");
  }
  Value ValueAt(size_t index, Arena& arena) const override {
    Value out;
    if (index < Present().size()) {
      Read(*Present()[index], out, arena);
    } else {
      out = Value::String(index == Present().size() ? kind_ : api_version_);
    }
    return out;
  }

 private:
  bool Read(const api::JsonKey& key, Value& out, Arena& arena) const {
    const Message* holder = &message_;
    for (const FieldInfo* outer : key.path) {
      holder = &ReflectionOf(*holder).GetMessage(*holder, outer->descriptor);
    }
    return ReadField(*holder, *key.field, out, arena);
  }

  // The keys that JSON has; found when first asked for.
  const std::vector<const api::JsonKey*>& Present() const {
    if (!present_) {
      present_.emplace();
      Arena scratch;
      Value ignored;
      for (const api::JsonKey& key : info_.keys) {
        if (Read(key, ignored, scratch)) present_->push_back(&key);
      }
    }
    return *present_;
  }

  const Message& message_;
  const MessageInfo& info_;
  std::string_view api_version_, kind_;
  mutable std::optional<std::vector<const api::JsonKey*>> present_;
};

int64_t IntField(const Message& message, int number) {
  const auto* field = message.GetDescriptor()->FindFieldByNumber(number);
  const Reflection& r = ReflectionOf(message);
  return field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_INT32 ? r.GetInt32(message, field)
                                                                               : r.GetInt64(message, field);
}

std::string_view TextField(const Message& message, int number) {
  std::string scratch;
  return ReflectionOf(message).GetStringReference(message, message.GetDescriptor()->FindFieldByNumber(number),
                                                  &scratch);
}

Value OfTime(const Message& message, bool micro, Arena& arena) {
  Timestamp time{IntField(message, 1), static_cast<int32_t>(IntField(message, 2)), 0};
  if (message.ByteSizeLong() == 0 || (time.seconds == kZeroTimeSeconds && time.nanos == 0)) return Value();
  int32_t micros = time.nanos / 1000;
  time.nanos = 0;
  std::string text = FormatTime(time);
  if (micro) {
    std::string digits = std::to_string(1'000'000 + micros);
    digits[0] = '.';
    text.insert(text.size() - 1, digits);
  }
  return Value::String(arena.Copy(text));
}

// The JSON of a whole object that is kept in protobuf form; "null" for what is none.
std::string EnvelopeJson(std::string_view bytes) {
  auto envelope = api::OpenEnvelope(bytes);
  if (!envelope) return "null";
  auto [group, version] = api::SplitApiVersion(envelope->type_meta.api_version);
  const api::ResourceInfo* info = api::FindKind(group, version, envelope->type_meta.kind);
  if (!info || !info->descriptor()) return "null";
  api::GroupVersionKind gvk{std::string(group), std::string(version), envelope->type_meta.kind};
  std::string out;
  api::WireToJson(info->descriptor(), envelope->raw, &gvk, out);
  return out;
}

// Any JSON, which is kept as bytes.
Value OfRaw(const Message& message, Arena& arena) {
  std::string text(TextField(message, 1));
  if (text.empty()) return Value();
  if (text.starts_with(api::kProtobufMagic)) text = EnvelopeJson(text);
  boost::system::error_code error;
  auto* parsed = arena.New<boost::json::value>(boost::json::parse(text, error));
  return error ? Value() : JsonValue(*parsed, nullptr, arena);
}

// A schema, or what may stand in its place: true, false, a list.
Value OfSchemaUnion(const Message& message, const MessageInfo& info, Arena& arena) {
  const Reflection& r = ReflectionOf(message);
  const FieldInfo* allows = nullptr;
  for (const FieldInfo& field : info.fields) {
    if (field.repeated && r.FieldSize(message, field.descriptor) > 0) {
      return Value::List(arena.New<MessageList>(message, field));
    }
    if (field.kind == api::ValueKind::kBool) allows = &field;
    if (!field.repeated && field.kind == api::ValueKind::kMessage && r.HasField(message, field.descriptor)) {
      return OfMessage(r.GetMessage(message, field.descriptor), *field.message, arena);
    }
  }
  return allows ? Value::Bool(r.GetBool(message, allows->descriptor)) : Value();
}

Value OfMessage(const Message& message, const MessageInfo& info, Arena& arena, TypeMeta type_meta) {
  switch (info.form) {
    case api::JSON_OBJECT:
      return Value::Map(arena.New<MessageObject>(message, info, type_meta));
    case api::JSON_TIME:
      return OfTime(message, false, arena);
    case api::JSON_MICRO_TIME:
      return OfTime(message, true, arena);
    case api::JSON_DURATION:
      return Value::String(arena.Copy(api::FormatGoDuration(IntField(message, 1))));
    case api::JSON_RAW:
      return OfRaw(message, arena);
    case api::JSON_QUANTITY: {
      std::string_view text = TextField(message, 1);
      return Value::String(text.empty() ? std::string_view("0") : text);
    }
    case api::JSON_INT_OR_STRING:
      return IntField(message, 1) == 1 ? Value::String(TextField(message, 3))
                                       : Value::Int(IntField(message, 2));
    case api::JSON_LIST:
      return Value::List(arena.New<MessageList>(message, info.fields.front()));
    default:
      return OfSchemaUnion(message, info, arena);
  }
}

}  // namespace

Value MessageValue(const Message& message, Arena& arena, std::string_view api_version,
                   std::string_view kind) {
  const MessageInfo& info = api::InfoOf(message.GetDescriptor());
  if (info.form != api::JSON_OBJECT) return OfMessage(message, info, arena);
  return Value::Map(arena.New<MessageObject>(message, info, TypeMeta{api_version, kind}));
}

}  // namespace keelson::cel
