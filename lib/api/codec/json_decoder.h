// Internal to lib/api: the decoder of json_decode.cc and json_decode_values.cc.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "lib/api/codec/codec.h"
#include "lib/api/codec/json_text.h"
#include "lib/api/type_table.h"

namespace keelson::api {

// The position of the cursor, as a chain of stack frames: fields, map keys and list indexes, innermost
// first.
struct JsonPath {
  const JsonPath* parent = nullptr;
  std::string_view name;  // of a field or a map key
  int index = -1;         // of a list item
  bool map_key = false;

  // spec.containers[0].name, the form of strict validation.
  std::string Full() const {
    std::string out = parent ? parent->Full() : "";
    if (index >= 0) return out + fmt::format("[{}]", index);
    if (name.empty() && !map_key) return out;
    if (!out.empty()) out += '.';
    return out.append(name);
  }
  // spec.containers.name, the form of Go's type errors.
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
    JsonPath root;
    bool good = reader_.Peek() == '{' ? Object(info, root, 0) : Message(info, root, 0);
    if (good && !reader_.AtEnd()) good = reader_.Unexpected("after top-level value");
    if (!good) return Error(Code::kBadRequest, error_.empty() ? reader_.error() : error_);
    out_.Finish();
    return {};
  }

 private:
  bool Object(const MessageInfo& info, const JsonPath& path, int depth);
  bool Member(const MessageInfo& info, const JsonKey& key, const JsonPath& path, int depth);
  bool TypeMetaMember(const MessageInfo& info, bool is_kind, const JsonPath& path, int depth);
  bool Field(const FieldInfo& field, const JsonPath& path, int depth);
  bool List(const FieldInfo& field, const JsonPath& path, int depth);
  bool Map(const FieldInfo& field, const JsonPath& path, int depth);
  // Writes one value as field `number`; leaves zeros out unless `keep_zero`.
  bool Value(const FieldInfo& field, uint32_t number, bool keep_zero, const JsonPath& path, int depth);
  // Value() for anything but messages, by kind.
  bool Scalar(const FieldInfo& field, uint32_t number, bool keep_zero, const JsonPath& path);
  bool Null(ValueKind kind, uint32_t number);
  bool String(uint32_t number, bool keep_zero, const JsonPath& path);
  bool Bytes(uint32_t number, bool keep_zero, const JsonPath& path);
  bool Bool(uint32_t number, bool keep_zero, const JsonPath& path);
  bool Int(bool narrow, uint32_t number, bool keep_zero, const JsonPath& path);
  bool Double(uint32_t number, bool keep_zero, const JsonPath& path);
  // Writes the contents of a message, whatever its JSON form.
  bool Message(const MessageInfo& info, const JsonPath& path, int depth);
  bool Time(bool micro);
  bool Duration();
  bool Raw(int depth);
  // Appends a member to the text of an object, which is closed at its end.
  bool RestMember(std::string_view name, std::string& rest, const JsonPath& path, int depth);
  // Reports the names that objects inside of `value` have twice.
  void ReportDuplicatesIn(std::string_view value, const JsonPath& path);
  bool Quantity();
  bool IntOrString();
  bool PlainList(const MessageInfo& info, const JsonPath& path, int depth);
  bool SchemaUnion(const MessageInfo& info, const JsonPath& path, int depth);
  bool PlainString(std::string_view& text);
  void Erase(size_t from, const JsonKey& key);

  void Report(std::string_view what, const JsonPath& path, std::string_view name) {
    if (!report_ || report_->problems.size() >= kMaxProblems) return;
    JsonPath at{&path, name, -1, true};
    std::string problem = fmt::format("{} field \"{}\"", what, at.Full());
    if (reported_.insert(problem).second) report_->problems.push_back(std::move(problem));
  }
  // Reports a type mismatch at the cursor. If the value itself is malformed, that error comes first.
  bool TypeError(std::string found, std::string_view type, const JsonPath& path);
  bool Mismatch(std::string_view type, const JsonPath& path, int depth);
  bool Fail(std::string message) {
    error_ = std::move(message);
    return false;
  }
  const char* KindAtCursor();
  bool AtNumber() {
    char next = reader_.Peek();
    return next == '-' || (next >= '0' && next <= '9');
  }

  static constexpr size_t kMaxProblems = 100;

  JsonReader reader_;
  Sink out_;
  DecodeReport* report_;
  TypeMeta* type_meta_;
  std::unordered_set<std::string> reported_;
  const MessageInfo* struct_ = nullptr;  // owner of the field being decoded
  std::string error_;
};

}  // namespace keelson::api
