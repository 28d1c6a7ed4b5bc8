// Values in JSON: scalars, and types with a special JSON form (times, quantities).
#include <charconv>
#include <limits>

#include "lib/api/codec/json_decoder.h"
#include "lib/api/codec/text_forms.h"
#include "lib/api/quantity.h"
#include "lib/api/wire_parse.h"

namespace keelson::api {

namespace {

bool ParseInteger(std::string_view text, bool narrow, int64_t& value) {
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  using Narrow = std::numeric_limits<int32_t>;
  return error == std::errc() && stop == text.data() + text.size() &&
         (!narrow || (value >= Narrow::min() && value <= Narrow::max()));
}

}  // namespace

bool JsonDecoder::Scalar(const FieldInfo& field, uint32_t number, bool keep_zero, const JsonPath& path) {
  if (reader_.Peek() == 'n') return Null(field.kind, number);
  switch (field.kind) {
    case ValueKind::kString:
      return String(number, keep_zero, path);
    case ValueKind::kBytes:
      return Bytes(number, keep_zero, path);
    case ValueKind::kBool:
      return Bool(number, keep_zero, path);
    case ValueKind::kInt32:
      return Int(true, number, keep_zero, path);
    case ValueKind::kInt64:
      return Int(false, number, keep_zero, path);
    case ValueKind::kDouble:
      return Double(number, keep_zero, path);
    case ValueKind::kMessage:
      break;
  }
  return false;
}

// A null list item or map value counts as zero.
bool JsonDecoder::Null(ValueKind kind, uint32_t number) {
  if (!reader_.Literal("null")) return false;
  if (kind == ValueKind::kString || kind == ValueKind::kBytes) {
    wire::PutBytes(out_, number, {});
  } else if (kind == ValueKind::kDouble) {
    wire::PutTag(out_, number, wire::kFixed64);
    out_.Append(std::string_view("\0\0\0\0\0\0\0\0", 8));
  } else {
    wire::PutInt(out_, number, 0);
  }
  return true;
}

bool JsonDecoder::String(uint32_t number, bool keep_zero, const JsonPath& path) {
  if (reader_.Peek() != '"') return Mismatch("string", path, 0);
  std::string_view text;
  if (!reader_.String(text)) return false;
  if (!text.empty() || keep_zero) wire::PutBytes(out_, number, text);
  return true;
}

bool JsonDecoder::Bytes(uint32_t number, bool keep_zero, const JsonPath& path) {
  if (reader_.Peek() != '"') return Mismatch("[]uint8", path, 0);
  std::string_view text;
  if (!reader_.String(text)) return false;
  wire::Open open = wire::Begin(out_, number);
  if (auto done = DecodeBase64(text, out_); !done) return Fail(done.error().message());
  if (out_.size() == open.start && !keep_zero) {
    out_.Truncate(open.rollback);
  } else {
    wire::End(out_, open);
  }
  return true;
}

bool JsonDecoder::Bool(uint32_t number, bool keep_zero, const JsonPath& path) {
  char next = reader_.Peek();
  if (next != 't' && next != 'f') return Mismatch("bool", path, 0);
  if (!reader_.Literal(next == 't' ? "true" : "false")) return false;
  if (next == 't' || keep_zero) wire::PutInt(out_, number, next == 't');
  return true;
}

bool JsonDecoder::Int(bool narrow, uint32_t number, bool keep_zero, const JsonPath& path) {
  std::string_view type = narrow ? "int32" : "int64", text;
  if (!AtNumber()) return Mismatch(type, path, 0);
  if (!reader_.Number(text)) return false;
  int64_t value = 0;
  if (!ParseInteger(text, narrow, value)) return TypeError("number " + std::string(text), type, path);
  if (value != 0 || keep_zero) wire::PutInt(out_, number, static_cast<uint64_t>(value));
  return true;
}

bool JsonDecoder::Double(uint32_t number, bool keep_zero, const JsonPath& path) {
  if (!AtNumber()) return Mismatch("float64", path, 0);
  std::string_view text;
  if (!reader_.Number(text)) return false;
  double value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) {
    return TypeError("number " + std::string(text), "float64", path);
  }
  if (value == 0 && !keep_zero) return true;
  wire::PutTag(out_, number, wire::kFixed64);
  out_.Append({reinterpret_cast<const char*>(&value), sizeof(value)});
  return true;
}

bool JsonDecoder::Message(const MessageInfo& info, const JsonPath& path, int depth) {
  switch (info.form) {
    case JSON_TIME:
      return Time(false);
    case JSON_MICRO_TIME:
      return Time(true);
    case JSON_DURATION:
      return Duration();
    case JSON_RAW:
      return Raw(depth);
    case JSON_QUANTITY:
      return Quantity();
    case JSON_INT_OR_STRING:
      return IntOrString();
    case JSON_LIST:
      return PlainList(info, path, depth);
    case JSON_SCHEMA_OR_BOOL:
    case JSON_SCHEMA_OR_ARRAY:
    case JSON_SCHEMA_OR_STRINGS:
      return SchemaUnion(info, path, depth);
    case JSON_OBJECT:
      break;
  }
  if (reader_.Peek() != '{') return Mismatch(GoTypeOf(info), path, depth);
  return Object(info, path, depth);
}

// A string for a type that unmarshals itself: Go's errors name no field there.
bool JsonDecoder::PlainString(std::string_view& text) {
  if (reader_.Peek() == '"') return reader_.String(text);
  return Mismatch("string", JsonPath{}, 0);
}

bool JsonDecoder::Time(bool micro) {
  std::string_view text;
  if (!PlainString(text)) return false;
  auto time = ParseTime(text, micro);
  if (!time) return Fail(time.error().message());
  if (IsZeroTime(*time)) return true;
  wire::PutInt(out_, 1, static_cast<uint64_t>(time->seconds));
  if (micro && time->nanos != 0) wire::PutInt(out_, 2, static_cast<uint64_t>(time->nanos));
  return true;
}

bool JsonDecoder::Duration() {
  std::string_view text;
  if (!PlainString(text)) return false;
  auto nanos = ParseGoDuration(text);
  if (!nanos) return Fail(nanos.error().message());
  if (*nanos != 0) wire::PutInt(out_, 1, static_cast<uint64_t>(*nanos));
  return true;
}

bool JsonDecoder::Raw(int depth) {
  wire::Open open = wire::Begin(out_, 1);
  if (!reader_.Copy(out_, depth)) return false;
  wire::End(out_, open);
  return true;
}

void JsonDecoder::ReportDuplicatesIn(std::string_view value, const JsonPath& path) {
  JsonReader reader(value);
  // The value is valid JSON, and not too deep.
  auto walk = [&](auto& self, const JsonPath& at) -> void {
    if (reader.Take('[')) {
      if (reader.Take(']')) return;
      JsonPath item{&at, {}, 0};
      for (bool more = true; more; ++item.index) {
        self(self, item);
        if (!reader.Next(']', "after array element", more)) return;
      }
    } else if (reader.Take('{')) {
      if (reader.Take('}')) return;
      NameSet seen;
      for (bool more = true; more;) {
        std::string_view name;
        if (!reader.Name(name)) return;
        const std::string kept(name);
        if (!seen.Insert(kept)) Report("duplicate", at, kept);
        self(self, JsonPath{&at, kept, -1, true});
        if (!reader.Next('}', "after object key:value pair", more)) return;
      }
    } else {
      reader.Skip(0);
    }
  };
  walk(walk, path);
}

bool JsonDecoder::Quantity() {
  std::string_view text;
  const char* start = (reader_.Peek(), reader_.position());
  if (reader_.Peek() == '"') {
    if (!reader_.String(text)) return false;
  } else {
    if (!reader_.Skip(0)) return false;
    text = reader_.Since(start);
  }
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  std::string canonical;
  if (!wire_parse::IsCanonicalQuantity(text)) {
    auto amount = Amount::Parse(text);
    if (!amount) return Fail(amount.error().message());
    text = canonical = amount->ToString();
  }
  wire::PutBytes(out_, 1, text);
  return true;
}

bool JsonDecoder::IntOrString() {
  std::string_view text;
  if (reader_.Peek() == '"') {
    if (!reader_.String(text)) return false;
    wire::PutInt(out_, 1, 1);
    if (!text.empty()) wire::PutBytes(out_, 3, text);
    return true;
  }
  if (!AtNumber()) return Mismatch("int32", JsonPath{}, 0);
  if (!reader_.Number(text)) return false;
  int64_t value = 0;
  if (!ParseInteger(text, true, value)) return TypeError("number " + std::string(text), "int32", JsonPath{});
  if (value != 0) wire::PutInt(out_, 2, static_cast<uint64_t>(value));
  return true;
}

bool JsonDecoder::PlainList(const MessageInfo& info, const JsonPath& path, int depth) {
  if (reader_.Peek() != '[') return Mismatch(GoTypeOf(info), path, depth);
  return List(info.fields.front(), path, depth);
}

bool JsonDecoder::SchemaUnion(const MessageInfo& info, const JsonPath& path, int depth) {
  auto field = [&](std::string_view name) -> const FieldInfo& { return info.fields[info.LookUp(name)]; };
  bool either = info.form == JSON_SCHEMA_OR_BOOL;
  char next = reader_.Peek();
  if (next == '{') {
    if (either) wire::PutInt(out_, field("allows").number, 1);
    return Value(field("schema"), field("schema").number, true, path, depth);
  }
  if (either) {
    if (next != 't' && next != 'f') return Fail("boolean or JSON schema expected");
    return Scalar(field("allows"), field("allows").number, false, path);
  }
  if (next != '[') {
    return reader_.Skip(depth);  // Go ignores anything else
  }
  return List(field(info.form == JSON_SCHEMA_OR_ARRAY ? "jSONSchemas" : "property"), path, depth);
}

}  // namespace keelson::api
