#include "ctl/cri/document.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <boost/json.hpp>

#include "ctl/cri/go_template.h"
#include "ctl/output.h"
#include "lib/base/base64.h"
#include "lib/base/text.h"
#include "lib/k8s/text/yaml.h"

namespace keelson::ctl {
namespace {

boost::json::value Sorted(const boost::json::value& value) {
  if (const auto* object = value.if_object()) {
    std::map<std::string, const boost::json::value*> members;
    for (const auto& member : *object) members.emplace(std::string(member.key()), &member.value());
    boost::json::object out;
    for (const auto& [key, member] : members) out.emplace(key, Sorted(*member));
    return out;
  }
  if (const auto* array = value.if_array()) {
    boost::json::array out;
    for (const auto& item : *array) out.push_back(Sorted(item));
    return out;
  }
  return value;
}

// Go's JSON of bytes is base64; crictl takes the values of variables as they are.
void EncodeVariables(boost::json::value& document) {
  auto* object = document.if_object();
  auto* variables = object ? object->if_contains("envs") : nullptr;
  if (!variables || !variables->is_array()) return;
  for (boost::json::value& variable : variables->get_array()) {
    auto* pair = variable.if_object();
    auto* value = pair ? pair->if_contains("value") : nullptr;
    if (value && value->is_string()) {
      *value = EncodeBase64({value->get_string().data(), value->get_string().size()});
    }
  }
}

// Two spaces of indentation instead of four.
std::string Narrowed(const std::string& json) {
  std::string out;
  for (const std::string_view line : Split(std::string_view(json).substr(0, json.size() - 1), '\n')) {
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    out.append(line.substr(indent / 2)) += "\n";
  }
  return out;
}

}  // namespace

Result<CriFormat> ParseCriFormat(const std::string& word) {
  if (word == "table" || word == "text") return CriFormat::kTable;
  if (word == "json") return CriFormat::kJson;
  if (word == "yaml") return CriFormat::kYaml;
  if (word == "go-template") return CriFormat::kGoTemplate;
  return Error(Code::kInvalid, "unsupported output format \"" + word + "\"");
}

Result<boost::json::value> MessageDocument(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok()) return Error(Code::kInternal, "answer of the runtime: " + status.ToString());
  boost::system::error_code error;
  boost::json::value document = boost::json::parse(text, error);
  if (error) return Error(Code::kInternal, "answer of the runtime: " + error.message());
  return document;
}

Result<boost::json::value> StatusDocument(boost::json::value status,
                                          const std::map<std::string, std::string>& info) {
  boost::json::object out;
  out["status"] = std::move(status);
  for (const auto& [key, text] : info) {
    if (!text.starts_with("{")) {
      out[key] = std::string(Trim(text, "\""));
      continue;
    }
    boost::system::error_code error;
    out[key] = boost::json::parse(text, error);
    if (error) return Error(Code::kInternal, "unmarshal status info JSON: " + error.message());
  }
  return boost::json::value(std::move(out));
}

Result<std::string> CriText(const boost::json::value& document, CriFormat format,
                            const std::string& go_template) {
  switch (format) {
    case CriFormat::kJson:
      return Narrowed(ToJson(document));
    case CriFormat::kYaml:
      return ToYaml(Sorted(document)) + "\n";
    case CriFormat::kGoTemplate: {
      KEELSON_ASSIGN_OR_RETURN(const std::string text, ExecuteGoTemplate(go_template, document));
      return text + "\n";
    }
    case CriFormat::kTable:
      break;
  }
  return Error(Code::kInvalid, "unsupported output format \"table\"");
}

Result<std::string> StatusText(const std::vector<boost::json::value>& documents, CriFormat format,
                               const std::string& go_template) {
  if (documents.size() == 1) return CriText(Sorted(documents[0]), format, go_template);
  boost::json::array all;
  for (const boost::json::value& document : documents) all.push_back(Sorted(document));
  return CriText(all, format, go_template);
}

Result<> ReadMessage(const std::string& text, google::protobuf::Message& message) {
  KEELSON_ASSIGN_OR_RETURN(const std::string json, k8s::YamlToJson(text));
  boost::system::error_code error;
  boost::json::value document = boost::json::parse(json, error);
  if (error) return Error(Code::kInvalid, error.message());
  EncodeVariables(document);
  const auto status = google::protobuf::util::JsonStringToMessage(boost::json::serialize(document), &message);
  if (!status.ok()) return Error(Code::kInvalid, std::string(status.message()));
  return {};
}

}  // namespace keelson::ctl
