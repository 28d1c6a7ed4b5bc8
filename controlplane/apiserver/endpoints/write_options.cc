#include "controlplane/apiserver/endpoints/write_options.h"

#include <fmt/format.h>

#include "lib/k8s/field_error.h"

namespace keelson::apiserver {
namespace {

constexpr size_t kMaxManagerLength = 128;

// The length of the first UTF-8 character; 1 if it is invalid.
size_t RuneLength(std::string_view text) {
  auto lead = static_cast<unsigned char>(text[0]);
  size_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 1;
  return std::min(length, text.size());
}

bool IsPrintable(std::string_view rune) {
  auto lead = static_cast<unsigned char>(rune[0]);
  if (rune.size() == 1) return lead >= 0x20 && lead < 0x7f;
  return rune.size() > 2 || lead != 0xc2 || static_cast<unsigned char>(rune[1]) > 0xa0;  // C1 controls
}

std::string_view OptionsKind(const Context& context) {
  if (context.info.verb == "create") return "CreateOptions";
  if (context.info.verb == "update") return "UpdateOptions";
  return context.info.verb == "patch" ? "PatchOptions" : "DeleteOptions";
}

void CheckManager(std::string_view manager, k8s::FieldErrors& errors) {
  const k8s::Path path("fieldManager");
  if (manager.size() > kMaxManagerLength) errors.push_back(k8s::TooLong(path, kMaxManagerLength));
  for (size_t at = 0; at < manager.size();) {
    std::string_view rune = manager.substr(at, RuneLength(manager.substr(at)));
    if (!IsPrintable(rune)) {
      errors.push_back(k8s::Invalid(path, manager,
                                    fmt::format("invalid character U+{:04X} (at position {})",
                                                static_cast<unsigned char>(rune[0]), at)));
    }
    at += rune.size();
  }
}

registry::FieldValidation ParseFieldValidation(std::string_view text, k8s::FieldErrors& errors) {
  if (text == "Strict") return registry::FieldValidation::kStrict;
  if (text == "Ignore") return registry::FieldValidation::kIgnore;
  if (!text.empty() && text != "Warn") {
    errors.push_back(k8s::NotSupported(k8s::Path("fieldValidation"), text, {"", "Ignore", "Strict", "Warn"}));
  }
  return registry::FieldValidation::kWarn;
}

}  // namespace

std::string ManagerOfUserAgent(std::string_view user_agent) {
  std::string manager;
  user_agent = user_agent.substr(0, user_agent.find('/'));
  while (!user_agent.empty()) {
    std::string_view rune = user_agent.substr(0, RuneLength(user_agent));
    user_agent.remove_prefix(rune.size());
    if (!IsPrintable(rune)) continue;
    if (manager.size() + rune.size() > kMaxManagerLength) break;
    manager += rune;
  }
  return manager;
}

Result<registry::WriteOptions> ParseWriteOptions(const Context& context, bool apply) {
  const http::Query& query = context.query();
  registry::WriteOptions options;
  k8s::FieldErrors errors;
  options.field_manager = query.Get("fieldManager");
  if (apply) {
    if (options.field_manager.empty()) {
      errors.push_back(k8s::Required(k8s::Path("fieldManager"), "is required for apply patch"));
    }
    options.force = query.GetBool("force");
  } else if (context.info.verb == "patch" && query.Has("force")) {
    errors.push_back(k8s::Forbidden(k8s::Path("force"), "may not be specified for non-apply patch"));
  }
  CheckManager(options.field_manager, errors);
  google::protobuf::RepeatedPtrField<std::string> dry_run;
  for (std::string_view value : query.All("dryRun")) dry_run.Add(std::string(value));
  registry::CheckDryRun(dry_run, errors);
  options.dry_run = !dry_run.empty();
  options.field_validation = ParseFieldValidation(query.Get("fieldValidation"), errors);
  if (!errors.empty()) {
    return k8s::ToInvalid({"meta.k8s.io", "v1", std::string(OptionsKind(context))}, "", errors);
  }
  if (options.field_manager.empty()) {
    options.field_manager = ManagerOfUserAgent(context.request->headers.Get("User-Agent"));
  }
  options.deadline = context.deadline;
  options.user = {context.user.name, context.user.uid, context.user.groups, context.user.extra};
  return options;
}

}  // namespace keelson::apiserver
