// JSON to objects. One pass transcodes the text to the protobuf wire format, without a document in between
// and without reflection, and the generated parser does the rest: both are much faster than setting fields
// one by one. Value-form zeros are never written, so the result is canonical.
#include <bitset>

#include "lib/api/codec/json_decoder.h"
#include "lib/api/wire_parse.h"

namespace keelson::api {

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

bool JsonDecoder::TypeError(std::string found, std::string_view type, const JsonPath& path) {
  std::string fields = path.Fields();
  if (fields.empty() || !struct_) {
    return Fail(fmt::format("json: cannot unmarshal {} into Go value of type {}", found, type));
  }
  return Fail(fmt::format("json: cannot unmarshal {} into Go struct field {}.{} of type {}", found,
                          struct_->descriptor->name(), fields, type));
}

bool JsonDecoder::Mismatch(std::string_view type, const JsonPath& path, int depth) {
  std::string found = KindAtCursor();
  if (!reader_.Skip(depth)) return false;
  return TypeError(std::move(found), type, path);
}

bool JsonDecoder::Object(const MessageInfo& info, const JsonPath& path, int depth) {
  if (depth > kMaxJsonDepth) return reader_.TooDeep();
  reader_.Take('{');
  if (reader_.Take('}')) return true;
  std::bitset<kMaxJsonKeys + 2> seen;
  std::string rest;
  NameSet rest_names;
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
    } else if (info.rest) {
      if (report_ && !rest_names.Insert(name)) Report("duplicate", path, name);
      if (!RestMember(name, rest, path, depth)) return false;
    } else {
      Report("unknown", path, name);
      if (!reader_.Skip(depth + 1)) return false;
    }
    if (!reader_.Next('}', "after object key:value pair", more)) return false;
  }
  if (!rest.empty()) wire::PutBytes(out_, info.rest->number, rest + '}');
  return true;
}

bool JsonDecoder::RestMember(std::string_view name, std::string& rest, const JsonPath& path, int depth) {
  Sink sink(rest);
  sink.Put(rest.empty() ? '{' : ',');
  AppendQuoted(name, sink);
  sink.Put(':');
  const size_t value = sink.size();
  JsonPath at{&path, name};
  std::string name_copy;
  if (report_) at.name = name_copy.assign(name);  // `name` does not survive the next read
  if (!reader_.Copy(sink, depth + 1)) return false;
  sink.Finish();
  if (report_) ReportDuplicatesIn(std::string_view(rest).substr(value), at);
  return true;
}

bool JsonDecoder::TypeMetaMember(const MessageInfo&, bool is_kind, const JsonPath& path, int depth) {
  JsonPath at{&path, is_kind ? "kind" : "apiVersion"};
  if (reader_.Peek() == 'n') return reader_.Literal("null");
  if (reader_.Peek() != '"') return Mismatch("string", at, depth + 1);
  std::string_view text;
  if (!reader_.String(text)) return false;
  if (depth == 0 && type_meta_) (is_kind ? type_meta_->kind : type_meta_->api_version) = text;
  return true;
}

bool JsonDecoder::Member(const MessageInfo&, const JsonKey& key, const JsonPath& path, int depth) {
  JsonPath at{&path, key.field->json_name};
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

// Removes what an earlier duplicate of `key` has written into the object that starts at `from`.
void JsonDecoder::Erase(size_t from, const JsonKey& key) {
  const FieldInfo& outermost = key.path.empty() ? *key.field : *key.path.front();
  std::string kept;
  const char *p = out_.data() + from, *end = out_.data() + out_.size();
  wire::Record record;
  while (p < end && wire::ReadRecord(p, end, record)) {
    bool same = record.field == outermost.number;
    // Each record of an inlined field holds one field, so the chain is easy to follow.
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

bool JsonDecoder::Field(const FieldInfo& field, const JsonPath& path, int depth) {
  if (field.map) return Map(field, path, depth);
  if (field.repeated) return List(field, path, depth);
  return Value(field, field.number, field.pointer, path, depth);
}

bool JsonDecoder::List(const FieldInfo& field, const JsonPath& path, int depth) {
  if (reader_.Peek() != '[') return Mismatch(GoTypeOf(field), path, depth + 1);
  reader_.Take('[');
  if (reader_.Take(']')) return true;
  JsonPath at{&path, {}, 0};
  const MessageInfo* owner = struct_;
  for (bool more = true; more; ++at.index) {
    struct_ = owner;
    if (!Value(field, field.number, true, at, depth + 1) || !reader_.Next(']', "after array element", more)) {
      return false;
    }
  }
  return true;
}

bool JsonDecoder::Map(const FieldInfo& field, const JsonPath& path, int depth) {
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
    JsonPath at{&path, name, -1, true};
    struct_ = owner;
    if (!Value(field, 2, true, at, depth + 1)) return false;
    wire::End(out_, entry);
    if (!reader_.Next('}', "after object key:value pair", more)) return false;
  }
  return true;
}

bool JsonDecoder::Value(const FieldInfo& field, uint32_t number, bool keep_zero, const JsonPath& path,
                        int depth) {
  if (field.kind != ValueKind::kMessage) return Scalar(field, number, keep_zero, path);
  wire::Open open = wire::Begin(out_, number);
  if (reader_.Peek() == 'n' ? !reader_.Literal("null") : !Message(*field.message, path, depth + 1)) {
    return false;
  }
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

Result<> JsonToWire(const Descriptor* descriptor, std::string_view json, std::string& wire,
                    DecodeReport* report, TypeMeta* type_meta) {
  wire.reserve(wire.size() + json.size());
  return JsonDecoder(json, wire, report, type_meta).Decode(InfoOf(descriptor));
}

Result<> DecodeJson(std::string_view json, Message& object, DecodeReport* report, TypeMeta* type_meta) {
  std::string wire;
  KEELSON_RETURN_IF_ERROR(JsonToWire(object.GetDescriptor(), json, wire, report, type_meta));
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
  if (!scan()) {
    return Error(Code::kBadRequest, "couldn't get version/kind; json parse error: " + reader.error());
  }
  return meta;
}

}  // namespace keelson::api
