// The fields of a configuration document. A program binds each field to a place, row by row:
//
//   DocumentReader in(document, problems);
//   in.Read("port", config.port, Zero::kDefault);
//   in.Read("authentication.webhook.cacheTTL", config.webhook_cache_ttl);
//   in.List("extenders", [&](DocumentReader& item) { item.Read("urlPrefix", ...); });
//
// A field that no row has named is unknown, which the end of the reader's life reports. Absent fields and null
// leave the place as it is, and so does a value of a wrong type, which is reported with its path.
#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/component/document.h"

namespace keelson::component {

// What a zero ("", 0, 0s, false, []) in a document means.
enum class Zero {
  kDefault,  // unset, as for a value in Go: the place stays as it is
  kValue,    // zero, as for a pointer in Go
};

// A resource.Quantity: text or a number.
struct QuantityText {
  std::string text;
  bool operator==(const QuantityText&) const = default;
};
// A TimeOrMetaDuration (k8s.io/component-base/logs/api/v1): text, or a number of nanoseconds.
struct TimeOrDuration {
  std::chrono::nanoseconds value{0};
  bool operator==(const TimeOrDuration&) const = default;
};

class DocumentReader {
 public:
  // `object` and `problems` outlive the reader. `path`: where the object stands in its document.
  DocumentReader(const boost::json::object& object, DocumentProblems& problems, std::string path = "");
  ~DocumentReader();
  DocumentReader(const DocumentReader&) = delete;
  DocumentReader& operator=(const DocumentReader&) = delete;

  // `field` may lead through sections, with dots. T: bool, int32_t, int64_t, double, std::string, a
  // chrono duration ("1m30s"), QuantityText, TimeOrDuration, std::vector or std::map<std::string, ...> of
  // these, and every struct with a ReadFields(DocumentReader&, T&) beside it.
  template <typename T>
  void Read(std::string_view field, T& out, Zero zero = Zero::kValue) {
    const boost::json::value* value = Find(field);
    T read{};
    if (!value || !Convert(*value, PathOf(field), read)) return;
    if (zero == Zero::kDefault && read == T{}) return;
    out = std::move(read);
  }

  // A nested object. Not called when the field is absent or null.
  void Object(std::string_view field, const std::function<void(DocumentReader&)>& read);
  // The same, but an absent one is read as an empty one: for objects with fields that are required.
  void Section(std::string_view field, const std::function<void(DocumentReader&)>& read);
  // A list of objects, one after the other.
  void List(std::string_view field, const std::function<void(DocumentReader&)>& read_item);

  // Whether the field has a value. It counts as known from then on.
  bool Has(std::string_view field) { return Find(field) != nullptr; }
  // For what others parse; null when absent.
  const boost::json::value* Raw(std::string_view field) { return Find(field); }
  // Fields that are known and change nothing.
  void Ignore(std::initializer_list<std::string_view> fields);

  // "path.field: what"; an empty field stands for the object itself.
  void Problem(std::string_view field, std::string_view what);
  // A value of a wrong type; `type` is Go's name.
  void WrongType(std::string_view field, const boost::json::value& value, std::string_view type);
  std::string PathOf(std::string_view field) const;

 private:
  using Value = boost::json::value;

  const Value* Find(std::string_view field);
  void TellUnknown(const boost::json::object& object, const std::string& at);
  bool Mismatch(const Value& value, const std::string& path, std::string_view type);
  bool Wrong(const std::string& path, std::string_view what);

  // False after a problem, which has been reported.
  bool Convert(const Value& value, const std::string& path, bool& out);
  bool Convert(const Value& value, const std::string& path, int32_t& out);
  bool Convert(const Value& value, const std::string& path, int64_t& out);
  bool Convert(const Value& value, const std::string& path, double& out);
  bool Convert(const Value& value, const std::string& path, std::string& out);
  bool Convert(const Value& value, const std::string& path, QuantityText& out);
  bool Convert(const Value& value, const std::string& path, TimeOrDuration& out);
  bool Convert(const Value& value, const std::string& path, std::chrono::nanoseconds& out);
  template <typename Rep, typename Period>
  bool Convert(const Value& value, const std::string& path, std::chrono::duration<Rep, Period>& out) {
    std::chrono::nanoseconds nanos{0};
    if (!Convert(value, path, nanos)) return false;
    out = std::chrono::duration_cast<std::chrono::duration<Rep, Period>>(nanos);
    return true;
  }
  template <typename T>
  bool Convert(const Value& value, const std::string& path, std::vector<T>& out) {
    if (!value.is_array()) return Mismatch(value, path, "slice");
    bool fine = true;
    for (const Value& item : value.get_array()) {
      const std::string here = path + "[" + std::to_string(out.size()) + "]";
      fine = Convert(item, here, out.emplace_back()) && fine;
    }
    return fine;
  }
  template <typename T>
  bool Convert(const Value& value, const std::string& path, std::map<std::string, T>& out) {
    if (!value.is_object()) return Mismatch(value, path, "map");
    bool fine = true;
    for (const auto& [key, item] : value.get_object()) {
      const std::string name(key);
      fine = Convert(item, path + "." + name, out[name]) && fine;
    }
    return fine;
  }
  template <typename T>
  requires requires(DocumentReader& reader, T& out) { ReadFields(reader, out); }
  bool Convert(const Value& value, const std::string& path, T& out) {
    if (!value.is_object()) return Mismatch(value, path, "struct");
    const size_t before = problems_.wrong.size();
    {
      DocumentReader inner(value.get_object(), problems_, path);
      ReadFields(inner, out);
    }
    return problems_.wrong.size() == before;
  }

  const boost::json::object& object_;
  DocumentProblems& problems_;
  const std::string path_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace keelson::component
