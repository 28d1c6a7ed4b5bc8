#include "lib/k8s/field_error.h"

#include <set>

#include <fmt/format.h>

#include "lib/api/codec/codec.h"

namespace keelson::k8s {

namespace {

std::string_view Title(FieldError::Type type) {
  switch (type) {
    case FieldError::Type::kNotFound:
      return "Not found";
    case FieldError::Type::kRequired:
      return "Required value";
    case FieldError::Type::kDuplicate:
      return "Duplicate value";
    case FieldError::Type::kInvalid:
    case FieldError::Type::kTypeInvalid:
      return "Invalid value";
    case FieldError::Type::kNotSupported:
      return "Unsupported value";
    case FieldError::Type::kForbidden:
      return "Forbidden";
    case FieldError::Type::kTooLong:
      return "Too long";
    case FieldError::Type::kTooMany:
      return "Too many";
    case FieldError::Type::kInternal:
      return "Internal error";
  }
  return "Internal error";
}

FieldError Make(FieldError::Type type, const Path& path, std::string value, std::string_view detail) {
  return {type, path.ToString(), std::move(value), std::string(detail)};
}

}  // namespace

std::string Path::ToString() const {
  std::string out = parent_ ? parent_->ToString() : std::string();
  switch (step_) {
    case Step::kRoot:
      out += name_;
      break;
    case Step::kChild:
      out += '.';
      out += name_;
      break;
    case Step::kKey:
      out += fmt::format("[{}]", name_);
      break;
    case Step::kIndex:
      out += fmt::format("[{}]", index_);
      break;
  }
  return out;
}

std::string FieldError::Body() const {
  std::string out(Title(type));
  if (!value.empty()) out += ": " + value;
  if (!detail.empty()) out += ": " + detail;
  return out;
}

std::string FieldError::ToString() const { return field + ": " + Body(); }

std::string_view CauseReason(FieldError::Type type) {
  switch (type) {
    case FieldError::Type::kNotFound:
      return "FieldValueNotFound";
    case FieldError::Type::kRequired:
      return "FieldValueRequired";
    case FieldError::Type::kDuplicate:
      return "FieldValueDuplicate";
    case FieldError::Type::kInvalid:
      return "FieldValueInvalid";
    case FieldError::Type::kTypeInvalid:
      return "FieldValueTypeInvalid";
    case FieldError::Type::kNotSupported:
      return "FieldValueNotSupported";
    case FieldError::Type::kForbidden:
      return "FieldValueForbidden";
    case FieldError::Type::kTooLong:
      return "FieldValueTooLong";
    case FieldError::Type::kTooMany:
      return "FieldValueTooMany";
    case FieldError::Type::kInternal:
      return "InternalError";
  }
  return "InternalError";
}

std::string Quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

FieldError Required(const Path& path, std::string_view detail) {
  return Make(FieldError::Type::kRequired, path, "", detail);
}
FieldError Forbidden(const Path& path, std::string_view detail) {
  return Make(FieldError::Type::kForbidden, path, "", detail);
}
FieldError Invalid(const Path& path, std::string_view value, std::string_view detail) {
  return Make(FieldError::Type::kInvalid, path, Quote(value), detail);
}
FieldError Invalid(const Path& path, int64_t value, std::string_view detail) {
  return Make(FieldError::Type::kInvalid, path, std::to_string(value), detail);
}
FieldError InvalidBool(const Path& path, bool value, std::string_view detail) {
  return Make(FieldError::Type::kInvalid, path, value ? "true" : "false", detail);
}
FieldError InvalidObject(const Path& path, const google::protobuf::Message& value, std::string_view detail) {
  return Make(FieldError::Type::kInvalid, path, api::EncodeJson(value), detail);
}
FieldError InvalidRaw(const Path& path, std::string printed, std::string_view detail) {
  return Make(FieldError::Type::kInvalid, path, std::move(printed), detail);
}
FieldError NotSupported(const Path& path, std::string_view value,
                        const std::vector<std::string_view>& supported) {
  std::string detail;
  for (std::string_view one : supported) {
    detail += detail.empty() ? "supported values: " : ", ";
    detail += Quote(one);
  }
  return Make(FieldError::Type::kNotSupported, path, Quote(value), detail);
}
FieldError Duplicate(const Path& path, std::string_view value) {
  return Make(FieldError::Type::kDuplicate, path, Quote(value), "");
}
FieldError DuplicateRaw(const Path& path, std::string printed) {
  return Make(FieldError::Type::kDuplicate, path, std::move(printed), "");
}
FieldError NotFound(const Path& path, std::string_view value) {
  return Make(FieldError::Type::kNotFound, path, Quote(value), "");
}
FieldError TooLong(const Path& path, int64_t max_bytes) {
  return Make(FieldError::Type::kTooLong, path, "", fmt::format("may not be more than {} bytes", max_bytes));
}
FieldError TooMany(const Path& path, int64_t actual, int64_t max) {
  return Make(FieldError::Type::kTooMany, path, std::to_string(actual),
              fmt::format("must have at most {} items", max));
}

Error ToInvalid(const api::GroupVersionKind& gvk, std::string_view name, const FieldErrors& errors) {
  ErrorDetails details;
  details.name = name;
  details.group = gvk.group;
  details.kind = gvk.kind;
  std::vector<std::string> messages;
  std::set<std::string> seen;
  for (const FieldError& error : errors) {
    details.causes.push_back({std::string(CauseReason(error.type)), error.Body(), error.field});
    std::string message = error.ToString();
    if (seen.insert(message).second) messages.push_back(std::move(message));
  }
  const std::string qualified = gvk.group.empty() ? gvk.kind : gvk.kind + "." + gvk.group;
  std::string text = fmt::format("{} {} is invalid", qualified, Quote(name));
  if (messages.size() == 1) text += ": " + messages[0];
  if (messages.size() > 1) {
    text += ": [";
    for (size_t i = 0; i < messages.size(); ++i) text += (i ? ", " : "") + messages[i];
    text += "]";
  }
  return Error(Code::kInvalid, std::move(text)).WithDetails(std::move(details));
}

}  // namespace keelson::k8s
