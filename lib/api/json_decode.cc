// JSON to objects. The text is transcoded into the protobuf wire format in one pass, without a document in
// between and without reflection, and the generated parser does the rest: both are much faster than
// setting fields one by one. Value-form zeros are never written, so the result is canonical.
#include <bitset>
#include <charconv>
#include <limits>
#include <unordered_set>

#include <fmt/format.h>

#include "lib/api/codec.h"
#include "lib/api/json_text.h"
#include "lib/api/quantity.h"
#include "lib/api/text_forms.h"
#include "lib/api/type_table.h"
#include "lib/api/wire_parse.h"

namespace keelson::api {
namespace {

// Where the cursor is, as a chain of stack frames: fields, map keys and list indexes, innermost first.
struct Path {
  const Path* parent = nullptr;
  std::string_view name;  // of a field or a map key
  int index = -1;         // of a list item
  bool map_key = false;

  // spec.containers[0].name: how strict validation names it.
  std::string Full() const {
    std::string out = parent ? parent->Full() : "";
    if (index >= 0) return out + fmt::format("[{}]", index);
    if (name.empty() && !map_key) return out;
    if (!out.empty()) out += '.';
    return out.append(name);
  }
  // spec.containers.name: how Go names it in type errors.
  std::string Fields() const {
    std::string out = parent ? parent->Fields() : "";
    if (index >= 0 || map_key || name.empty()) return out;
    if (!out.empty()) out += '.';
    return out.append(name);
  }
};

// The names seen in a map, to report duplicates.
class NameSet {
 public:
  bool Insert(std::string_view name) {
    if (few_.size() < kFew) {
      for (const std::string& seen : few_) {
        if (seen == name) return false;
      }
      few_.emplace_back(name);
      return true;
    }
    if (many_.empty()) many_.insert(few_.begin(), few_.end());
    return many_.emplace(name).second;
  }

 private:
  static constexpr size_t kFew = 16;
  std::vector<std::string> few_;
  std::unordered_set<std::string> many_;
};

class JsonDecoder {
 public:
  JsonDecoder(std::string_view json, std::string& wire, DecodeReport* report, TypeMeta* type_meta)
      : reader_(json), out_(wire), report_(report), type_meta_(type_meta) {}

  Result<> Decode(const MessageInfo& info) {
    Path root;
    bool good = reader_.Peek() == '{' ? Object(info, root, 0) : Message(info, root, 0);
    if (good && !reader_.AtEnd()) good = reader_.Unexpected("after top-level value");
    if (!good) return Error(Code::kBadRequest, error_.empty() ? reader_.error() : error_);
    out_.Finish();
    return {};
  }

 private:
  bool Object(const MessageInfo& info, const Path& path, int depth);
  bool Member(const MessageInfo& info, const JsonKey& key, const Path& path, int depth);
  bool TypeMetaMember(const MessageInfo& info, bool is_kind, const Path& path, int depth);
  bool Field(const FieldInfo& field, const Path& path, int depth);
  bool List(const FieldInfo& field, const Path& path, int depth);
  bool Map(const FieldInfo& field, const Path& path, int depth);
  // One value as field `number`; zeros are left out unless `keep_zero`.
  bool Value(const FieldInfo& field, uint32_t number, bool keep_zero, const Path& path, int depth);
  bool Scalar(const FieldInfo& field, uint32_t number, bool keep_zero, const Path& path);
  // The contents of a message, in whatever form it has in JSON.
  bool Message(const MessageInfo& info, const Path& path, int depth);
  bool Time(bool micro);
  bool Duration();
  bool Raw(int depth);
  bool Quantity();
  bool IntOrString();
  bool PlainList(const MessageInfo& info, const Path& path, int depth);
  bool SchemaUnion(const MessageInfo& info, const Path& path, int depth);
  bool PlainString(std::string_view& text);
  bool Integer(std::string_view text, int64_t low, int64_t high, int64_t& value);
  void Erase(size_t from, const JsonKey& key);

  void Report(std::string_view what, const Path& path, std::string_view name) {
    if (!report_ || report_->problems.size() >= kMaxProblems) return;
    Path at{&path, name, -1, true};
    std::string problem = fmt::format("{} field \"{}\"", what, at.Full());
    if (reported_.insert(problem).second) report_->problems.push_back(std::move(problem));
  }
  // The type mismatch at the cursor. The offending value itself may be malformed; that comes first.
  bool TypeError(std::string found, std::string_view type, const Path& path);
  bool Mismatch(std::string_view type, const Path& path, int depth);
  bool Fail(std::string message) {
    error_ = std::move(message);
    return false;
  }
  const char* KindAtCursor();

  static constexpr size_t kMaxProblems = 100;

  JsonReader reader_;
  Sink out_;
  DecodeReport* report_;
  TypeMeta* type_meta_;
  std::unordered_set<std::string> reported_;
  const MessageInfo* struct_ = nullptr;  // whose field is being decoded
  std::string error_;
};

const char* JsonDecoder::KindAtCursor() {
  switch (reader_.Peek()) {
    case '"':
      return "string";
    case '{':
      return "object";
    case '[':
      return "array";
    case 't':
    case 'f':
      return "bool";
    default:
      return "number";
  }
}

bool JsonDecoder::TypeError(std::string found, std::string_view type, const Path& path) {
  std::string fields = path.Fields();
  if (fields.empty() || !struct_) {
    return Fail(fmt::format("json: cannot unmarshal {} into Go value of type {}", found, type));
  }
  return Fail(fmt::format("json: cannot unmarshal {} into Go struct field {}.{} of type {}", found,
                          struct_->descriptor->name(), fields, type));
}

bool JsonDecoder::Mismatch(std::string_view type, const Path& path, int depth) {
  std::string found = KindAtCursor();
  if (!reader_.Skip(depth)) return false;
  return TypeError(std::move(found), type, path);
}

bool JsonDecoder::Object(const MessageInfo& info, const Path& path, int depth) {
  if (depth > kMaxJsonDepth) return reader_.TooDeep();
  reader_.Take('{');
  if (reader_.Take('}')) return true;
  std::bitset<kMaxJsonKeys + 2> seen;
  size_t start = out_.size(), hint = 0;
  for (bool more = true; more;) {
    std::string_view name;
    if (!reader_.Name(name)) return false;
    int found = info.FindKey(name, hint);
    struct_ = &info;
    if (found >= 0) {
      const JsonKey& key = info.keys[found];
      hint = static_cast<size_t>(found) + 1;
      if (seen[found]) {
        Report("duplicate", path, name);
        Erase(start, key);
      }
      seen[found] = true;
      if (!Member(info, key, path, depth)) return false;
    } else if ((name == "kind" || name == "apiVersion") && (depth == 0 || info.has_type_meta)) {
      size_t slot = kMaxJsonKeys + (name == "kind" ? 1 : 0);
      if (seen[slot]) Report("duplicate", path, name);
      seen[slot] = true;
      if (!TypeMetaMember(info, name == "kind", path, depth)) return false;
    } else {
      Report("unknown", path, name);
      if (!reader_.Skip(depth + 1)) return false;
    }
    if (!reader_.Next('}', "after object key:value pair", more)) return false;
  }
  return true;
}

bool JsonDecoder::TypeMetaMember(const MessageInfo&, bool is_kind, const Path& path, int depth) {
  Path at{&path, is_kind ? "kind" : "apiVersion"};
  if (reader_.Peek() == 'n') return reader_.Literal("null");
  if (reader_.Peek() != '"') return Mismatch("string", at, depth + 1);
  std::string_view text;
  if (!reader_.String(text)) return false;
  if (depth == 0 && type_meta_) (is_kind ? type_meta_->kind : type_meta_->api_version) = text;
  return true;
}

bool JsonDecoder::Member(const MessageInfo&, const JsonKey& key, const Path& path, int depth) {
  Path at{&path, key.field->json_name};
  if (reader_.Peek() == 'n') return reader_.Literal("null");
  if (key.path.empty()) return Field(*key.field, at, depth);
  std::vector<wire::Open> outer;
  for (const FieldInfo* field : key.path) outer.push_back(wire::Begin(out_, field->number));
  if (!Field(*key.field, at, depth)) return false;
  if (out_.size() == outer.back().start) {
    out_.Truncate(outer.front().rollback);
    return true;
  }
  for (auto open = outer.rbegin(); open != outer.rend(); ++open) wire::End(out_, *open);
  return true;
}

// Removes what an earlier duplicate of `key` wrote into the object that starts at `from`.
void JsonDecoder::Erase(size_t from, const JsonKey& key) {
  const FieldInfo& outermost = key.path.empty() ? *key.field : *key.path.front();
  std::string kept;
  const char *p = out_.data() + from, *end = out_.data() + out_.size();
  wire::Record record;
  while (p < end && wire::ReadRecord(p, end, record)) {
    bool same = record.field == outermost.number;
    // An inlined field was written as records of one field each, so that the chain is easy to follow.
    wire::Record inner = record;
    for (size_t level = 0; same && level < key.path.size(); ++level) {
      const FieldInfo& next = level + 1 < key.path.size() ? *key.path[level + 1] : *key.field;
      const char* at = inner.bytes.data();
      std::string_view bytes = inner.bytes;
      same = wire::ReadRecord(at, bytes.data() + bytes.size(), inner) && inner.field == next.number;
    }
    if (!same) kept.append(record.start, p);
  }
  out_.Truncate(from);
  out_.Append(kept);
}

bool JsonDecoder::Field(const FieldInfo& field, const Path& path, int depth) {
  if (field.map) return Map(field, path, depth);
  if (field.repeated) return List(field, path, depth);
  return Value(field, field.number, field.pointer, path, depth);
}

bool JsonDecoder::List(const FieldInfo& field, const Path& path, int depth) {
  if (reader_.Peek() != '[') return Mismatch(GoTypeOf(field), path, depth + 1);
  reader_.Take('[');
  if (reader_.Take(']')) return true;
  Path at{&path, {}, 0};
  const MessageInfo* owner = struct_;
  for (bool more = true; more; ++at.index) {
    struct_ = owner;
    if (!Value(field, field.number, true, at, depth + 1) || !reader_.Next(']', "after array element", more))
      return false;
  }
  return true;
}

bool JsonDecoder::Map(const FieldInfo& field, const Path& path, int depth) {
  if (reader_.Peek() != '{') return Mismatch(GoTypeOf(field), path, depth + 1);
  reader_.Take('{');
  if (reader_.Take('}')) return true;
  NameSet seen;
  std::string name_copy;
  const MessageInfo* owner = struct_;
  for (bool more = true; more;) {
    std::string_view name;
    if (!reader_.Name(name)) return false;
    if (report_ && !seen.Insert(name)) Report("duplicate", path, name);
    wire::Open entry = wire::Begin(out_, field.number);
    wire::PutBytes(out_, 1, name);
    if (field.kind == ValueKind::kMessage) name = name_copy.assign(name);
    Path at{&path, name, -1, true};
    struct_ = owner;
    if (!Value(field, 2, true, at, depth + 1)) return false;
    wire::End(out_, entry);
    if (!reader_.Next('}', "after object key:value pair", more)) return false;
  }
  return true;
}

bool JsonDecoder::Value(const FieldInfo& field, uint32_t number, bool keep_zero, const Path& path,
                        int depth) {
  if (field.kind != ValueKind::kMessage) return Scalar(field, number, keep_zero, path);
  wire::Open open = wire::Begin(out_, number);
  if (reader_.Peek() == 'n' ? !reader_.Literal("null") : !Message(*field.message, path, depth + 1))
    return false;
  bool zero = out_.size() == open.start;
  if (!zero && !keep_zero && field.message->form == JSON_QUANTITY) {
    zero = std::string_view(out_.data() + open.start, out_.size() - open.start) == wire_parse::kZeroQuantity;
  }
  if (zero && !keep_zero) {
    out_.Truncate(open.rollback);
  } else {
    wire::End(out_, open);
  }
  return true;
}

bool JsonDecoder::Integer(std::string_view text, int64_t low, int64_t high, int64_t& value) {
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stop == text.data() + text.size() && value >= low && value <= high;
}

bool JsonDecoder::Scalar(const FieldInfo& field, uint32_t number, bool keep_zero, const Path& path) {
  static constexpr std::string_view kTypes[] = {"string", "[]uint8", "bool", "int32", "int64", "float64"};
  std::string_view type = kTypes[static_cast<size_t>(field.kind)];
  char next = reader_.Peek();
  std::string_view text;
  if (next == 'n') {  // an item or a map's value that is null counts as zero
    if (!reader_.Literal("null")) return false;
    if (field.kind == ValueKind::kString || field.kind == ValueKind::kBytes) {
      wire::PutBytes(out_, number, {});
    } else if (field.kind == ValueKind::kDouble) {
      wire::PutTag(out_, number, wire::kFixed64);
      out_.Append(std::string_view("\0\0\0\0\0\0\0\0", 8));
    } else {
      wire::PutInt(out_, number, 0);
    }
    return true;
  }
  switch (field.kind) {
    case ValueKind::kString:
      if (next != '"') return Mismatch(type, path, 0);
      if (!reader_.String(text)) return false;
      if (!text.empty() || keep_zero) wire::PutBytes(out_, number, text);
      return true;
    case ValueKind::kBytes: {
      if (next != '"') return Mismatch(type, path, 0);
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
    case ValueKind::kBool:
      if (next != 't' && next != 'f') return Mismatch(type, path, 0);
      if (!reader_.Literal(next == 't' ? "true" : "false")) return false;
      if (next == 't' || keep_zero) wire::PutInt(out_, number, next == 't');
      return true;
    case ValueKind::kInt32:
    case ValueKind::kInt64: {
      if (next != '-' && (next < '0' || next > '9')) return Mismatch(type, path, 0);
      if (!reader_.Number(text)) return false;
      int64_t value = 0;
      bool narrow = field.kind == ValueKind::kInt32;
      using Narrow = std::numeric_limits<int32_t>;
      using Wide = std::numeric_limits<int64_t>;
      if (!Integer(text, narrow ? Narrow::min() : Wide::min(), narrow ? Narrow::max() : Wide::max(), value)) {
        return TypeError("number " + std::string(text), type, path);
      }
      if (value != 0 || keep_zero) wire::PutInt(out_, number, static_cast<uint64_t>(value));
      return true;
    }
    case ValueKind::kDouble: {
      if (next != '-' && (next < '0' || next > '9')) return Mismatch(type, path, 0);
      if (!reader_.Number(text)) return false;
      double value = 0;
      if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) {
        return TypeError("number " + std::string(text), type, path);
      }
      if (value == 0 && !keep_zero) return true;
      wire::PutTag(out_, number, wire::kFixed64);
      out_.Append({reinterpret_cast<const char*>(&value), sizeof(value)});
      return true;
    }
    case ValueKind::kMessage:
      break;
  }
  return false;
}

bool JsonDecoder::Message(const MessageInfo& info, const Path& path, int depth) {
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

// A string for a type that unmarshals itself: Go knows no field name there.
bool JsonDecoder::PlainString(std::string_view& text) {
  if (reader_.Peek() == '"') return reader_.String(text);
  return Mismatch("string", Path{}, 0);
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
  char next = reader_.Peek();
  if (next == '"') {
    if (!reader_.String(text)) return false;
    wire::PutInt(out_, 1, 1);
    if (!text.empty()) wire::PutBytes(out_, 3, text);
    return true;
  }
  if (next != '-' && (next < '0' || next > '9')) return Mismatch("int32", Path{}, 0);
  if (!reader_.Number(text)) return false;
  int64_t value = 0;
  using Limits = std::numeric_limits<int32_t>;
  if (!Integer(text, Limits::min(), Limits::max(), value)) {
    return TypeError("number " + std::string(text), "int32", Path{});
  }
  if (value != 0) wire::PutInt(out_, 2, static_cast<uint64_t>(value));
  return true;
}

bool JsonDecoder::PlainList(const MessageInfo& info, const Path& path, int depth) {
  if (reader_.Peek() != '[') return Mismatch(GoTypeOf(info), path, depth);
  return List(info.fields.front(), path, depth);
}

bool JsonDecoder::SchemaUnion(const MessageInfo& info, const Path& path, int depth) {
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

}  // namespace

Result<> JsonToWire(const Descriptor* descriptor, std::string_view json, std::string& wire,
                    DecodeReport* report, TypeMeta* type_meta) {
  wire.reserve(wire.size() + json.size());
  return JsonDecoder(json, wire, report, type_meta).Decode(InfoOf(descriptor));
}

Result<> DecodeJson(std::string_view json, Message& object, DecodeReport* report, TypeMeta* type_meta) {
  std::string wire;
  RETURN_IF_ERROR(JsonToWire(object.GetDescriptor(), json, wire, report, type_meta));
  return wire_parse::Parse(wire, object);
}

Result<TypeMeta> PeekTypeMeta(std::string_view json) {
  JsonReader reader(json);
  TypeMeta meta;
  auto scan = [&] {
    if (reader.Peek() != '{') {
      if (!reader.Skip(0)) return false;
      return reader.Fail(
          "json: cannot unmarshal into Go value of type struct { APIVersion string; Kind string }");
    }
    reader.Take('{');
    if (reader.Take('}')) return true;
    for (bool more = true; more;) {
      std::string_view name, text;
      if (!reader.Name(name)) return false;
      std::string* to = name == "apiVersion" ? &meta.api_version : name == "kind" ? &meta.kind : nullptr;
      if (to && reader.Peek() == '"') {
        if (!reader.String(text)) return false;
        *to = text;
      } else {
        if (to && reader.Peek() != 'n') {
          return reader.Fail("json: cannot unmarshal into Go struct field ." + std::string(name) +
                             " of type string");
        }
        if (!reader.Skip(1)) return false;
      }
      if (!reader.Next('}', "after object key:value pair", more)) return false;
    }
    return reader.AtEnd() || reader.Unexpected("after top-level value");
  };
  if (!scan())
    return Error(Code::kBadRequest, "couldn't get version/kind; json parse error: " + reader.error());
  return meta;
}

}  // namespace keelson::api
