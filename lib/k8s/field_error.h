// Validation errors of single fields, in apimachinery's words (util/validation/field):
//
//   spec.containers[0].name: Required value
//   spec.type: Unsupported value: "X": supported values: "ClusterIP", "ExternalName"
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/message.h>

#include "lib/api/scheme.h"
#include "lib/base/error.h"

namespace keelson::k8s {

// The path of a field in an object. Cheap: a path points at its parent and is rendered only when an error
// is made. Every parent must outlive the paths below it (arguments of a call do).
class Path {
 public:
  explicit Path(std::string_view name) : name_(name) {}
  Path Child(std::string_view name) const { return Path(this, name, Step::kChild); }
  Path Key(std::string_view key) const { return Path(this, key, Step::kKey); }
  Path Index(int index) const {
    Path path(this, {}, Step::kIndex);
    path.index_ = index;
    return path;
  }
  std::string ToString() const;

 private:
  enum class Step { kRoot, kChild, kKey, kIndex };
  Path(const Path* parent, std::string_view name, Step step) : parent_(parent), name_(name), step_(step) {}

  const Path* parent_ = nullptr;
  std::string_view name_;
  int index_ = 0;
  Step step_ = Step::kRoot;
};

struct FieldError {
  enum class Type {
    kNotFound,
    kRequired,
    kDuplicate,
    kInvalid,
    kNotSupported,
    kForbidden,
    kTooLong,
    kTooMany,
    kTypeInvalid,  // prints as kInvalid does
    kInternal
  };
  Type type;
  std::string field;  // spec.containers[0].name
  std::string value;  // printed: a quoted string, a number, JSON; empty for types without a value
  std::string detail;

  std::string Body() const;      // "Invalid value: \"x\": must ..."
  std::string ToString() const;  // "field: body"
};

std::string_view CauseReason(FieldError::Type type);  // FieldValueRequired, ...

using FieldErrors = std::vector<FieldError>;

// ---- constructors, named as in upstream ----
FieldError Required(const Path& path, std::string_view detail = "");
FieldError Forbidden(const Path& path, std::string_view detail);
FieldError Invalid(const Path& path, std::string_view value, std::string_view detail);
FieldError Invalid(const Path& path, int64_t value, std::string_view detail);
FieldError InvalidBool(const Path& path, bool value, std::string_view detail);
// Prints the value as JSON.
FieldError InvalidObject(const Path& path, const google::protobuf::Message& value, std::string_view detail);
FieldError InvalidRaw(const Path& path, std::string printed, std::string_view detail);
FieldError NotSupported(const Path& path, std::string_view value,
                        const std::vector<std::string_view>& supported);
FieldError Duplicate(const Path& path, std::string_view value);
FieldError DuplicateRaw(const Path& path, std::string printed);
FieldError NotFound(const Path& path, std::string_view value);
FieldError TooLong(const Path& path, int64_t max_bytes);
FieldError TooMany(const Path& path, int64_t actual, int64_t max);

// Quotes as Go's %q does.
std::string Quote(std::string_view text);

// 422 Invalid with details.causes. Message: `Pod "x" is invalid: spec.a: Required value`, several errors as
// `[a, b]`. `gvk` gives group and kind; `errors` must not be empty.
Error ToInvalid(const api::GroupVersionKind& gvk, std::string_view name, const FieldErrors& errors);

}  // namespace keelson::k8s
