// Objects to JSON. The object is serialised and its wire format transcoded: walking bytes is several times
// faster than reflection, and stored objects need not be decoded at all.
#include <algorithm>
#include <cstring>

#include "lib/api/codec/codec.h"
#include "lib/api/codec/json_text.h"
#include "lib/api/codec/text_forms.h"
#include "lib/api/quantity.h"
#include "lib/api/type_table.h"
#include "lib/api/wire.h"
#include "lib/api/wire_parse.h"

namespace keelson::api {
namespace {

class JsonEncoder {
 public:
  explicit JsonEncoder(std::string& out) : out_(out) {}

  void Object(const MessageInfo& info, std::string_view bytes, std::string_view type_meta) {
    out_.Put('{');
    bool first = type_meta.empty();
    out_.Append(type_meta);
    Fields(info, bytes, first);
    out_.Put('}');
  }

 private:
  // The wire records of one field. The last record of a singular field counts.
  struct Slot {
    const char* first = nullptr;  // tag of the first record
    uint32_t count = 0;
    uint64_t number = 0;
    std::string_view bytes;
  };
  struct Entry {
    std::string_view key, value;
    uint64_t number;
    bool operator<(const Entry& other) const { return key < other.key; }
  };

  void Fields(const MessageInfo& info, std::string_view bytes, bool& first);
  void Field(const FieldInfo& field, const Slot& slot, const char* end, bool& first);
  void Name(const FieldInfo& field, bool& first) {
    if (!first) out_.Put(',');
    first = false;
    out_.Append(field.quoted);
  }
  void List(const FieldInfo& field, const Slot& slot, const char* end);
  void Map(const FieldInfo& field, const Slot& slot, const char* end);
  void Scalar(const FieldInfo& field, uint64_t number, std::string_view bytes);
  void Value(const MessageInfo& info, std::string_view bytes, std::string_view type_meta = {});
  void Time(std::string_view bytes, bool micro);
  void Raw(std::string_view bytes);
  // The members of an object that the decoder has checked.
  void Rest(std::string_view object, bool& first);
  void IntOrString(std::string_view bytes);
  void Quantity(std::string_view bytes);
  void SchemaUnion(const MessageInfo& info, std::string_view bytes);
  // Go's protobuf merges the records of a singular message.
  static std::string Merged(const FieldInfo& field, const Slot& slot, const char* end);

  Sink out_;
  std::vector<Slot> slots_;  // a stack: each object in progress has slots for its fields
};

bool WireTypeFits(const FieldInfo& field, uint32_t type) {
  switch (field.map ? ValueKind::kMessage : field.kind) {
    case ValueKind::kString:
    case ValueKind::kBytes:
    case ValueKind::kMessage:
      return type == wire::kBytes;
    case ValueKind::kDouble:
      return type == wire::kFixed64 || (field.repeated && type == wire::kBytes);
    default:
      return type == wire::kVarint || (field.repeated && type == wire::kBytes);
  }
}

void JsonEncoder::Fields(const MessageInfo& info, std::string_view bytes, bool& first) {
  size_t base = slots_.size(), count = info.fields.size();
  slots_.resize(base + count);
  const char *p = bytes.data(), *end = p + bytes.size();
  wire::Record record;
  while (p < end && wire::ReadRecord(p, end, record)) {
    const FieldInfo* field = info.ByNumber(record.field);
    if (!field || !WireTypeFits(*field, record.type)) continue;
    Slot& slot = slots_[base + static_cast<size_t>(field - info.fields.data())];
    if (slot.count++ == 0) slot.first = record.start;
    slot.number = record.number;
    slot.bytes = record.bytes;
  }
  for (size_t i = 0; i < count; ++i) {
    Slot slot = slots_[base + i];
    Field(info.fields[i], slot, end, first);
  }
  slots_.resize(base);
}

std::string JsonEncoder::Merged(const FieldInfo& field, const Slot& slot, const char* end) {
  std::string merged;
  wire::Record record;
  for (const char* p = slot.first; p < end && wire::ReadRecord(p, end, record);) {
    if (record.field == field.number && record.type == wire::kBytes) merged += record.bytes;
  }
  return merged;
}

void JsonEncoder::Rest(std::string_view object, bool& first) {
  if (object.size() <= 2) return;  // absent, or {}
  if (!first) out_.Put(',');
  first = false;
  out_.Append(object.substr(1, object.size() - 2));
}

void JsonEncoder::Field(const FieldInfo& field, const Slot& slot, const char* end, bool& first) {
  bool present = slot.count != 0;
  if (field.rest) return Rest(slot.bytes, first);
  if (field.map || field.repeated) {
    if (!present && !field.always) return;
    Name(field, first);
    if (!present) return out_.Append(field.empty_list ? "[]" : "null");
    return field.map ? Map(field, slot, end) : List(field, slot, end);
  }
  if (field.kind == ValueKind::kMessage) {
    std::string merged;
    std::string_view bytes = slot.bytes;
    if (slot.count > 1) bytes = merged = Merged(field, slot, end);
    if (field.inlined) return Fields(*field.message, bytes, first);
    if (field.pointer ? !present && !field.always : field.omit_zero && bytes.empty()) return;
    Name(field, first);
    if (field.pointer && !present) return out_.Append("null");
    return Value(*field.message, bytes);
  }
  bool is_text = field.kind == ValueKind::kString || field.kind == ValueKind::kBytes;
  bool zero = is_text ? slot.bytes.empty() : slot.number == 0;
  if (!field.always && (field.pointer ? !present : zero)) return;
  Name(field, first);
  if (field.kind == ValueKind::kBytes ? zero : field.pointer && !present) return out_.Append("null");
  Scalar(field, slot.number, slot.bytes);
}

void JsonEncoder::Scalar(const FieldInfo& field, uint64_t number, std::string_view bytes) {
  switch (field.kind) {
    case ValueKind::kString:
      return AppendQuoted(bytes, out_);
    case ValueKind::kBytes:
      out_.Put('"');
      AppendBase64(bytes, out_);
      return out_.Put('"');
    case ValueKind::kBool:
      return out_.Append(number != 0 ? "true" : "false");
    case ValueKind::kInt32:
      return AppendInt(static_cast<int32_t>(number), out_);
    case ValueKind::kInt64:
      return AppendInt(static_cast<int64_t>(number), out_);
    case ValueKind::kDouble: {
      double value;
      std::memcpy(&value, &number, sizeof(value));
      return AppendDouble(value, out_);
    }
    case ValueKind::kMessage:
      break;
  }
}

void JsonEncoder::List(const FieldInfo& field, const Slot& slot, const char* end) {
  out_.Put('[');
  bool first = true;
  auto comma = [&] {
    if (!first) out_.Put(',');
    first = false;
  };
  bool is_number = field.kind != ValueKind::kString && field.kind != ValueKind::kBytes &&
                   field.kind != ValueKind::kMessage;
  wire::Record record;
  uint32_t left = slot.count;
  for (const char* p = slot.first; left != 0 && p < end && wire::ReadRecord(p, end, record);) {
    if (record.field != field.number || !WireTypeFits(field, record.type)) continue;
    --left;
    if (field.kind == ValueKind::kMessage) {
      comma();
      Value(*field.message, record.bytes, field.type_meta);
    } else if (is_number && record.type == wire::kBytes) {  // packed
      const char *item = record.bytes.data(), *stop = item + record.bytes.size();
      for (uint64_t number; item < stop;) {
        if (field.kind == ValueKind::kDouble) {
          if (stop - item < 8) break;
          std::memcpy(&number, item, 8);
          item += 8;
        } else if (!wire::ReadVarint(item, stop, number)) {
          break;
        }
        comma();
        Scalar(field, number, {});
      }
    } else {
      comma();
      Scalar(field, record.number, record.bytes);
    }
  }
  out_.Put(']');
}

void JsonEncoder::Map(const FieldInfo& field, const Slot& slot, const char* end) {
  std::vector<Entry> entries;
  entries.reserve(slot.count);
  wire::Record record;
  for (const char* p = slot.first; p < end && wire::ReadRecord(p, end, record);) {
    if (record.field != field.number || record.type != wire::kBytes) continue;
    Entry entry{{}, {}, 0};
    const char *inner = record.bytes.data(), *stop = inner + record.bytes.size();
    wire::Record part;
    while (inner < stop && wire::ReadRecord(inner, stop, part)) {
      if (part.field == 1 && part.type == wire::kBytes) entry.key = part.bytes;
      if (part.field == 2) entry.value = part.bytes, entry.number = part.number;
    }
    entries.push_back(entry);
  }
  if (!std::is_sorted(entries.begin(), entries.end())) std::stable_sort(entries.begin(), entries.end());
  out_.Put('{');
  bool first = true;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    if (i + 1 < entries.size() && entries[i + 1].key == entry.key) continue;  // the last one counts
    if (!first) out_.Put(',');
    first = false;
    AppendQuoted(entry.key, out_);
    out_.Put(':');
    if (field.kind == ValueKind::kMessage) {
      Value(*field.message, entry.value);
    } else {
      Scalar(field, entry.number, entry.value);
    }
  }
  out_.Put('}');
}

void JsonEncoder::Value(const MessageInfo& info, std::string_view bytes, std::string_view type_meta) {
  switch (info.form) {
    case JSON_OBJECT:
      return Object(info, bytes, type_meta);
    case JSON_TIME:
      return Time(bytes, false);
    case JSON_MICRO_TIME:
      return Time(bytes, true);
    case JSON_DURATION: {
      wire::Record record{};
      const char* p = bytes.data();
      if (p && !wire::ReadRecord(p, bytes.data() + bytes.size(), record)) record.number = 0;
      return AppendQuoted(FormatGoDuration(static_cast<int64_t>(record.number)), out_);
    }
    case JSON_RAW:
      return Raw(bytes);
    case JSON_QUANTITY:
      return Quantity(bytes);
    case JSON_INT_OR_STRING:
      return IntOrString(bytes);
    case JSON_LIST: {
      Slot slot;
      slot.first = bytes.data();
      slot.count = UINT32_MAX;
      return List(info.fields.front(), slot, bytes.data() + bytes.size());
    }
    case JSON_SCHEMA_OR_BOOL:
    case JSON_SCHEMA_OR_ARRAY:
    case JSON_SCHEMA_OR_STRINGS:
      return SchemaUnion(info, bytes);
  }
}

void JsonEncoder::Time(std::string_view bytes, bool micro) {
  if (bytes.empty()) return out_.Append("null");
  Instant time;
  wire::Record record;
  for (const char *p = bytes.data(), *end = p + bytes.size(); p < end && wire::ReadRecord(p, end, record);) {
    if (record.field == 1) time.seconds = static_cast<int64_t>(record.number);
    if (record.field == 2) time.nanos = static_cast<int32_t>(record.number);
  }
  if (IsZeroTime(time)) return out_.Append("null");
  out_.Put('"');
  AppendTime(time, micro, out_);
  out_.Put('"');
}

void JsonEncoder::Raw(std::string_view bytes) {
  std::string_view raw;
  wire::Record record;
  for (const char *p = bytes.data(), *end = p + bytes.size(); p < end && wire::ReadRecord(p, end, record);) {
    if (record.field == 1 && record.type == wire::kBytes) raw = record.bytes;
  }
  if (raw.empty()) return out_.Append("null");
  if (raw.substr(0, kProtobufMagic.size()) != kProtobufMagic) return AppendCompact(raw, out_);
  // A whole object in protobuf form.
  auto envelope = OpenEnvelope(raw);
  if (!envelope) return out_.Append("null");
  auto [group, version] = SplitApiVersion(envelope->type_meta.api_version);
  const ResourceInfo* info = FindKind(group, version, envelope->type_meta.kind);
  const Descriptor* type = info ? info->descriptor() : nullptr;
  if (!type) return out_.Append("null");
  std::string meta = "\"kind\":\"" + envelope->type_meta.kind + "\",\"apiVersion\":\"" +
                     envelope->type_meta.api_version + "\"";
  Object(InfoOf(type), envelope->raw, meta);
}

void JsonEncoder::IntOrString(std::string_view bytes) {
  bool is_text = false;
  int64_t number = 0;
  std::string_view text;
  wire::Record record;
  for (const char *p = bytes.data(), *end = p + bytes.size(); p < end && wire::ReadRecord(p, end, record);) {
    if (record.field == 1) is_text = record.number == 1;
    if (record.field == 2) number = static_cast<int32_t>(record.number);
    if (record.field == 3 && record.type == wire::kBytes) text = record.bytes;
  }
  is_text ? AppendQuoted(text, out_) : AppendInt(number, out_);
}

void JsonEncoder::Quantity(std::string_view bytes) {
  std::string_view text = "0";
  wire::Record record;
  for (const char *p = bytes.data(), *end = p + bytes.size(); p < end && wire::ReadRecord(p, end, record);) {
    if (record.field == 1 && record.type == wire::kBytes) text = record.bytes;
  }
  if (wire_parse::IsCanonicalQuantity(text)) {
    out_.Put('"');
    out_.Append(text);
    return out_.Put('"');
  }
  auto amount = Amount::Parse(text);
  AppendQuoted(amount ? amount->ToString() : "0", out_);
}

void JsonEncoder::SchemaUnion(const MessageInfo& info, std::string_view bytes) {
  bool allows = false, has_schema = false;
  std::string schema;
  uint32_t list_size = 0;
  const FieldInfo* list = nullptr;
  const MessageInfo* schema_info = nullptr;
  wire::Record record;
  Slot slot;
  for (const FieldInfo& field : info.fields) {
    if (field.json_name == "schema") schema_info = field.message;
    if (field.repeated) list = &field;
  }
  for (const char *p = bytes.data(), *end = p + bytes.size(); p < end && wire::ReadRecord(p, end, record);) {
    const FieldInfo* field = info.ByNumber(record.field);
    if (!field || !WireTypeFits(*field, record.type)) continue;
    if (field == list) {
      if (list_size++ == 0) slot.first = record.start;
    } else if (field->kind == ValueKind::kBool) {
      allows = record.number != 0;
    } else {
      has_schema = true;
      schema += record.bytes;
    }
  }
  slot.count = list_size;
  if (list_size != 0) return List(*list, slot, bytes.data() + bytes.size());
  if (has_schema) return Object(*schema_info, schema, {});
  out_.Append(info.form != JSON_SCHEMA_OR_BOOL ? "null" : allows ? "true" : "false");
}

std::string TypeMetaText(const GroupVersionKind* gvk) {
  if (!gvk) return "";
  return "\"kind\":\"" + gvk->kind + "\",\"apiVersion\":\"" + gvk->ApiVersion() + "\"";
}

}  // namespace

void WireToJson(const Descriptor* descriptor, std::string_view raw, const GroupVersionKind* gvk,
                std::string& out) {
  out.reserve(out.size() + raw.size() * 2);
  JsonEncoder(out).Object(InfoOf(descriptor), raw, TypeMetaText(gvk));
}

void EncodeJson(const Message& object, const GroupVersionKind* gvk, std::string& out) {
  std::string wire;
  object.AppendToString(&wire);
  WireToJson(object.GetDescriptor(), wire, gvk, out);
}

std::string EncodeJson(const Message& object, const GroupVersionKind& gvk) {
  std::string out;
  EncodeJson(object, &gvk, out);
  return out;
}

std::string EncodeJson(const Message& object) {
  std::string out;
  EncodeJson(object, nullptr, out);
  return out;
}

}  // namespace keelson::api
