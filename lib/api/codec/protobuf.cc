#include <cstdlib>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "lib/api/codec/codec.h"
#include "lib/api/codec/json_text.h"
#include "lib/api/codec/text_forms.h"
#include "lib/api/quantity.h"
#include "lib/api/type_table.h"
#include "lib/api/wire.h"
#include "lib/api/wire_parse.h"

namespace keelson::api {
namespace {

// Each JSON level that is a map takes two levels on the wire: the map and its entry.
constexpr int kMaxWireDepth = kMaxJsonDepth * 2 + 20;

// Copies a message without value-form zeros and without fields that the schema does not know.
class Normalizer {
 public:
  explicit Normalizer(std::string& out) : out_(out) {}

  bool Message(const MessageInfo& info, std::string_view bytes, int depth) {
    if (depth > kMaxWireDepth) return false;
    if (info.form == JSON_TIME || info.form == JSON_MICRO_TIME) {
      return Time(bytes, info.form == JSON_MICRO_TIME);
    }
    if (info.form == JSON_QUANTITY) return Quantity(bytes);
    wire::Record record;
    for (const char *p = bytes.data(), *end = p + bytes.size(); p < end;) {
      if (!wire::ReadRecord(p, end, record)) return false;
      const FieldInfo* field = info.ByNumber(record.field);
      if (field && !Field(*field, record, p, depth)) return false;
    }
    return true;
  }
  void Finish() { out_.Finish(); }
  const std::string& error() const { return error_; }

 private:
  bool Field(const FieldInfo& field, const wire::Record& record, const char* end, int depth) {
    auto copy = [&] { out_.Append({record.start, static_cast<size_t>(end - record.start)}); };
    if (field.map) return record.type != wire::kBytes || Entry(field, record, depth);
    if (field.kind == ValueKind::kMessage) {
      return record.type != wire::kBytes ||
             Nested(field, field.number, record.bytes, field.repeated || field.pointer, depth);
    }
    bool is_text = field.kind == ValueKind::kString || field.kind == ValueKind::kBytes;
    uint32_t type = is_text                            ? wire::kBytes
                    : field.kind == ValueKind::kDouble ? wire::kFixed64
                                                       : wire::kVarint;
    if (record.type != type) {
      if (field.repeated && record.type == wire::kBytes) copy();  // packed
      return true;
    }
    if (field.kind == ValueKind::kString && !IsUtf8(record.bytes)) return NotUtf8(field);
    bool zero = is_text ? record.bytes.empty() : record.number == 0;
    if (!zero || field.repeated || (field.pointer && field.kind != ValueKind::kBytes)) copy();
    return true;
  }

  bool Nested(const FieldInfo& field, uint32_t number, std::string_view bytes, bool keep_empty, int depth) {
    wire::Open open = wire::Begin(out_, number);
    if (!Message(*field.message, bytes, depth + 1)) return false;
    std::string_view written(out_.data() + open.start, out_.size() - open.start);
    JsonForm form = field.message->form;
    bool zero = written.empty() || (form == JSON_QUANTITY && written == wire_parse::kZeroQuantity);
    // A zero time is null in JSON, so it counts as absent everywhere.
    bool no_time = written.empty() && (form == JSON_TIME || form == JSON_MICRO_TIME) && !field.repeated;
    if (no_time || (zero && !keep_empty)) {
      out_.Truncate(open.rollback);
    } else {
      wire::End(out_, open);
    }
    return true;
  }

  bool NotUtf8(const FieldInfo& field) {
    error_ = "proto: field " + field.descriptor->containing_type()->name() + "." +
             std::string(field.json_name) + " contains invalid UTF-8";
    return false;
  }

  bool Entry(const FieldInfo& field, const wire::Record& record, int depth) {
    std::string_view key, value;
    wire::Record part;
    for (const char *p = record.bytes.data(), *end = p + record.bytes.size(); p < end;) {
      if (!wire::ReadRecord(p, end, part)) return false;
      if (part.type != wire::kBytes) continue;
      if ((part.field == 1 || field.kind == ValueKind::kString) && !IsUtf8(part.bytes)) return NotUtf8(field);
      if (part.field == 1) key = part.bytes;
      if (part.field == 2) value = part.bytes;
    }
    if (field.kind != ValueKind::kMessage) {
      wire::PutBytes(out_, field.number, record.bytes);
      return true;
    }
    wire::Open entry = wire::Begin(out_, field.number);
    wire::PutBytes(out_, 1, key);
    if (!Nested(field, 2, value, true, depth + 1)) return false;
    wire::End(out_, entry);
    return true;
  }

  // Zero seconds are 1970; the zero time is year 1. Go keeps seconds of a Time, and microseconds of a
  // MicroTime.
  bool Time(std::string_view bytes, bool micro) {
    if (bytes.empty()) return true;
    uint64_t seconds = 0, nanos = 0;
    wire::Record record;
    for (const char *p = bytes.data(), *end = p + bytes.size(); p < end;) {
      if (!wire::ReadRecord(p, end, record)) return false;
      if (record.field == 1) seconds = record.number;
      if (record.field == 2) nanos = record.number / 1000 * 1000;
    }
    if (!HasFourDigitYear(static_cast<int64_t>(seconds))) {
      error_ = "Time.MarshalJSON: year outside of range [0,9999]";
      return false;
    }
    if (IsZeroTime({static_cast<int64_t>(seconds), 0}) && (!micro || nanos == 0)) return true;
    wire::PutInt(out_, 1, seconds);
    if (micro && nanos != 0 && nanos < 1'000'000'000) wire::PutInt(out_, 2, nanos);
    return true;
  }

  bool Quantity(std::string_view bytes) {
    std::string_view text;
    wire::Record record;
    for (const char *p = bytes.data(), *end = p + bytes.size(); p < end;) {
      if (!wire::ReadRecord(p, end, record)) return false;
      if (record.field == 1 && record.type == wire::kBytes) text = record.bytes;
    }
    if (text.empty()) text = "0";
    std::string canonical;
    if (!wire_parse::IsCanonicalQuantity(text)) {
      auto amount = Amount::Parse(text);
      if (!amount) {
        error_ = amount.error().message();
        return false;
      }
      text = canonical = amount->ToString();
    }
    wire::PutBytes(out_, 1, text);
    return true;
  }

  Sink out_;
  std::string error_ = "proto: illegal wireType";
};

}  // namespace

namespace wire_parse {

bool IsCanonicalQuantity(std::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  if (digits == 0 || digits > 15) return false;
  if (text[0] == '0') return text.size() == 1;
  std::string_view number = text.substr(0, digits), suffix = text.substr(digits);
  if (suffix.empty() || suffix == "m") return digits < 4 || number.substr(digits - 3) != "000";
  // An amount below 1024 of a binary unit has no larger unit.
  return suffix.size() == 2 && suffix[1] == 'i' && digits < 4 &&
         std::string_view("KMGTPE").find(suffix[0]) != std::string_view::npos;
}

Result<> Parse(std::string_view wire, Message& object) {
  // The plain parser is faster, but rejects more than a hundred nested levels, which schemas may have.
  if (object.ParsePartialFromArray(wire.data(), static_cast<int>(wire.size()))) return {};
  object.Clear();
  google::protobuf::io::ArrayInputStream array(wire.data(), static_cast<int>(wire.size()));
  google::protobuf::io::CodedInputStream in(&array);
  in.SetRecursionLimit(kMaxWireDepth * 2);
  if (!object.MergePartialFromCodedStream(&in) || !in.ConsumedEntireMessage()) {
    return Error(Code::kBadRequest, "proto: cannot parse " + object.GetDescriptor()->name());
  }
  return {};
}

}  // namespace wire_parse

std::string EncodeRaw(const Message& object) {
  std::string out;
  {
    google::protobuf::io::StringOutputStream stream(&out);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    object.SerializePartialToCodedStream(&coded);
  }
  return out;
}

std::string EncodeProtobuf(const Message& object, const GroupVersionKind& gvk) {
  std::string raw = EncodeRaw(object), out(kProtobufMagic);
  out.reserve(raw.size() + 64);
  Sink sink(out);
  wire::Open meta = wire::Begin(sink, 1);
  wire::PutBytes(sink, 1, gvk.ApiVersion());
  wire::PutBytes(sink, 2, gvk.kind);
  wire::End(sink, meta);
  wire::PutBytes(sink, 2, raw);
  wire::PutBytes(sink, 3, {});  // content encoding and type, which Go always writes
  wire::PutBytes(sink, 4, {});
  sink.Finish();
  return out;
}

Result<Envelope> OpenEnvelope(std::string_view bytes) {
  auto malformed = [](std::string_view why) { return Error(Code::kBadRequest, std::string(why)); };
  if (bytes.substr(0, kProtobufMagic.size()) != kProtobufMagic) {
    return malformed(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
  }
  bytes.remove_prefix(kProtobufMagic.size());
  Envelope envelope;
  wire::Record record;
  for (const char *p = bytes.data(), *end = p + bytes.size(); p < end;) {
    if (!wire::ReadRecord(p, end, record)) return malformed("proto: Unknown: illegal wireType");
    if (record.type != wire::kBytes) continue;
    if (record.field == 2) envelope.raw = record.bytes;
    if (record.field != 1) continue;
    wire::Record part;
    for (const char *q = record.bytes.data(), *stop = q + record.bytes.size(); q < stop;) {
      if (!wire::ReadRecord(q, stop, part)) return malformed("proto: TypeMeta: illegal wireType");
      if (part.type != wire::kBytes) continue;
      if (part.field == 1) envelope.type_meta.api_version = part.bytes;
      if (part.field == 2) envelope.type_meta.kind = part.bytes;
    }
  }
  return envelope;
}

Result<> NormalizeWire(const Descriptor* descriptor, std::string_view raw, std::string& out) {
  out.reserve(out.size() + raw.size());
  Normalizer normalizer(out);
  if (!normalizer.Message(InfoOf(descriptor), raw, 0)) {
    return Error(Code::kBadRequest, normalizer.error());
  }
  normalizer.Finish();
  return {};
}

Result<> DecodeRaw(std::string_view raw, Message& object) {
  std::string normal;
  KEELSON_RETURN_IF_ERROR(NormalizeWire(object.GetDescriptor(), raw, normal));
  return wire_parse::Parse(normal, object);
}

Result<> DecodeProtobuf(std::string_view bytes, Message& object, TypeMeta* type_meta) {
  KEELSON_ASSIGN_OR_RETURN(Envelope envelope, OpenEnvelope(bytes));
  KEELSON_RETURN_IF_ERROR(DecodeRaw(envelope.raw, object));
  if (type_meta) *type_meta = std::move(envelope.type_meta);
  return {};
}

void Normalize(Message& object) {
  std::string raw, normal;
  object.AppendPartialToString(&raw);
  // Do not rebuild an unchanged object. Validation handles a quantity that does not parse.
  if (!NormalizeWire(object.GetDescriptor(), raw, normal) || raw == normal) return;
  if (!wire_parse::Parse(normal, object)) std::abort();  // our own bytes
}

}  // namespace keelson::api
