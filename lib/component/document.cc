#include "lib/component/document.h"

#include <algorithm>
#include <optional>

#include "lib/base/log.h"
#include "lib/k8s/text/yaml.h"

namespace keelson::component {

namespace json = boost::json;

namespace {

// nullopt: the field is no string.
std::optional<std::string> TextOf(const json::object& document, const char* name) {
  const json::value* found = document.if_contains(name);
  if (!found || found->is_null()) return "";
  if (!found->is_string()) return std::nullopt;
  return std::string(found->get_string());
}

bool Covers(std::string_view pattern, std::string_view version) {
  return pattern.ends_with('/') ? version.starts_with(pattern) : version == pattern;
}

}  // namespace

Result<json::object> ParseDocument(std::string_view text, DocumentProblems& problems) {
  KEELSON_ASSIGN_OR_RETURN(const std::string as_json, k8s::YamlToJson(text, &problems.strict));
  json::error_code failed;
  json::value document = json::parse(as_json, failed);
  if (failed || !document.is_object()) {
    return Error(Code::kBadRequest, "couldn't get version/kind; json parse error: not a mapping");
  }
  return std::move(document.get_object());
}

Result<> CheckType(const json::object& document, const DocumentType& type) {
  const auto kind = TextOf(document, "kind"), version = TextOf(document, "apiVersion");
  if (!kind || !version) {
    return Error(Code::kBadRequest,
                 "couldn't get version/kind; json parse error: kind and apiVersion must be strings");
  }
  for (const auto& [name, value] : {std::pair("Kind", &*kind), std::pair("apiVersion", &*version)}) {
    if (value->empty()) {
      return Error(Code::kBadRequest,
                   std::string("Object '") + name + "' is missing in '" + json::serialize(document) + "'");
    }
  }
  const bool known = *kind == type.kind && std::any_of(type.versions.begin(), type.versions.end(),
                                                       [&](auto one) { return Covers(one, *version); });
  if (known) return {};
  return Error(Code::kBadRequest,
               "no kind \"" + *kind + "\" is registered for version \"" + *version + "\" in scheme");
}

std::string Join(const std::vector<std::string>& problems, std::string_view separator) {
  std::string out;
  for (const std::string& problem : problems) {
    if (&problem != &problems.front()) out += separator;
    out += problem;
  }
  return out;
}

Result<> TellProblems(const DocumentProblems& problems) {
  if (!problems.wrong.empty()) return Error(Code::kBadRequest, Join(problems.wrong));
  if (!problems.strict.empty()) {
    log::Warn("Using lenient decoding as strict decoding failed",
              {{"err", "strict decoding error: " + Join(problems.strict)}});
  }
  return {};
}

Result<> RefuseProblems(const DocumentProblems& problems, std::string_view separator) {
  if (problems.empty()) return {};
  std::vector<std::string> all = problems.wrong;
  all.insert(all.end(), problems.strict.begin(), problems.strict.end());
  return Error(Code::kInvalid, Join(all, separator));
}

std::vector<std::string> Messages(const DocumentProblems& problems) {
  std::vector<std::string> out;
  for (const std::string& problem : problems.strict) out.push_back("strict decoding error: " + problem);
  out.insert(out.end(), problems.wrong.begin(), problems.wrong.end());
  return out;
}

Result<> RefuseAggregate(const DocumentProblems& problems) {
  if (problems.empty()) return {};
  const std::vector<std::string> all = Messages(problems);
  return Error(Code::kInvalid, all.size() == 1 ? all[0] : "[" + Join(all) + "]");
}

}  // namespace keelson::component
